"""Slow and obviously right: what the planners' answers are held against. Exact fractions, plain enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations
from math import ceil


@dataclass(frozen=True)
class Case:
    """A request: `tau` as a fraction of whole numbers, so that balance can be judged exactly."""

    cuts: tuple[int, ...]
    nodes: int
    sizes: tuple[int, ...]
    loads: tuple[int, ...]
    tau: Fraction

    @property
    def tasks(self) -> int:
        return len(self.sizes)


def balanced_cuts(case: Case) -> Iterator[tuple[int, ...]]:
    """Every way to cut the tasks into so many intervals of bounded load."""
    return balanced(case.loads, case.nodes, case.tau)


def balanced(loads: Sequence[int], nodes: int, tau: Fraction) -> Iterator[tuple[int, ...]]:
    m = len(loads)
    for inner in combinations_with_replacement(range(m + 1), nodes - 1):
        cuts = (0, *inner, m)
        if all(sum(loads[a:b]) * nodes <= (1 + tau) * sum(loads) for a, b in pairwise(cuts)):
            yield cuts


def kept(old: Sequence[int], new: Sequence[int], sizes: Sequence[int]) -> int:
    """The most state that can stay, over all ways to give the new intervals to the old nodes and to new ones."""
    n, count = len(old) - 1, len(new) - 1

    def overlap(y: int, i: int) -> int:
        return sum(s for j, s in enumerate(sizes) if old[y] <= j < old[y + 1] and new[i] <= j < new[i + 1])

    gains = [[overlap(y, i) if y < n else 0 for i in range(count)] for y in range(n + count)]
    rows = range(max(n, count))
    return max(sum(gains[y][i] for i, y in enumerate(chosen)) for chosen in permutations(rows, count))


def cheapest(case: Case) -> int | None:
    """The least cost, or None if nothing is balanced."""
    costs = [sum(case.sizes) - kept(case.cuts, new, case.sizes) for new in balanced_cuts(case)]
    return min(costs, default=None)


def smallest_tau(loads: Sequence[int], nodes: int) -> Fraction:
    """Over all cuts, the least maximal load, over the mean, minus one."""
    m = len(loads)
    if not sum(loads):
        return Fraction(0)
    least = min(
        max(sum(loads[a:b]) for a, b in zip((0, *inner), (*inner, m), strict=True))
        for inner in combinations_with_replacement(range(m + 1), nodes - 1)
    )
    return Fraction(least * nodes, sum(loads)) - 1


def random_case(chance: random.Random, tasks: int = 6, nodes: int = 4) -> Case:
    """Weights with zeros, ties and heavy tails; nodes that idle; more nodes than tasks."""
    m = chance.randint(1, tasks)
    cuts = (0, *sorted(chance.randint(0, m) for _ in range(chance.randint(0, nodes - 1))), m)
    count, sizes, loads = chance.randint(1, nodes), _weights(chance, m), _weights(chance, m)
    tau = Fraction(chance.choice([0, 1, 3, 5, 8, 12, 16, 25, 60]), 10)
    if chance.random() < 0.7:  # from just feasible to a little more
        tau = max(0, smallest_tau(loads, count)) + chance.choice([0, 0, Fraction(1, 10), Fraction(1, 3), 1])
    return Case(cuts, count, sizes, loads, tau)


def _weights(chance: random.Random, count: int) -> tuple[int, ...]:
    kind = chance.choice(["zeros", "ties", "tails", "any"])
    if kind == "zeros":
        return tuple(chance.choice([0, 1, 1, 3]) for _ in range(count))
    if kind == "ties":
        return tuple(chance.choice([1, 2]) for _ in range(count))
    if kind == "tails":
        return tuple(ceil(1 / (1 - chance.random()) ** 2) for _ in range(count))
    return tuple(chance.randint(0, 20) for _ in range(count))
