"""Figures of clusters that are not here, on a virtual clock: sixteen workers as in the papers, and 1,024."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

import megaphone
from bench.counting import halved
from bench.registry import figure
from bench.run import Run
from bench.simulator.clockwork import Hook, SimulatedRun
from bench.simulator.cluster import GIGABIT, SimulatedCluster
from bench.simulator.costs import MeasuredCosts, read_costs
from bench.simulator.scaling import SimulatedReadings, SimulatedScaling
from bench.simulator.workload import SimulatedLoad
from megaphone.harness import Outcome, plots
from megaphone.migration.strategies import USUAL, Strategy
from planners.loop import Driver, Loop, by_bins
from planners.scaling import Autoscaler, ScaleDriver, ScaleSettings
from planners.scaling.curves import diurnal

ROW = 8  # bytes of state of a key
MILLION = 1e6
TERABYTE = 1e12
PAPER = SimulatedCluster(16, per_machine=4, cores=4, bandwidth=10 * GIGABIT)
LARGE = SimulatedCluster(1024, per_machine=4, cores=4, bandwidth=10 * GIGABIT)
SIMULATED = "Simulated, from costs measured on one machine with two cores (docs/internals/simulator.md)."
Strategies = Sequence[tuple[str, Callable[[], Strategy]]]


def _strategies(batch: int, bound: float, workers: int) -> Strategies:
    budget = USUAL * workers  # the usual one is for all workers together, and lets one large bin go at a time
    return (
        ("all-at-once", megaphone.all_at_once),
        ("fluid", megaphone.fluid),
        (f"batches of {batch}", lambda: megaphone.batched(batch, budget=budget)),
        ("matched", lambda: megaphone.matched(budget=budget)),
        (f"within {bound * 1000:g} ms", lambda: megaphone.within(bound)),
    )


def moving(name: str, strategy: Strategy, at: float = 2.0) -> Hook:
    """Moves a quarter of the state, once."""
    begun = False

    def hook(run: SimulatedRun) -> None:
        nonlocal begun
        if not begun and run.now >= at:
            begun = True
            run.controller.migrate(halved(run.load.bins, workers=run.members), strategy)
            run.episodes.begin(name)

    return hook


def _migrated(
    cluster: SimulatedCluster, load: SimulatedLoad, costs: MeasuredCosts, name: str, make: Callable[[], Strategy]
) -> Outcome:
    """One migration, in as long a run as it takes: tried with longer ones until it ends."""
    outcome = _once(cluster, load, costs, name, make)
    for factor in (4, 16, 64):
        if outcome.migrations and outcome.migrations[0].episode.seconds is not None:
            break
        outcome = _once(cluster, replace(load, seconds=load.seconds * factor), costs, name, make)
    return outcome


def _once(
    cluster: SimulatedCluster, load: SimulatedLoad, costs: MeasuredCosts, name: str, make: Callable[[], Strategy]
) -> Outcome:
    window = load.epoch * max(1, round(load.seconds / 60 / load.epoch))
    return SimulatedRun(cluster, costs, load, [moving(name, make())]).run().outcome(1.0, window)


def _report(run: Run, outcome: Outcome, label: str) -> None:
    for migration in outcome.migrations:
        name, took = migration.episode.name, migration.episode.seconds
        steady = migration.before.quantile(0.5) / 1e6
        if took is not None and len(migration.during):
            run.report(f"{label}{name}: duration", took, "s")
            run.report(
                f"{label}{name}: maximum latency (baseline: the median before)", migration.during.greatest / 1e6, "ms",
                baseline=steady,
            )  # fmt: skip


@figure("simulator-16", "simulated: sixteen workers as in the paper, 8 and 33 GB of state, strategies and bins")
def sixteen(run: Run) -> None:
    costs = read_costs()
    load = SimulatedLoad(4 * MILLION, 8.0, 1 << 12, 1000 * MILLION * ROW, epoch=0.005)
    runs = []
    for name, make in run.each("strategies", _strategies(64, 0.1, 16)):
        runs.append((name, _migrated(PAPER, load, costs, name, make)))
        _report(run, runs[-1][1], "8 GB, ")
    caption = (
        f"{SIMULATED} Four machines with four workers each, 10 Gbit/s, 1,000 million keys (8 GB), 4 million records/s, "
        "2^12 bins, epochs of 5 ms; a quarter of the state moves. Paper (Figure 1): the same, on four real machines."
    )
    run.draw(plots.timelines(runs, "Latency while a quarter of the state moves, 16 workers", caption))
    points = []
    for power in run.each("bins", (4, 6, 8, 10, 12, 14)):
        case = SimulatedLoad(4 * MILLION, 10.0, 1 << power, 4096 * MILLION * ROW, epoch=0.005)
        for name, make in _strategies(16, 0.1, 16):
            outcome = _migrated(PAPER, case, costs, name, make)
            points += plots.points(outcome, f"2^{power}")
            _report(run, outcome, f"33 GB, 2^{power} bins, ")
    caption = f"{SIMULATED} As before, with 4,096 million keys (33 GB). Paper: Figure 16."
    title = "Maximum latency against duration, 16 workers, by number of bins"
    run.draw(plots.latency_against_duration(_by_strategy(points), title, caption, legend="bins"), "bins")


def _by_strategy(points: list[plots.Point]) -> list[plots.Point]:
    order = list(dict.fromkeys(point.strategy for point in points))
    return sorted(points, key=lambda point: order.index(point.strategy))


@figure("simulator-1024", "simulated: 1,024 workers, 4 TB of state, by link; a straggler; the autoscaler over a day")
def thousand(run: Run) -> None:
    costs = read_costs()
    _links(run, costs)
    _straggler(run, costs)
    _scaling(run, costs)


def _links(run: Run, costs: MeasuredCosts) -> None:
    load = SimulatedLoad(1000 * MILLION, 20.0, 1 << 14, 4 * TERABYTE, epoch=0.1, report=1.0)
    points = []
    for speed in run.each("links", (1, 10, 25, 100)):
        cluster = replace(LARGE, bandwidth=speed * GIGABIT)
        for name, make in _strategies(1024, 1.0, 1024):
            outcome = _migrated(cluster, load, costs, name, make)
            points += plots.points(outcome, f"{speed} Gbit/s")
            _report(run, outcome, f"4 TB, {speed} Gbit/s, ")
    caption = (
        f"{SIMULATED} 256 machines with four workers each, 500 billion keys (4 TB), a billion records/s, 2^14 bins, "
        "epochs of 100 ms; a quarter of the state moves."
    )
    title = "Maximum latency against duration, 1,024 workers, by link"
    run.draw(plots.latency_against_duration(_by_strategy(points), title, caption, legend="link"), "links")


def _straggler(run: Run, costs: MeasuredCosts) -> None:
    """One machine's workers take three times as long; with the closed loop, and without."""
    slow = replace(LARGE, slow=dict.fromkeys(range(8, 12), 3.0))
    load = SimulatedLoad(8000 * MILLION, 60.0, 1 << 14, TERABYTE, epoch=0.1, report=1.0)
    runs = []
    for name in run.each("straggler", ("left alone", "with the closed loop")):
        simulated = SimulatedRun(slow, costs, load)
        if name != "left alone":
            driver = Driver(
                simulated.controller,
                Loop(by_bins(theta=0.3)),
                strategy=megaphone.batched(64, budget=8 << 30),
                cost="nanoseconds",
            )
            simulated.hooks.append(lambda _, driver=driver: _stepped(driver))  # type: ignore[misc]
        runs.append((name, simulated.run().outcome(1.0, 1.0)))
        late = runs[-1][1].timeline.rows()[-5:]
        run.report(f"a slow machine, {name}: median of the last seconds", late[0][1][2] / 1e6, "ms")
    caption = (
        f"{SIMULATED} 1,024 workers, 1 TB, 8 billion records/s, epochs of 100 ms; the workers of one machine take "
        "three times as long for everything. The closed loop (planners.loop) sees processing time by bin."
    )
    run.draw(plots.timelines(runs, "A slow machine among 256", caption), "straggler")


def _stepped(driver: Driver[Strategy]) -> None:
    driver.step()


def _scaling(run: Run, costs: MeasuredCosts) -> None:
    curve = diurnal(600 if run.quick else 3600)
    most = max(curve)
    rate = 12_000 * MILLION

    def offered(second: float) -> float:
        return rate * curve[min(len(curve) - 1, int(second))] / most

    load = SimulatedLoad(offered, float(len(curve)), 1 << 14, TERABYTE, epoch=0.25, report=5.0, outstanding=400)
    simulated = SimulatedRun(LARGE, costs, load, members=256)
    settings = ScaleSettings(utilisation=0.6, minimum=64, maximum=1024, catch_up=30.0)
    driver = ScaleDriver(SimulatedScaling(simulated, USUAL * LARGE.workers), Autoscaler(settings))
    readings = SimulatedReadings(simulated, driver, 10.0)
    simulated.run()
    changes = [decision for decision in driver.decisions if decision.acts]
    run.report("autoscaler, changes", len(changes), "changes")
    run.report("autoscaler, most workers", max(n for _, n in readings.workers), "workers")
    run.report("autoscaler, greatest backlog", max(waiting for _, waiting in readings.backlog), "s")
    run.report("autoscaler, state moved", simulated.moved / TERABYTE, "TB")
    _draw_scaling(run, curve, rate / most, readings, np.array(simulated.done), load)


def _draw_scaling(
    run: Run, curve: list[float], scale: float, readings: SimulatedReadings, done: np.ndarray, load: SimulatedLoad
) -> None:
    from megaphone.harness.plots.style import COLOURS, finish, house_style, new_figure

    with house_style():
        drawn, (axes,) = new_figure(8, 3.6)
        seconds = np.arange(len(curve)) / 60
        axes.plot(seconds, np.array(curve) * scale / 1e9, color=COLOURS[1], label="billion records/s offered")
        axes.set_xlabel("minutes")
        axes.set_ylabel("billion records/s")
        axes.legend(loc="upper left", frameon=False)
        right = axes.twinx()
        at, workers = zip(*readings.workers, (len(curve), readings.workers[-1][1]), strict=True)
        right.step(np.array(at) / 60, workers, where="post", color=COLOURS[0], label="workers")
        right.set_ylabel("workers")
        right.legend(loc="upper right", frameon=False)
        late = (done - (np.arange(len(done)) + 1) * load.epoch).max()
    caption = (
        f"{SIMULATED} The autoscaler (planners.scaling) from 64 to 1,024 workers, 1 TB of state, decisions every 10 s; "
        f"state moves at 10 Gbit/s a machine. The latest epoch was complete {late:.1f} s after its end."
    )
    run.draw(finish(drawn, "The autoscaler over two days of an hour", caption), "scaling")
