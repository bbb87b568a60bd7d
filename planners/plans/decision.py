"""When to change a join's plan: statistics of an interval in, a decision out. Pure.

The loop does not flap. It acts when another plan has been cheaper by the share `hysteresis` for `patience` intervals
running, and when what that saves within `horizon` windows is more than what the migration is predicted to cost. For
`cool_down` windows after a migration it does nothing: until then the last one may still be under way. Samples of fewer
than `least` records of some stream say too little. Every decision says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planners.errors import BadRequest
from planners.plans.costs import METHODS, MigrationCost, WorkModel, migration_costs
from planners.plans.orders import Order, read, write
from planners.plans.search import JoinPlan, cheapest
from planners.plans.statistics import Cardinalities, JoinStatistics


@dataclass(frozen=True)
class Comparison:
    """The plan that runs and the cheapest one, in steps per unit of time, and what each method would cost."""

    order: Order
    steps: float
    tuples: float
    best: JoinPlan
    costs: Mapping[str, MigrationCost]

    @property
    def saving(self) -> float:
        """Steps per unit of time that the best plan saves."""
        return self.steps - self.best.steps

    @property
    def share(self) -> float:
        """The same as a share of what the running plan does."""
        return self.saving / self.steps if self.steps else 0.0

    def gain(self, method: str, time: float) -> float:
        """Steps that are saved in a time, less those of the migration. Negative: it does not pay."""
        return self.saving * time - self.costs[method].steps


def compare(plan: str, statistics: JoinStatistics, capacity: float | None = None, nested: bool = False) -> Comparison:
    """The plan that runs against the cheapest one."""
    order = read(plan, statistics.streams)
    model = WorkModel(Cardinalities(statistics), nested)
    best = cheapest(statistics, nested)
    costs = migration_costs(model, order, best.order, capacity)
    return Comparison(order, model.order(order), model.tuples(order), best, costs)


@dataclass(frozen=True)
class ReplanDecision:
    """What was decided for an interval, and why. `plan` is set if the plan is to change."""

    interval: int
    reason: str
    plan: str | None = None
    found: Comparison | None = None

    @property
    def acts(self) -> bool:
        """Whether the plan is to change."""
        return self.plan is not None

    def __str__(self) -> str:
        return f"interval {self.interval}: {'replan' if self.acts else 'stay'}: {self.reason}"


@dataclass
class ReplanLoop:
    """Decides, interval by interval. Its memory is how long another plan has been better, and when it last acted."""

    method: str = "hybmig"
    hysteresis: float = 0.2
    patience: int = 2
    horizon: float = 5.0  # windows: for so long statistics are expected to stay as they are
    cool_down: float = 1.0  # windows
    least: int = 100
    capacity: float | None = None  # steps per unit of time that the machine can do, if that is known
    _interval: int = field(default=-1, init=False)
    _better: int = field(default=0, init=False)  # for how many intervals running
    _acted: float | None = field(default=None, init=False)  # the time of the last decision to act

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise BadRequest(f"there is no method {self.method!r}: there are {', '.join(METHODS)}")
        if self.patience < 1 or not 0 <= self.hysteresis < 1 or not self.horizon > 0 or not self.cool_down >= 0:
            raise BadRequest(
                "patience is 1 or more, hysteresis from 0 to below 1, the horizon positive, the cool-down 0 or more: "
                f"not {self.patience}, {self.hysteresis}, {self.horizon}, {self.cool_down}"
            )

    def decide(self, plan: str, statistics: JoinStatistics, now: float) -> ReplanDecision:
        """The decision for an interval that ended at `now`, in the dataflow's time, while `plan` ran."""
        self._interval += 1
        if statistics.least_sampled < self.least:
            return self._stay(f"{statistics.least_sampled} records of a stream were sampled, of {self.least} wanted")
        found = compare(plan, statistics, self.capacity)
        if found.best.order == found.order:
            self._better = 0
            return self._stay(f"{write(found.order)} is the cheapest plan", found)
        saves = f"{found.best} would save {found.share:.0%} of {found.steps:,.0f} steps"
        self._better = self._better + 1 if found.share > self.hysteresis else 0
        if not self._better:
            return self._stay(f"{saves}, and less than {self.hysteresis:.0%} is not worth it", found)
        if self._acted is not None and now - self._acted < self.cool_down * statistics.window:
            return self._stay(f"{saves}, but the last plan came {now - self._acted:g} ago", found)
        if self._better < self.patience:
            return self._stay(f"{saves}, for {self._better} of {self.patience} intervals", found)
        return self._weigh(found, statistics.window, saves, now)

    def hold(self, reason: str) -> ReplanDecision:
        """The decision for an interval of which there are no statistics."""
        self._interval += 1
        return self._stay(reason)

    def _weigh(self, found: Comparison, window: float, saves: str, now: float) -> ReplanDecision:
        cost = found.costs[self.method]
        gain = found.gain(self.method, self.horizon * window)
        price = f"{self.method} costs {cost.steps:,.0f}"
        if not gain > 0:
            saved = found.saving * self.horizon * window
            return self._stay(f"{saves}, {saved:,.0f} in {self.horizon:g} windows, but {price}", found)
        self._acted, self._better = now, 0
        reason = f"{saves}; {price}, and {self.horizon:g} windows gain {gain:,.0f}"
        return ReplanDecision(self._interval, reason, str(found.best), found)

    def _stay(self, reason: str, found: Comparison | None = None) -> ReplanDecision:
        return ReplanDecision(self._interval, reason, found=found)
