"""Figures skew-7 to skew-11 and skew-17 to skew-21: hashing's imbalance, and what planners do about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.experiments.skew.drawing import Panel, draw
from bench.experiments.skew.scenario import PLANNERS, Adjustment, Scenario, adjustments, mean_cost, median_ms
from bench.registry import figure
from bench.run import Run
from bench.skew import frequencies
from planners.rebalance import min_mig, mixed

THETAS = (0.02, 0.08, 0.15, 0.3)
LINES = [(planner, window) for planner in ("Mixed", "MinTable") for window in (1, 5)]


def _scenario(run: Run) -> Scenario:
    return Scenario(keys=20_000, intervals=3) if run.quick else Scenario()


@figure("skew-7", "imbalance under hashing, by instances and by keys")
def skew_7(run: Run) -> None:
    base = _scenario(run).but(keys=10_000)
    rounds = 10 if run.quick else 50
    by_instances = Panel("load of an instance / mean", "share of instances (%)", steps=True)
    by_keys = Panel("load of an instance / mean", "share of instances (%)", steps=True)
    for instances in run.each("instances", [5, 10, 20, 40]):
        _hashed_loads(run, by_instances, f"{instances} instances", base.but(instances=instances), rounds)
    for instances in (5, 40):
        ring = base.but(instances=instances, ring=True)
        _hashed_loads(run, by_instances, f"{instances} instances, consistent hashing", ring, rounds)
    for keys in run.each("keys", [5_000, 10_000, 100_000] + [1_000_000] * (not run.quick)):
        _hashed_loads(run, by_keys, f"{keys:,} keys", base.but(keys=keys), rounds)
    caption = f"z = {base.z}; left: {base.keys:,} keys; right: {base.instances} instances; "
    caption += f"{rounds} intervals, in each of which the frequencies are given to keys anew; "
    caption += "consistent hashing: a ring with 100 points of each instance"
    draw(run, "Hashing: distribution of load over instances", caption, by_instances, by_keys)


def _hashed_loads(run: Run, panel: Panel, label: str, scenario: Scenario, rounds: int) -> None:
    """Each interval gives the same frequencies to keys anew: what hashing does, and nothing of how intervals differ."""
    rng = np.random.default_rng(scenario.seed)
    home = scenario.home
    loads = [
        _loads(home, frequencies(scenario.keys, scenario.z, scenario.records, rng), scenario.instances)
        for _ in range(rounds)
    ]
    relative = np.sort(np.concatenate([load / load.mean() for load in loads]))
    panel.series[label] = (relative.tolist(), (100 * np.arange(1, relative.size + 1) / relative.size).tolist())
    run.report(f"{label}: greatest load over the mean, median interval", _worst(loads), "x")


def _loads(home: NDArray[np.int32], frequency: NDArray[np.float64], instances: int) -> NDArray[np.float64]:
    return np.bincount(home, weights=frequency, minlength=instances).astype(np.float64)


def _worst(loads: Sequence[NDArray[np.float64]]) -> float:
    return float(np.median([load.max() / load.mean() for load in loads]))


def _time_and_cost(run: Run, title: str, parameter: str, values: Sequence[float], axis: str, log_x: int = 0) -> None:
    """Figures 8, 9 and 10: plan generation and migration cost, by one parameter."""
    base = _scenario(run)
    times = Panel(axis, "CPU time to make a plan (ms, median)", log_x=log_x, log_y=bool(log_x))
    costs = Panel(axis, "migration cost (% of all state)", log_x=log_x)
    for value in run.each(parameter, list(values)):
        for planner, window in LINES:
            scenario = base.but(window=window, **{parameter: value})
            found = adjustments(scenario, PLANNERS[planner])
            line = f"{planner}, w = {window}"
            times.add(line, value, median_ms(found))
            costs.add(line, value, mean_cost(found))
            run.report(f"{line}, {parameter} {value:g}: plan", median_ms(found), "ms")
            run.report(f"{line}, {parameter} {value:g}: migration cost", mean_cost(found), "%")
            run.report(f"{line}, {parameter} {value:g}: within bounds", _met(found), "% of plans")
    draw(run, title, base.label(parameter, "window"), times, costs)


def _met(found: Sequence[Adjustment]) -> float:
    return 100 * float(np.mean([adjustment.plan.met for adjustment in found]))


@figure("skew-8", "plan generation and migration cost by number of task instances")
def skew_8(run: Run) -> None:
    values = [5, 20, 40] if run.quick else [5, 10, 15, 20, 25, 30, 35, 40]
    _time_and_cost(run, "Plans by number of instances", "instances", values, "instances N_D")


@figure("skew-9", "plan generation and migration cost by balance tolerance")
def skew_9(run: Run) -> None:
    values = [0.02, 0.1, 0.3] if run.quick else [0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4]
    _time_and_cost(run, "Plans by balance tolerance", "theta", values, "tolerance θ")


@figure("skew-10", "plan generation and migration cost by key domain")
def skew_10(run: Run) -> None:
    values = [5_000, 10_000, 100_000] if run.quick else [5_000, 10_000, 100_000, 1_000_000]
    _time_and_cost(run, "Plans by number of keys", "keys", values, "keys K", log_x=10)


@figure("skew-11", "degree of discretization: time and error of load estimates")
def skew_11(run: Run) -> None:
    """Both kinds of vectors: representatives as in the paper, and means."""
    base = _scenario(run).but(keys=100_000 if run.quick else 1_000_000)
    degrees = [0, 3, 8] if run.quick else list(range(9))
    ticks = {2.0**r: str(2**r) for r in degrees} | {0.5: "keys"}
    times = Panel("degree of discretization R", "CPU time to make a plan (ms, median)", log_x=2, ticks=ticks)
    errors = Panel("degree of discretization R", "error of load estimates (% of the mean, worst)", log_x=2, ticks=ticks)
    plain = adjustments(base, mixed)
    times.add("keys themselves", 0.5, median_ms(plain))
    errors.add("keys themselves", 0.5, 0.0)
    run.report("keys themselves: plan", median_ms(plain), "ms")
    for r in run.each("R", degrees):
        for label, means in (("representatives (the paper)", False), ("means", True)):
            found = adjustments(base, mixed, r=r, means=means)
            error = 100 * max(adjustment.plan.error for adjustment in found)
            times.add(label, 2**r, median_ms(found))
            errors.add(label, 2**r, error)
            run.report(f"{label}, R = {2**r}: plan", median_ms(found), "ms", baseline=median_ms(plain))
            run.report(f"{label}, R = {2**r}: worst error", error, "%")
    draw(run, "Mixed on vectors", base.label(), times, errors)


@figure("skew-17", "migration cost by routing table bound")
def skew_17(run: Run) -> None:
    base = _scenario(run)
    panel = Panel("routing table bound N_A", "migration cost (% of all state)", log_x=2)
    for exponent in run.each("bound", [5, 9, 13] if run.quick else list(range(1, 15))):
        for theta in THETAS:
            found = adjustments(base.but(table=2**exponent, theta=theta), mixed)
            panel.add(f"θ = {theta}", 2**exponent, mean_cost(found))
            run.report(f"theta {theta}, bound {2**exponent}: migration cost", mean_cost(found), "%")
    draw(run, "Mixed: migration cost by table bound", base.label("table", "theta"), panel)


@figure("skew-18", "routing table size by number of adjustments")
def skew_18(run: Run) -> None:
    powers = 6 if run.quick else 10
    base = Scenario(keys=10_000, intervals=2**powers, window=1, table=None)
    panel = Panel("adjustments", "entries of the routing table", log_x=2)
    for theta in run.each("theta", THETAS):
        found = adjustments(base.but(theta=theta), min_mig)
        for power in range(powers + 1):
            size = found[2**power - 1].plan.table.size
            panel.add(f"θ = {theta}", 2**power, size)
            run.report(f"theta {theta}, after {2**power} adjustments", size, "entries")
    limit = base.keys * (base.instances - 1) / base.instances
    panel.series["(N_D - 1) / N_D · K (dashed)"] = ([1, 2**powers], [limit, limit])
    draw(run, "MinMig: routing table size by adjustments", base.label("theta", "table", "intervals"), panel)


@figure("skew-19", "migration cost by window size")
def skew_19(run: Run) -> None:
    base = _scenario(run)
    panel = Panel("window w (intervals)", "migration cost (% of all state)")
    for window in run.each("window", [1, 10, 20] if run.quick else [1, 5, 10, 15, 20]):
        for planner in ("Mixed", "MinTable"):
            found = adjustments(base.but(window=window), PLANNERS[planner])
            panel.add(planner, window, mean_cost(found))
            run.report(f"{planner}, window {window}: migration cost", mean_cost(found), "%")
    draw(run, "Migration cost by window", base.label("window"), panel)


def _by_beta(run: Run, of_table: bool) -> None:
    """Figures 20 and 21: MinMig, mean of ten adjustments."""
    base = _scenario(run).but(intervals=10, table=None)
    what, unit = ("routing table size", "entries") if of_table else ("migration cost", "% of all state")
    panel = Panel("weight β of cost against state", f"{what} ({unit})")
    for beta in run.each("beta", [1.0, 1.5, 2.0] if run.quick else [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0]):
        for theta in THETAS:
            found = adjustments(base.but(beta=beta, theta=theta), min_mig)
            sizes = float(np.mean([adjustment.plan.table.size for adjustment in found]))
            value = sizes if of_table else mean_cost(found)
            panel.add(f"θ = {theta}", beta, value)
            run.report(f"theta {theta}, beta {beta}: {what}", value, unit)
    draw(run, f"MinMig: {what} by β", base.label("beta", "theta", "table"), panel)


@figure("skew-20", "routing table size by the weight β")
def skew_20(run: Run) -> None:
    _by_beta(run, of_table=True)


@figure("skew-21", "migration cost by the weight β")
def skew_21(run: Run) -> None:
    _by_beta(run, of_table=False)
