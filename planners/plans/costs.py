"""What a plan costs while it runs, and what it costs to get from one to another (sections 2.2, 3.5 and 4.4 of HybMig).

Costs are counted in steps: a probe, a look at a pair, the making of a composite. With a hash table by key a probe looks
at pairs with the same key; with nested loops, the paper's measure, at all. The cost of a join depends on what it joins
and not on how that was made, so that costs of joins add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planners.errors import BadRequest
from planners.plans.orders import Order, nodes_of, streams_of
from planners.plans.statistics import Cardinalities, Streams

METHODS = ("moving-state", "parallel-track", "hybmig", "gms", "gpt", "ghm")


class WorkModel:
    """Steps per unit of time."""

    def __init__(self, sizes: Cardinalities, nested: bool = False) -> None:
        self.sizes = sizes
        self._nested = nested

    def _looked_at(self, left: Streams, right: Streams) -> float:
        """The share of all pairs of the two sides that a probe looks at."""
        if self._nested:
            return 1.0
        apart = self.sizes.share(left) * self.sizes.share(right)
        return self.sizes.share(left | right) / apart if apart else 0.0

    def join(self, left: Streams, right: Streams) -> float:
        """Steps per unit of time of one join."""
        made, size = self.sizes.made, self.sizes.size
        pairs = made(left) * size(right) + made(right) * size(left)
        return made(left) + made(right) + pairs * self._looked_at(left, right) + made(left | right)

    def order(self, order: Order) -> float:
        """Steps per unit of time of a plan."""
        return sum(self.join(left, right) for left, right in nodes_of(order))

    def filling(self, old: Order, new: Order) -> float:
        """Steps to compute the states that only the new plan has, from below."""
        whole = streams_of(new)
        had = {left | right for left, right in nodes_of(old)}
        steps = 0.0
        for left, right in nodes_of(new):
            if left | right != whole and left | right not in had:
                pairs = self.sizes.size(left) * self.sizes.size(right) * self._looked_at(left, right)
                steps += pairs + self.sizes.size(left | right)
        return steps

    def tuples(self, order: Order) -> float:
        """What is in all states of a plan."""
        whole = streams_of(order)
        inner = {side for sides in nodes_of(order) for side in sides}
        return sum(self.sizes.size(streams) for streams in inner if streams != whole)


@dataclass(frozen=True)
class MigrationCost:
    """What a migration is predicted to cost. Times are infinite if it never ends, and None if nothing is known of the
    machine's capacity."""

    method: str
    steps: float  # beyond those of the plan that is then running alone
    duration: float | None
    silence: float | None  # no results for so long


def migration_costs(
    model: WorkModel, old: Order, new: Order, capacity: float | None = None
) -> Mapping[str, MigrationCost]:
    """By method. `capacity`: steps per unit of time that the machine can do.

    Moving state fills states. Parallel track and GPT run the old plan beside the new one for a window. HybMig does so
    until the background has filled the states, at most for a window; section 3 has no formula for it, so that the whole
    of the old plan is counted, of which it does a part. GMS and GHM feed the new plan the last window.
    """
    if capacity is not None and not capacity > 0:
        raise BadRequest(f"a capacity is a positive number of steps per unit of time, not {capacity!r}")
    window = model.sizes.statistics.window
    before, after, filling = model.order(old), model.order(new), model.filling(old, new)
    refeeding = window * after  # n tau' w T'_new, with the old data taken to be as the new is
    spare = math.inf if capacity is None else capacity - before - after
    in_background = filling / spare if spare > 0 else math.inf
    hybrid = min(window, in_background)
    filled = filling if in_background < window else 0.0
    catching_up = refeeding / spare if spare > 0 else math.inf

    def cost(method: str, steps: float, duration: float, silence: float = 0.0) -> MigrationCost:
        known = capacity is not None or method in ("parallel-track", "gpt")
        return MigrationCost(method, steps, duration if known else None, silence if known else None)

    stopped, fed = filling / (capacity or math.inf), refeeding / (capacity or math.inf)
    found = [
        cost("moving-state", filling, stopped, stopped),
        cost("parallel-track", window * before, window),
        cost("hybmig", filled + hybrid * before if capacity else filling + window * before, hybrid),
        cost("gms", refeeding, fed, fed),
        cost("gpt", window * before, window),
        cost("ghm", refeeding + min(catching_up, 1e300) * before if capacity else refeeding, catching_up),
    ]
    return {each.method: each for each in found}
