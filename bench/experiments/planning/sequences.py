"""What migrations cost in the mean, over many sequences of node counts drawn from the migration transition matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.experiments.planning.walks import Spread, Step, hashing_walk, mtm_walk, redist_walk, ssm_walk, storm_walk
from bench.experiments.planning.workload import drifting, resizing, steady, transitions, word_count
from bench.registry import benchmark
from bench.run import Run
from planners import Intervals, Tables, Tasks, oms
from planners.intervals.feasibility import tightest_cuts
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import Transitions

LENGTH = 100  # migrations in a row, as in the paper


def drawn(
    matrix: Transitions, tasks: Tasks, sequences: int, length: int = LENGTH, drift: bool = False, resize: bool = False
) -> list[list[Step]]:
    """Sequences of node counts, each beginning with another one in turn, with steady loads or drifting ones, or sizes
    that change."""
    many = []
    for seed in range(sequences):
        start = matrix.counts[seed % len(matrix.counts)]
        loads = drifting(tasks, seed) if drift else resizing(tasks, seed) if resize else steady(tasks)
        many.append([Step(nodes, next(loads)) for nodes in (start, *matrix.sample(start, length, seed))])
    return many


@benchmark("sequences", "mean cost of 100 migrations in a row, by planner, with the spread over sequences")
def sequences(run: Run) -> None:
    tasks, matrix = word_count(16 if run.quick else 24), transitions(3, 6)
    many = drawn(matrix, tasks, 20 if run.quick else 200)
    for tau in (0.4, 0.6, 1.2):
        _compare(run, tasks, matrix, many, tau)
    _resized(run, tasks, matrix)
    _clairvoyant(run)


def _resized(run: Run, tasks: Tasks, matrix: Transitions) -> None:
    """State sizes that change along a sequence: tables know the mean, and plans are made with what there is."""
    many, tau = drawn(matrix, tasks, 10 if run.quick else 50, resize=True), 0.6
    tables = Tables.of(project(MTMProblem(tasks, matrix, tau, 0.8)))
    single = Spread.of(ssm_walk(tau), many)
    run.report(f"m = {len(tasks)}, tau = {tau}, sizes that change: ssm, mean", 100 * single.mean, "%")
    aware = Spread.of(mtm_walk(tables), many)
    name = f"m = {len(tasks)}, tau = {tau}, sizes that change: mtm_aware, mean"
    run.report(name, 100 * aware.mean, "%", baseline=100 * single.mean)


def _compare(run: Run, tasks: Tasks, matrix: Transitions, many: list[list[Step]], tau: float) -> None:
    gamma = 0.8
    label = f"m = {len(tasks)}, 3 to 6 nodes, tau = {tau}, {len(many)} sequences"
    tables = Tables.of(project(MTMProblem(tasks, matrix, tau, gamma)))
    single, aware = ssm_walk(tau), mtm_walk(tables)
    walks = {
        f"mtm_aware, gamma = {gamma}": aware,
        "ssm": single,
        "redist": redist_walk(tau),
        "consistent hashing": hashing_walk(tasks, 20 if run.quick else 100),
        "storm": storm_walk(),
    }
    baseline = Spread.of(single, many)
    for name, walk in run.each(f"tau = {tau}", list(walks.items())):
        spread = Spread.of(walk, many)
        run.report(f"{label}: {name}, mean", 100 * spread.mean, "%", baseline=100 * baseline.mean)
        run.report(f"{label}: {name}, deviation of sequences", 100 * spread.deviation, "%")
    gains = [np.mean(single(steps)) - np.mean(aware(steps)) for steps in many]
    error = float(np.std(gains) / len(gains) ** 0.5)
    less = 100 * float(np.mean(np.array(gains) > 0))
    run.report(f"tau = {tau}: sequences in which mtm_aware costs less than ssm", less, "%")
    run.report(f"tau = {tau}: what mtm_aware saves, mean", 100 * float(np.mean(gains)), "% of the state")
    run.report(f"tau = {tau}: what mtm_aware saves, standard error", 100 * error, "% of the state")


def _clairvoyant(run: Run) -> None:
    """How far both are from a planner that knows the whole sequence: `oms`, on fewer tasks and shorter sequences."""
    tasks, matrix, tau = word_count(14), transitions(2, 4), 0.6
    many = drawn(matrix, tasks, 5 if run.quick else 30, length=20)
    tables = Tables.of(project(MTMProblem(tasks, matrix, tau, 0.8)))
    label = "m = 14, 2 to 4 nodes, tau = 0.6, 20 migrations"
    known = float(np.mean([_known(steps, tau) for steps in run.each("oms", many)]))
    for name, walk in (("mtm_aware", mtm_walk(tables)), ("ssm", ssm_walk(tau))):
        run.report(f"{label}: {name}, against oms", 100 * Spread.of(walk, many).mean, "%", baseline=100 * known)


def _known(steps: Sequence[Step], tau: float) -> float:
    tasks, limits = steps[0].tasks, [(step.nodes, tau) for step in steps[1:]]
    current = Intervals(tightest_cuts(tasks, steps[0].nodes))
    plans = oms(current, steps=limits, sizes=tasks.sizes, loads=tasks.loads)
    return float(np.mean([plan.share for plan in plans]))
