"""Figure 16 of the live version: response time by window, of frequent patterns, while the number of nodes changes.

The dataflow runs, on three workers; two and three of them are used in turn. Each planner says where bins go, from what
the detector reports of them, and they go there all at once, as in the paper. What is averaged is the time from when an
epoch's tweets were due until its reports were complete, over the seconds after each migration began.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

import numpy as np
import trio

import dataflow
import megaphone
from bench.experiments.planning.figures import Line, draw_lines
from bench.patterns import mine
from bench.registry import figure
from bench.run import Run
from planners import Intervals, Plan, Tables, Tasks, consistent_hashing, mtm_aware, ssm, storm
from planners.intervals.baselines import ring
from planners.intervals.feasibility import smallest_tau
from planners.model import Assignment, BinMap
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import Transitions

BINS, WORKERS, THRESHOLD = 24, 3, 12
PACE = 0.05  # seconds of an epoch
TWEETS, WORDS, VOCABULARY = 12, 5, 400  # of an epoch; of a tweet; in all
NODES = (2, 3)
TAU = 0.6
METHODS = ("MTM-aware", "single-step (SSM)", "consistent hashing", "Storm")


@dataclass(frozen=True)
class ResponseLoad:
    """What is run. `window`: epochs. Migrations begin when the window has filled, `calm` epochs apart."""

    method: str
    window: int
    migrations: int
    calm: int

    @property
    def starts(self) -> list[int]:
        """The epochs at which migrations begin. Before the first, statistics have come."""
        return [self.window + 20 + self.calm * (n + 1) for n in range(self.migrations)]


@figure("optimal-16", "response time of frequent patterns by window, while the number of nodes changes")
def figure_16(run: Run) -> None:
    windows, migrations = ([20, 60], 2) if run.quick else ([40, 80, 120, 160], 4)
    mean, moved = ({name: Line() for name in METHODS} for _ in range(2))
    for window in run.each("windows", windows):
        for name in METHODS:
            seconds, share = _measured(ResponseLoad(name, window, migrations, 40))
            mean[name].add(window * PACE, 1000 * seconds)
            moved[name].add(window * PACE, 100 * share)
            run.report(
                f"window {window * PACE:g} s, {name}: mean response in 2 s after a migration", 1000 * seconds, "ms"
            )
            run.report(f"window {window * PACE:g} s, {name}: state moved", 100 * share, "%")
    panels = {
        "mean response time in the 2 s after a migration began (ms)": mean,
        "state moved by a migration (%)": moved,
    }
    note = (
        f" Maximal frequent patterns of up to 3 words, with a loop; {TWEETS / PACE:g} tweets/s of {WORDS} words, "
        f"{BINS} bins, {WORKERS} workers on two cores, of which 2 and 3 are used in turn, τ = {TAU}; {migrations} "
        "migrations. The paper: windows of 30 to 150 s, 8 to 16 nodes, two minutes after each."
    )
    draw_lines(run, "Response time by window (Figure 16)", "window (s)", "", panels, note=note, workload="")


def _measured(load: ResponseLoad) -> tuple[float, float]:
    return dataflow.execute(main, load, workers=WORKERS)[0]


async def main(worker: dataflow.Worker, load: ResponseLoad) -> tuple[float, float]:
    """Worker 0 sends and steers: mean seconds of response after migrations, and the mean share of state that moved."""
    done: dict[int, float] = {}
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        handle, stream = scope.input("tweets")
        detector, reports = mine(scope, configuration, stream, threshold=THRESHOLD, bins=BINS)
        probe = reports.probe()
    if worker.index:
        return 0.0, 0.0
    controller = megaphone.Controller(control, detector)
    places: Assignment = _first(load.method)
    controller.migrate(places.map())
    tweets, shares = _tweets(load.window + 20 + load.calm * (load.migrations + 1)), list[float]()
    tables: Tables | None = None
    todo, starts = load.starts, list[int]()  # a migration begins late where the one before has not ended
    even = [1] * BINS
    ssm(Intervals([0, BINS]), nodes=2, sizes=even, loads=even, tau=TAU)  # loads what is compiled: no epoch waits
    begin = time.perf_counter()
    for epoch, come in enumerate(tweets):
        gone = tweets[epoch - load.window] if epoch >= load.window else []
        handle.send([(1, words) for words in come] + [(-1, words) for words in gone])
        if epoch == load.starts[0] - 10 and load.method == "MTM-aware":
            tables = await trio.to_thread.run_sync(_tables, *_seen(controller))
        if todo and epoch >= todo[0] and not controller.busy:
            starts.append(epoch)
            todo.pop(0)
            plan = _plan(load.method, places, 5 - len(set(places.map().tolist())), *_seen(controller), tables)
            places = plan.assignment
            shares.append(plan.share)
            controller.migrate(places.map())
        handle.advance_to(2 * epoch + 2)
        controller.advance_to(2 * epoch + 2)
        await _until(begin + PACE * (epoch + 1), partial(_note, done, probe, epoch))
    handle.close()
    control.close()
    while len(done) < len(tweets):
        await probe.wait_passed(2 * len(done) + 1)
        _note(done, probe, len(tweets) - 1)
    after = (e for start in starts for e in range(start, min(start + round(2 / PACE), len(tweets))))
    return fmean(done[e] - begin - PACE * e for e in after), fmean(shares)  # its tweets were sent when it began


async def _until(due: float, look: Callable[[], None]) -> None:
    """Waits until a moment, and looks about every millisecond."""
    look()
    while (left := due - time.perf_counter()) > 0:
        await trio.sleep(min(left, 0.001))
        look()


def _note(done: dict[int, float], probe: dataflow.Probe, last: int) -> None:
    """When epochs were complete."""
    while len(done) <= last and probe.passed(2 * len(done) + 1):
        done[len(done)] = time.perf_counter()


def _first(method: str) -> Assignment:
    if method == "consistent hashing":
        return ring(BINS, range(2))
    return Intervals([0, BINS // 2, BINS])


def _seen(controller: megaphone.Controller) -> tuple[list[int], list[int]]:
    """Sizes and loads of bins, none of them nothing."""
    known = controller.statistics
    return np.maximum(known.bytes, 1).tolist(), np.maximum(known.records, 1).tolist()


def _tables(sizes: list[int], loads: list[int]) -> Tables:
    to_and_fro = Transitions(list(NODES), [[0, 1], [1, 0]])
    return Tables.of(project(MTMProblem(Tasks(sizes, loads), to_and_fro, 1.2, 0.8)))


def _plan(
    method: str, places: Assignment, nodes: int, sizes: list[int], loads: list[int], tables: Tables | None
) -> Plan:
    tau = max(TAU, smallest_tau(Tasks(sizes, loads), nodes))
    if method == "MTM-aware":
        assert tables is not None
        within = min(tau, tables.problem.tau)
        return mtm_aware(places.intervals(), nodes=nodes, tables=tables, sizes=sizes, loads=loads, tau=within)
    if method == "single-step (SSM)":
        return ssm(places.intervals(), nodes=nodes, sizes=sizes, loads=loads, tau=tau)
    planner = consistent_hashing if method == "consistent hashing" else storm
    return planner(BinMap(places.map().tolist()), nodes=nodes, sizes=sizes, loads=loads)


def _tweets(epochs: int) -> list[list[list[int]]]:
    """Words of a Zipf law: a few are frequent together."""
    chance = Random(16)
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    return [[chance.choices(range(VOCABULARY), weights, k=WORDS) for _ in range(TWEETS)] for _ in range(epochs)]
