"""The cheapest join order: dynamic programming over subsets of streams, bushy plans included.

The cheapest way to join some streams does not depend on what they are joined with later, because a join's cost depends
on what its sides have in them alone. So each subset is solved once, by trying every cut into two: 3^n cuts, 59,049 for
ten streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planners.plans.costs import WorkModel
from planners.plans.orders import Order, write
from planners.plans.statistics import Cardinalities, JoinStatistics, Streams


@dataclass(frozen=True)
class JoinPlan:
    """An order, and what it is predicted to cost."""

    order: Order
    steps: float  # per unit of time
    tuples: float  # in all states

    def __str__(self) -> str:
        return write(self.order)


def cheapest(statistics: JoinStatistics, nested: bool = False) -> JoinPlan:
    """The order that costs least; of equal ones the one that has fewest tuples in its states, then the first.

    >>> rates = dict.fromkeys("abc", 1.0)
    >>> rare = {frozenset("ab"): 0.05, frozenset("ac"): 0.0025, frozenset("bc"): 0.0025}
    >>> str(cheapest(JoinStatistics(tuple("abc"), 60.0, rates, rare)))
    'a (b c)'
    """
    model = WorkModel(Cardinalities(statistics), nested)
    names = sorted(statistics.streams)
    best: dict[int, tuple[float, float, Order]] = {}
    subsets = [frozenset(name for i, name in enumerate(names) if bits >> i & 1) for bits in range(1 << len(names))]
    for i, name in enumerate(names):
        best[1 << i] = (0.0, model.sizes.size(subsets[1 << i]), name)
    for bits in range(1, 1 << len(names)):
        if bits not in best:
            best[bits] = min(_candidates(bits, subsets, best, model), key=lambda found: found[:2])
    steps, _, order = best[(1 << len(names)) - 1]
    return JoinPlan(order, steps, model.tuples(order))


def _candidates(
    bits: int, subsets: list[Streams], best: dict[int, tuple[float, float, Order]], model: WorkModel
) -> Iterator[tuple[float, float, Order]]:
    """Every cut of a subset into two, each with the best way to make its sides. The lowest stream is on the left."""
    rest = bits & (bits - 1)
    part = rest
    while part:
        one, two = best[bits ^ part], best[part]
        steps = one[0] + two[0] + model.join(subsets[bits ^ part], subsets[part])
        order: Order = (one[2], two[2])
        yield steps, one[1] + two[1] + model.sizes.size(subsets[bits]), order
        part = (part - 1) & rest
