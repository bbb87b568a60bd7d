"""The optimiser of join plans: from statistics of streams to the cheapest order, and whether to change to it.

- `orders`: join orders as plain values. `statistics`: what is known of the streams, and how much is in states.
- `sampling`: statistics from samples of the streams.
- `costs`: what a plan costs while it runs, and what migrating costs. `search`: the cheapest order.
- `decision`: when to change, with hysteresis. `driver`: the closed loop around a controller.
- `watching`: samples of streams while they flow, for the driver. Import it by name: it alone needs the engine.

All but the last two are pure functions of plain data. ``python -m planners order LOG --dry-run`` runs it on a log.
"""

from planners.plans.costs import MigrationCost, migration_costs
from planners.plans.decision import ReplanDecision, ReplanLoop, compare
from planners.plans.driver import PlanDriver
from planners.plans.sampling import JoinSample, JoinSampler, estimate, merged
from planners.plans.search import JoinPlan, cheapest
from planners.plans.statistics import JoinStatistics

__all__ = [
    "JoinPlan",
    "JoinSample",
    "JoinSampler",
    "JoinStatistics",
    "MigrationCost",
    "PlanDriver",
    "ReplanDecision",
    "ReplanLoop",
    "cheapest",
    "compare",
    "estimate",
    "merged",
    "migration_costs",
]
