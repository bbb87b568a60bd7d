"""Many migrations in a row: what each of them costs a planner, as a share of all state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planners import Intervals, Tables, Tasks, mtm_aware, redist, ssm, storm
from planners.errors import NothingBalanced
from planners.intervals.baselines import ring
from planners.intervals.feasibility import smallest_tau, tightest_cuts
from planners.model import Assignment, Plan


@dataclass(frozen=True)
class Step:
    """So many nodes, and what tasks are like then."""

    nodes: int
    tasks: Tasks


Walk = Callable[[Sequence[Step]], list[float]]  # the first step is where it begins; the share that each other one moves


@dataclass(frozen=True)
class Spread:
    """The mean over sequences of their mean cost, and how far single sequences are from it (standard deviation)."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, walk: Walk, sequences: Sequence[Sequence[Step]]) -> Spread:
        means = [float(np.mean(walk(sequence))) for sequence in sequences]
        return cls(float(np.mean(means)), float(np.std(means)))


def ssm_walk(tau: float) -> Walk:
    return _by_partitioning(lambda current, step: _ssm(current, step, tau))


def mtm_walk(tables: Tables) -> Walk:
    """MTM-aware; a step for which the tables know nothing balanced is planned with SSM, as their documentation says."""

    def plan(current: Intervals, step: Step) -> Plan:
        tasks = step.tasks
        try:
            return mtm_aware(current, nodes=step.nodes, tables=tables, sizes=tasks.sizes, loads=tasks.loads)
        except NothingBalanced:  # loads have drifted so far that nothing in the tables is balanced
            return _ssm(current, step, tables.problem.tau)

    return _by_partitioning(plan)


def _ssm(current: Intervals, step: Step, tau: float) -> Plan:
    """SSM; where a burst allows no balance within tau, with the least tau that does."""
    tasks, least = step.tasks, smallest_tau(step.tasks, step.nodes)
    return ssm(current, nodes=step.nodes, sizes=tasks.sizes, loads=tasks.loads, tau=max(tau, least))


def _by_partitioning(plan: Callable[[Intervals, Step], Plan]) -> Walk:
    """Only the cuts matter to what follows (Lemma 5.1), so each step is planned once."""
    known: dict[tuple[tuple[int, ...], int, int], tuple[float, tuple[int, ...]]] = {}

    def walk(steps: Sequence[Step]) -> list[float]:
        cuts, shares = tuple(tightest_cuts(steps[0].tasks, steps[0].nodes)), []
        for step in steps[1:]:
            key = (cuts, step.nodes, id(step.tasks))
            if key not in known:
                made = plan(Intervals(cuts), step)
                known[key] = made.share, made.assignment.intervals().cuts
            share, cuts = known[key]
            shares.append(share)
        return shares

    return walk


def storm_walk() -> Walk:
    def plan(current: Assignment, step: Step) -> Plan:
        return storm(current, nodes=step.nodes, sizes=step.tasks.sizes, loads=step.tasks.loads)

    return _plainly(lambda first: plan(Intervals([0, len(first.tasks)]), first).assignment, plan)


def redist_walk(tau: float) -> Walk:
    def plan(current: Assignment, step: Step) -> Plan:
        return redist(current, nodes=step.nodes, sizes=step.tasks.sizes, loads=step.tasks.loads, tau=tau)

    return _plainly(lambda first: Intervals(tightest_cuts(first.tasks, first.nodes)), plan)


def hashing_walk(tasks: Tasks, rings: int) -> Walk:
    """The mean over so many rings, as chance decides what consistent hashing does (the paper: 100 runs)."""
    known: dict[tuple[int, int], float] = {}
    maps: dict[tuple[int, int], Assignment] = {}

    def share(now: int, then: int) -> float:
        if (now, then) not in known:
            for nodes in (now, then):
                for seed in range(rings):
                    maps.setdefault((seed, nodes), ring(len(tasks), range(nodes), seed))
            known[now, then] = float(
                np.mean([Plan.between("", maps[seed, now], maps[seed, then], tasks).share for seed in range(rings)])
            )
        return known[now, then]

    return lambda steps: [share(now.nodes, then.nodes) for now, then in pairwise(steps)]


def _plainly(start: Callable[[Step], Assignment], plan: Callable[[Assignment, Step], Plan]) -> Walk:
    def walk(steps: Sequence[Step]) -> list[float]:
        current, shares = start(steps[0]), []
        for step in steps[1:]:
            made = plan(current, step)
            current = made.assignment
            shares.append(made.share)
        return shares

    return walk
