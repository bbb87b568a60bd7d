"""Figures skew-12 to skew-16 and the benchmark ``skew``: throughput under skew and fluctuation with the loop on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from numpy.typing import ArrayLike

from bench.experiments.skew.drawing import Panel, draw
from bench.experiments.skew.programs import Shape, Trades
from bench.experiments.skew.scenario import Scenario, adjustments, mean_cost, mean_skewness, median_ms
from bench.experiments.skew.streaming import MERGES, SkewOutcome, SkewStream, hashing_share, measure
from bench.experiments.skew.streaming import PLANNERS as STEERED
from bench.registry import benchmark, figure
from bench.run import Run
from planners.loop.planning import Rebalancer
from planners.rebalance import RebalancePlan, mixed, mixed_bf, readj
from planners.rebalance.readj import SIGMAS


def _stream(run: Run, intervals: int = 3, epochs: int = 150) -> SkewStream:
    quick = Shape(intervals=2, epochs=80)
    return SkewStream("", shape=quick if run.quick else Shape(intervals=intervals, epochs=epochs))


def _throughput(stream: SkewStream) -> float:
    return measure(stream).throughput(stream.settled)


def _mean(stream: SkewStream, seeds: Sequence[int]) -> tuple[float, float]:
    """Throughput and latency, means over data of several seeds: how uneven hashing is depends on which keys meet."""
    outcomes = [measure(stream.but(seed=seed)) for seed in seeds]
    throughput = fmean(outcome.throughput(stream.settled) for outcome in outcomes)
    return throughput, fmean(outcome.latency(stream.settled) for outcome in outcomes)


def _paper(stream: SkewStream, data: str) -> SkewStream:
    """The parameters of the paper's data: 180,000 words with z = 0.85, which are forgotten after an interval. (Those of
    the stock data are their own.)"""
    return stream.but(data=data, **(SOCIAL if data == "social" else {}), window=stream.shape.epochs)


SOCIAL = {"keys": 180_000, "z": 0.85}


@benchmark("skew", "throughput under skew and fluctuation: the loop against hashing and the ideal (aim: 0.9 of ideal)")
def skew(run: Run) -> None:
    for f in run.each("f", [0.5] if run.quick else [0.0, 0.5, 1.0]):
        base = _stream(run).but(f=f)
        ideal = _throughput(base.but(mode="ideal"))
        run.report(f"f = {f}: ideal (shuffled)", ideal, "records/s")
        share = hashing_share(base)
        run.report(f"f = {f}: what the most loaded worker leaves hashing", ideal * share, "records/s", baseline=ideal)
        for mode in ("hashing", "Mixed"):
            outcome = measure(base.but(mode=mode))
            run.report(f"f = {f}: {mode}", outcome.throughput(base.settled), "records/s", baseline=ideal)
            if mode == "Mixed":
                run.report(f"f = {f}: migrations of the loop", outcome.acted, "migrations")


@figure("skew-12", "plan generation, migration cost and balance by fluctuation: Mixed, Readj and MixedBF")
def skew_12(run: Run) -> None:
    base = Scenario(keys=2_000, intervals=2, instances=5) if run.quick else Scenario(intervals=4)
    times = Panel("fluctuation f", "CPU time to make a plan (ms, median)", log_y=True)
    costs = Panel("fluctuation f", "migration cost (% of all state)")
    loads = Panel("fluctuation f", "greatest load by plan / mean (mean of plans)")
    fine = partial(_without_beta, sigma=0.001)  # tracks many more keys
    planners: dict[str, Rebalancer] = {"Mixed": mixed, "Readj": _without_beta, "MixedBF": mixed_bf}
    planners |= {"MixedBF, fewest": partial(mixed_bf, best="fewest"), "Readj, σ = 0.001": fine}
    for f in run.each("f", [0.2, 1.0] if run.quick else [0.1, 0.5, 1.0, 1.5, 2.0]):
        for name, planner in planners.items():
            found = adjustments(base.but(f=f), planner)
            times.add(name, f, median_ms(found))
            costs.add(name, f, mean_cost(found))
            loads.add(name, f, mean_skewness(found))
            run.report(f"{name}, f {f:g}: plan", median_ms(found), "ms")
            run.report(f"{name}, f {f:g}: migration cost", mean_cost(found), "%")
            run.report(f"{name}, f {f:g}: greatest load", mean_skewness(found), "x mean")
    caption = f"{base.label('f')}; Readj: the best of σ = {', '.join(map(str, SIGMAS))}; MixedBF: of "
    caption += "all numbers of entries moved back, that with the least state moved, or the fewest that are in bounds"
    draw(run, "Plans by fluctuation", caption, times, costs, loads)


def _without_beta(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float,
    table: int | None,
    beta: float,
    sigma: float | Sequence[float] = SIGMAS,
) -> RebalancePlan:
    """Readj, which knows no β, called as the others are."""
    return readj(cost, state, home=home, current=current, instances=instances, theta=theta, table=table, sigma=sigma)


@figure("skew-13", "throughput and latency by fluctuation, with the loop on, under hashing and ideally")
def skew_13(run: Run) -> None:
    throughput = Panel("fluctuation f", "throughput (1,000 records/s)")
    latency = Panel("fluctuation f", "latency of an epoch (ms, median)")
    base = _stream(run, epochs=110)
    for f in run.each("f", [0.0, 1.0] if run.quick else [0.0, 0.5, 1.0, 1.5]):
        ideal = None
        for mode in ("ideal", "Mixed", "Readj", "hashing"):
            outcome = measure(base.but(mode=mode, f=f))
            found = outcome.throughput(base.settled)
            throughput.add(mode, f, found / 1e3)
            latency.add(mode, f, outcome.latency(base.settled))
            run.report(f"{mode}, f {f:g}", found, "records/s", baseline=ideal)
            ideal = ideal or found
    draw(run, "Throughput and latency by fluctuation", _caption(base, "f"), throughput, latency)


@figure("skew-14", "throughput and latency of a word count (social data) and of a self-join (stock data) by tolerance")
def skew_14(run: Run) -> None:
    thetas, seeds = ([0.02, 0.3], [1]) if run.quick else ([0.02, 0.08, 0.3], [1, 2, 3])
    base = _stream(run, epochs=60)
    panels = []
    for data, last in (("social", ["PKG"]), ("stock", [])):
        throughput = Panel("tolerance θ", f"throughput on {data} data (1,000 records/s)")
        latency = Panel("tolerance θ", f"latency of an epoch on {data} data (ms, median)")
        ideal = None
        for mode in run.each(data, ["ideal", "hashing", "Mixed", "MinTable", "Readj", *last]):
            steered = mode in STEERED  # the others have no tolerance
            for theta in thetas if steered else thetas[:1]:
                found, late = _mean(_paper(base, data).but(mode=mode, theta=theta), seeds)
                for at in (theta,) if steered else (thetas[0], thetas[-1]):
                    throughput.add(mode if steered else f"{mode} (dashed)", at, found / 1e3)
                    latency.add(mode if steered else f"{mode} (dashed)", at, late)
                what = f"{data}, {mode}, theta {theta:g}" if steered else f"{data}, {mode}"
                run.report(what, found, "records/s", baseline=ideal)
                run.report(f"{what}: latency", late, "ms")
                ideal = ideal or found
        panels += [throughput, latency]
    caption = f"{_caption(base, 'theta', 'f', 'keys', 'z')}, means of {len(seeds)} data sets{_REAL}"
    draw(run, "Throughput and latency by tolerance: word count, self-join", caption, *panels)


_REAL = (
    f"; social: a count of 180,000 words, z = 0.85, forgotten after an interval (PKG merges every {MERGES} epochs, and "
    f"a partial count costs what a record does); stock: a self-join of trades within {Trades.window} epochs"
)


@figure("skew-15", "throughput over time when a spare worker, which starts empty, may be used: several θ, and PKG")
def skew_15(run: Run) -> None:
    base = _stream(run, intervals=1, epochs=240)
    base = base.but(intervals=1, spare=base.shape.epochs // 4)
    steered = [("Mixed", theta) for theta in (0.02, 0.1, 0.3)] + [("Readj", 0.1)]
    panels = []
    for data in ("social", "stock"):
        panel = Panel("seconds", f"throughput on {data} data (1,000 records/s)")
        others = [("PKG", 0.0), ("hashing", 0.0)] if data == "social" else [("hashing", 0.0)]
        for mode, theta in run.each(data, steered + others):
            label = f"{mode}, θ = {theta:g}" if theta else mode
            outcome = measure(_paper(base, data).but(mode=mode, theta=theta or 0.1))
            _add_timeline(panel, label, outcome, 12, seconds=True)
            last = outcome.throughput(0.75)
            run.report(f"{data}, {label}: at the end", last, "records/s", baseline=outcome.throughput(0.0, 0.2))
        panels.append(panel)
    caption = f"{_caption(base, 'theta', 'f', 'keys', 'z')}; all bins start at one worker, and the loop (PKG: its "
    caption += f"choice of two) may act from epoch {base.spare} on; right: a third worker is asked for then, and joins"
    panels.append(_third(run, base))
    draw(run, "One more worker from a quarter of the stream on", caption + _REAL, *panels)


def _third(run: Run, base: SkewStream) -> Panel:
    """A worker that really joins: bins are dealt out to it evenly; the loop goes on from there."""
    panel = Panel("seconds", "throughput on social data, 2 to 3 workers (1,000 records/s)")
    base = _paper(base, "social").but(spare=None, joins=base.spare)
    for mode, label in run.each("a third worker", [("Mixed", "Mixed, θ = 0.1"), ("hashing", "bins dealt out evenly")]):
        outcome = measure(base.but(mode=mode, theta=0.1))
        _add_timeline(panel, label, outcome, 12, seconds=True)
        before, last = outcome.throughput(0.0, 0.2), outcome.throughput(0.75)
        run.report(f"a third worker joins, {label}: at the end", last, "records/s", baseline=before)
    return panel


@figure("skew-16", "TPC-H Q5 whose foreign keys change with every interval: throughput over time")
def skew_16(run: Run) -> None:
    base = _stream(run, intervals=4, epochs=60).but(data="tpch", z=0.8, f=1.0)
    points = 4 * base.shape.intervals
    fixed = {mode: measure(base.but(mode=mode)) for mode in run.each("without planners", ["ideal", "hashing"])}
    ideal = fixed["ideal"].throughput(base.settled)
    for mode, outcome in fixed.items():
        run.report(mode, outcome.throughput(base.settled), "records/s", baseline=ideal)
    panels = []
    for theta in run.each("theta", [0.08, 0.2]):
        panel = Panel(f"intervals; θ = {theta:g}", "throughput (1,000 records/s)")
        found = {mode: measure(base.but(mode=mode, theta=theta)) for mode in ("Mixed", "Readj")}
        for mode, outcome in (fixed | found).items():
            _add_timeline(panel, mode, outcome, points, scale=base.shape.intervals)
        for mode, outcome in found.items():
            run.report(f"{mode}, theta {theta:g}", outcome.throughput(base.settled), "records/s", baseline=ideal)
        panels.append(panel)
    caption = f"{_caption(base, 'theta', 'keys')}; orders and lines are records; who buys and who supplies changes "
    draw(run, "TPC-H Q5 (all regions) while its foreign keys change", caption + "with each interval", *panels)


def _add_timeline(
    panel: Panel, mode: str, outcome: SkewOutcome, points: int, scale: float = 1.0, seconds: bool = False
) -> None:
    for share, at, throughput in outcome.timeline(points):
        panel.add(mode, at if seconds else scale * share, throughput / 1e3)


def _caption(stream: SkewStream, *varied: str) -> str:
    """What is held fixed, and how long the stream was."""
    shape = stream.shape
    signs: Sequence[tuple[str, str]] = [
        ("z", f"z = {shape.z:g}"),
        ("f", f"f = {shape.f:g}"),
        ("keys", f"{shape.keys:,} keys"),
        ("theta", f"θ = {stream.theta:g}"),
        ("table", f"N_A = {stream.table:,}"),
    ]
    fixed = "".join(f", {text}" for name, text in signs if name not in varied)
    return (
        f"two workers, {1e6 * stream.cost:g} µs per record{fixed}; {shape.intervals} "
        f"interval{'s' * (shape.intervals > 1)} of {shape.epochs} epochs of {shape.records:,} records"
    )
