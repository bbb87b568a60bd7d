"""Figures 5.1 to 5.8 of the HybMig paper, with its parameters, on a virtual clock.

Two capacities are drawn where capacity matters. At SLOW, moving state fills its states for about 50 seconds at the
defaults, as in the paper. But nested loops over the old plan, once A is common, then take 3 to 9 million evaluations a
second: at SLOW no method keeps up for the rest of the window. FAST is the least round capacity at which parallel track
does (no record waits for more than a second), and there the fill takes under three seconds. With evaluations as the
only cost there is no capacity at which both are as the paper has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.experiments.hybmig.boxes import GeneralHybrid, GeneralMovingState, GeneralParallelTrack, MedianBox
from bench.experiments.hybmig.clock import Amounts, Course, run
from bench.experiments.hybmig.drawing import ByParameter, OverTime, draw
from bench.experiments.hybmig.hybrid import Hybrid
from bench.experiments.hybmig.methods import Method, MovingState, ParallelTracks, Steady
from bench.experiments.hybmig.setting import Setting
from bench.registry import figure
from bench.run import Run
from megaphone.plans.trees import Tree

SLOW, FAST = 0.53e6, 9e6  # predicate evaluations per second
MODEL = (
    "One attribute with 20 values for all streams; the rare stream (A before, the last one after) is within them with "
    "0.05. Evaluations are those of nested loops; states are counted, not made (tests compare the two)."
)
MINUTES, RATES, STREAMS = (1, 2, 3, 4, 5), (0.4, 0.7, 1.0, 1.3, 1.6), (4, 5, 6, 7)


def methods(setting: Setting, new: Tree) -> dict[str, Method]:
    """MS, PT and HybMig as section 5.1 compares them: without work in the background."""
    return {
        "MS": lambda tree, contents: MovingState(tree, contents, new),
        "PT": lambda tree, contents: ParallelTracks(tree, contents, new, setting.names),
        "HybMig": lambda tree, contents: Hybrid(tree, contents, new),
    }


def _smooth(values: Amounts, width: int) -> Amounts:
    """Means over so many seconds, so that single records do not hide the course."""
    return np.repeat(values[: values.size // width * width].reshape(-1, width).mean(axis=1), width)


def _curves(
    seen: Mapping[str, Course], of: Callable[[Course], Amounts], width: int = 1
) -> dict[str, tuple[Amounts, Amounts]]:
    found = {}
    for name, course in seen.items():
        values = _smooth(of(course), width)
        found[name] = (course.seconds[: values.size], values)
    return found


@dataclass(frozen=True)
class Averaged:
    """Means over seeds."""

    peak: float
    total: float
    duration: float


def _averaged(setting: Setting, method: Callable[[Setting], Method], seeds: int, capacity: float) -> Averaged:
    seen = [run(at := setting.but(seed=seed), method(at), capacity) for seed in range(1, seeds + 1)]
    means = (float(np.mean([getattr(t, name) for t in seen])) for name in ("peak", "total", "duration"))
    return Averaged(*means)


def _seeds(run_: Run) -> int:
    return 1 if run_.quick else 10


# --------------------------------------------------------------------------------------------- 5.1 and 5.2: over time


@figure("hybmig-5.1", "output rate over time: MS, PT and HybMig, at two capacities")
def hybmig_5_1(run_: Run) -> None:
    panels, due = [], run(Setting(), Steady)
    burst = 0.0
    for label, capacity in run_.each("capacity", [("PT just keeps up", FAST), ("MS fills states for 45 s", SLOW)]):
        seen = _all_methods(Setting(), capacity)
        _report_outputs(run_, seen, capacity)
        curves = _curves({"never migrated": due, **seen}, _results, 5)
        panels.append(OverTime(f"{capacity / 1e6:g} million evaluations/s: {label}", "results per second", curves))
        burst = max(burst, float(seen["PT"].results.max()))
    caption = (
        "w = 3 min, τ = 1/s, n = 6, old plan left-deep, new plan right-deep; means of 5 s; dotted: the old "
        "plan goes on, "
        "without a limit. What is due rises and falls with the data (A becomes common, F rare), so that no "
        "curve is flat, "
        "as HybMig's is in the paper; there it is some results a second, here tens of thousands. PT holds "
        "results of new "
        f"records until w = 180 s ({burst:,.0f} in the second of their release); F being rare they are few before, so "
        "that PT falls late. At 0.53 million/s MS is silent as long as in the paper, but then no method keeps up. "
        f"{MODEL}"
    )
    draw(run_, "Figure 5.1: output rate during the migration", caption, [panels])


def _all_methods(setting: Setting, capacity: float) -> dict[str, Course]:
    return {name: run(setting, method, capacity) for name, method in methods(setting, setting.right_deep).items()}


def _results(course: Course) -> Amounts:
    return course.results


def _evaluations(course: Course) -> Amounts:
    return course.evaluations


def _tuples(course: Course) -> Amounts:
    return course.tuples


def _report_outputs(run_: Run, seen: Mapping[str, Course], capacity: float) -> None:
    at = f"at {capacity / 1e6:g} million/s"
    for name, course in seen.items():
        run_.report(f"{name} {at}: silence at the start", course.silence, "s")
        run_.report(f"{name} {at}: longest wait of a record", max(course.delays), "s")
        run_.report(f"{name} {at}: most results in a second", float(course.results.max()), "1/s")
        run_.report(f"{name} {at}: until the old plan is gone", course.duration, "s")


@figure("hybmig-5.2", "tuples in states and evaluations over time: MS, PT and HybMig")
def hybmig_5_2(run_: Run) -> None:
    seen = _all_methods(Setting(), FAST)
    memory = OverTime("", "tuples in states", _curves(seen, _tuples), log=True)
    work = OverTime("", "evaluations per second", _curves(seen, _evaluations, 3), log=True)
    for name, course in seen.items():
        after = course.tuples[-course.begin :]
        run_.report(f"{name}: most tuples", float(after.max()), "tuples")
        run_.report(f"{name}: evaluations in all", course.total, "")
    shares = _shares_below(run_, seen)
    caption = (
        f"w = 3 min, τ = 1/s, n = 6, old plan left-deep, new plan right-deep; {FAST / 1e6:g} million "
        "evaluations/s. Tuples "
        "at the end of each second, those that wait included; evaluations are means of 3 s. HybMig has fewer "
        "tuples than "
        f"PT in {shares[0]:.0f} % and does fewer evaluations in {shares[1]:.0f} % of the seconds before w: at "
        "first its "
        "new plan does more. In the paper it is below PT always. MS is saturated for some seconds only (the "
        "paper: 60); "
        f"at {SLOW / 1e6:g} million/s, where that is as there, every method is saturated until the end. {MODEL}"
    )
    draw(run_, "Figure 5.2: overhead over time", caption, [[memory, work]])


def _shares_below(run_: Run, seen: Mapping[str, Course]) -> list[float]:
    """In how many of a hundred seconds of the migration HybMig has less than PT."""
    begin, end = -seen["PT"].begin, -seen["PT"].begin + 180
    found = []
    for what, of in (("tuples", _tuples), ("evaluations", _evaluations)):
        below = of(seen["HybMig"])[begin:end] < of(seen["PT"])[begin:end]
        found.append(100 * float(below.mean()))
        run_.report(f"seconds with fewer {what} in HybMig than in PT", found[-1], "%")
    return found


# ---------------------------------------------------------------------------------------- 5.3 to 5.5: by a parameter


def _by_parameter(run_: Run, number: str, parameter: str, values: Sequence[float], axis: str, note: str = "") -> None:
    memory = ByParameter("", axis, "most tuples in states", values)
    work = ByParameter("", axis, "evaluations in all", values)
    for value in run_.each(parameter, list(values)):
        setting = Setting().but(**{parameter: value})
        for kind in ("right_deep", "bushy"):
            for name in ("MS", "PT", "HybMig"):
                found = _averaged(setting, partial(_method, name, kind), _seeds(run_), math.inf)
                into = (memory.bars, work.bars) if kind == "right_deep" else (memory.lines, work.lines)
                into[0].setdefault(name, []).append(found.peak)
                into[1].setdefault(name, []).append(found.total)
                label = f"{name}, {kind.replace('_', '-')}, {parameter} {value:g}"
                run_.report(f"{label}: most tuples", found.peak, "tuples")
                run_.report(f"{label}: evaluations", found.total, "")
    best = [_ratios(panel) for panel in (memory, work)]
    defaults = {"minutes": "w = 3 min", "rate": "τ = 1/s", "streams": "n = 6"}
    fixed = ", ".join(text for name, text in defaults.items() if name != parameter)
    caption = (
        f"{fixed}; {_means(run_)}; everything that arrives in 1.2 w, without a limit of capacity. HybMig over the "
        f"better of MS and PT: tuples {best[0]}, evaluations {best[1]}; the paper has HybMig clearly below both "
        f"everywhere.{note} {MODEL}"
    )
    draw(run_, f"Figure {number}: overhead by {axis}", caption, [[memory, work]])


def _method(name: str, kind: str, setting: Setting) -> Method:
    return methods(setting, getattr(setting, kind))[name]


def _ratios(panel: ByParameter) -> str:
    """The least and the greatest ratio of HybMig to the better of the others."""
    texts = []
    for kind, values in (("right-deep", panel.bars), ("bushy", panel.lines)):
        ratios = [ours / min(ms, pt) for ours, ms, pt in zip(values["HybMig"], values["MS"], values["PT"], strict=True)]
        texts.append(f"{min(ratios):.2f} to {max(ratios):.2f} {kind}")
    return ", ".join(texts)


def _means(run_: Run) -> str:
    return "one seed" if run_.quick else f"means of {_seeds(run_)} seeds"


@figure("hybmig-5.3", "peak memory and evaluations by window: MS, PT and HybMig, right-deep and bushy")
def hybmig_5_3(run_: Run) -> None:
    _by_parameter(run_, "5.3", "minutes", MINUTES, "window w (minutes)")


@figure("hybmig-5.4", "peak memory and evaluations by stream rate: MS, PT and HybMig, right-deep and bushy")
def hybmig_5_4(run_: Run) -> None:
    _by_parameter(run_, "5.4", "rate", RATES, "rate τ of a stream (1/s)")


@figure("hybmig-5.5", "peak memory and evaluations by number of streams: MS, PT and HybMig, right-deep and bushy")
def hybmig_5_5(run_: Run) -> None:
    note = " At n = 4 the bushy plan shares (A B) with the old one: MS fills one small state."
    _by_parameter(run_, "5.5", "streams", STREAMS, "number of streams n", note)


# ------------------------------------------------------------------------------------- 5.6 and 5.7: the optimisations


@figure("hybmig-5.6", "HybMig with and without sharing of sub-plans, by number of streams")
def hybmig_5_6(run_: Run) -> None:
    memory = ByParameter("", "number of streams n", "most tuples in states", STREAMS)
    work = ByParameter("", "number of streams n", "evaluations in all", STREAMS)
    for streams in run_.each("streams", list(STREAMS)):
        for name, sharing in (("without sharing", False), ("with sharing", True)):
            found = _averaged(Setting(streams=streams), partial(_shared, sharing), _seeds(run_), math.inf)
            memory.bars.setdefault(name, []).append(found.peak)
            work.bars.setdefault(name, []).append(found.total)
    gains = {}
    for what, panel in (("tuples", memory), ("evaluations", work)):
        pairs = list(zip(panel.bars["without sharing"], panel.bars["with sharing"], strict=True))
        gains[what] = f"{min(a / b for a, b in pairs):.2f} to {max(a / b for a, b in pairs):.2f}"
        for streams, (without, shared) in zip(STREAMS, pairs, strict=True):
            run_.report(f"n = {streams}: {what} with sharing", shared, "", baseline=without)
    caption = (
        f"w = 3 min, τ = 1/s; {_means(run_)}. The new plan is the old one with its last two streams joined first. "
        f"Without sharing: times {gains['tuples']} the tuples, times {gains['evaluations']} the evaluations; "
        "the paper: "
        f"up to a factor of 2. {MODEL}"
    )
    draw(run_, "Figure 5.6: sharing of sub-plans in HybMig", caption, [[memory, work]])


def _shared(sharing: bool, setting: Setting) -> Method:
    return lambda tree, contents: Hybrid(tree, contents, setting.sharing, sharing=sharing)


@figure("hybmig-5.7", "duration and evaluations by stream rate: MS, PT, HybMig with and without background work")
def hybmig_5_7(run_: Run) -> None:
    panels = []
    for capacity in (FAST, SLOW):
        title = f"{capacity / 1e6:g} million evaluations/s"
        duration = ByParameter(title, "rate τ of a stream (1/s)", "duration (s)", RATES, level=180.0)
        work = ByParameter(title, "rate τ of a stream (1/s)", "evaluations in all", RATES)
        for rate in run_.each(title, list(RATES)):
            for name in ("MS", "PT", "HybMig", "HybMig with BSC"):
                found = _averaged(Setting(rate=rate), partial(_timed, name), _seeds(run_), capacity)
                duration.lines.setdefault(name, []).append(found.duration)
                work.lines.setdefault(name, []).append(found.total)
                label = f"{name}, rate {rate:g}, at {capacity / 1e6:g} million/s"
                run_.report(f"{label}: duration", found.duration, "s")
                run_.report(f"{label}: evaluations", found.total, "")
        panels += [duration, work]
    durations, work = [panels[0], panels[2]], panels[1]
    caption = (
        f"w = 3 min (dashed), n = 6, old plan left-deep, new plan right-deep; {_means(run_)}. Until the old plan is "
        "gone; for MS until states are filled. As in the paper, BSC ends at once at low rates and its gain fades with "
        "load; at 0.53 million/s MS goes from 50 s to some 800 s at 1.6. Unlike there (PT at 1.6 only), PT and HybMig "
        "last longer than w from 1.3 on at 9 million/s, and from 0.7 (PT) and 1 (HybMig) on at 0.53, since they cannot "
        f"keep up; MS, whose states are filled sooner, cannot either. {MODEL}"
    )
    draw(run_, "Figure 5.7: background state computation", caption, [[*durations, work]])


def _timed(name: str, setting: Setting) -> Method:
    new = setting.right_deep
    if name == "HybMig with BSC":
        return lambda tree, contents: Hybrid(tree, contents, new, in_background=True)
    return methods(setting, new)[name]


# ---------------------------------------------------------------------------------------------- 5.8: general methods


@figure("hybmig-5.8", "GMS, GPT and GHM with a median on top: output rate and evaluations over time")
def hybmig_5_8(run_: Run) -> None:
    setting = Setting()
    new, names = setting.right_deep, setting.names
    every: dict[str, Method] = {
        "GMS": lambda tree, contents: GeneralMovingState(tree, contents, new, names),
        "GPT": lambda tree, contents: GeneralParallelTrack(tree, contents, new, names),
        "GHM": lambda tree, contents: GeneralHybrid(tree, contents, new, names),
    }
    seen = {name: run(setting, method, FAST) for name, method in run_.each("methods", list(every.items()))}
    for name, course in seen.items():
        run_.report(f"{name}: silence at the start", course.silence, "s")
        run_.report(f"{name}: until the old plan is gone", course.duration, "s")
        run_.report(f"{name}: longest wait of a record", max(course.delays), "s")
        run_.report(f"{name}: evaluations in all", course.total, "")
    output = OverTime(
        "", "medians per second", _curves({"never migrated": run(setting, MedianBox), **seen}, _results, 5)
    )
    work = OverTime("", "evaluations per second", _curves(seen, _evaluations, 3), log=True)
    ends = ", ".join(f"{name} {course.duration:.0f} s" for name, course in seen.items())
    caption = (
        f"w = 3 min, τ = 1/s, n = 6; {FAST / 1e6:g} million evaluations/s. A record that gives results gives "
        "one median, "
        "over the results that are valid then (reach w; the paper does not say its window). Means of 5 s and "
        "of 3 s. The "
        f"old plan is gone after: {ends}. GHM gets what the old plan leaves, which falls as A fills the window. {MODEL}"
    )
    draw(run_, "Figure 5.8: general methods, with a median on top", caption, [[output, work]])
