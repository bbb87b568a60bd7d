"""What should move where: pure functions from an assignment, loads, sizes and limits to a new assignment.

The rooms, each of which uses those above it only:

- `errors`: what planners refuse. `model`: tasks, limits, assignments as intervals and as maps of bins, plans.
  `decoding`: what files say, checked. `showing`: what people see of a loop.
- `intervals`: planners that give each node one interval of tasks: the cheapest migration (SSM), the cheapest known
  sequence (OMS), and what the papers compare with.
- `links`: in which phases moves go over the links; progressive mini-migrations, as strategies for `megaphone`.
- `rebalance`: rebalancing under skew (LLFD, MinTable, MinMig, Mixed), and what the paper compares with.
- `mtm`: MTM-aware planning, from tables of projected costs.
- `loop`: the closed loop, from statistics of a running dataflow to migrations.
- `plans`: the optimiser of join plans: the cheapest order, and when to change to it.
- `spark`: the tables of projected costs, made on a cluster. The only room here that imports pyspark.
- `live`: statistics to logs, logs to tables, tables to plans, while a dataflow runs.
- `scaling`: how many workers a dataflow needs: the DS2 autoscaler.
- `cli`: ``python -m planners plan | compare | explain | loop | live | order | scale`` (`__main__`).

`import planners` is cheap: a name is imported with its room when it is first asked for, so that nobody waits for numba
who plans nothing that is compiled, and nobody for `megaphone` who has nothing to migrate.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planners.errors import BadRequest, Infeasible, PlannerError
    from planners.intervals.baselines import consistent_hashing, redist, storm
    from planners.intervals.oms import oms
    from planners.intervals.simple_ssm import simple_ssm
    from planners.intervals.ssm import ssm
    from planners.links.schedule import Schedule, schedule
    from planners.links.strategies import mini_migrations, progressive, scheduled
    from planners.model import BinMap, Intervals, Limits, Plan, Tasks
    from planners.mtm.choice import mtm_aware
    from planners.mtm.tables import Tables
    from planners.rebalance.heuristics import llfd, min_mig, min_table, mixed, mixed_bf
    from planners.rebalance.pkg import pkg
    from planners.rebalance.plan import RoutingTable
    from planners.rebalance.readj import readj
    from planners.rebalance.sketch import SpaceSaving

__all__ = [
    "BadRequest",
    "BinMap",
    "Infeasible",
    "Intervals",
    "Limits",
    "Plan",
    "PlannerError",
    "RoutingTable",
    "Schedule",
    "SpaceSaving",
    "Tables",
    "Tasks",
    "consistent_hashing",
    "llfd",
    "min_mig",
    "min_table",
    "mini_migrations",
    "mixed",
    "mixed_bf",
    "mtm_aware",
    "oms",
    "pkg",
    "progressive",
    "readj",
    "redist",
    "schedule",
    "scheduled",
    "simple_ssm",
    "ssm",
    "storm",
]

_NAMES = {  # by module, what it has for users
    "planners.errors": ("BadRequest", "Infeasible", "PlannerError"),
    "planners.intervals.baselines": ("consistent_hashing", "redist", "storm"),
    "planners.intervals.oms": ("oms",),
    "planners.intervals.simple_ssm": ("simple_ssm",),
    "planners.intervals.ssm": ("ssm",),
    "planners.links.strategies": ("mini_migrations", "progressive", "scheduled"),
    "planners.links.schedule": ("Schedule", "schedule"),
    "planners.model": ("BinMap", "Intervals", "Limits", "Plan", "Tasks"),
    "planners.mtm.choice": ("mtm_aware",),
    "planners.mtm.tables": ("Tables",),
    "planners.rebalance.heuristics": ("llfd", "min_mig", "min_table", "mixed", "mixed_bf"),
    "planners.rebalance.pkg": ("pkg",),
    "planners.rebalance.plan": ("RoutingTable",),
    "planners.rebalance.readj": ("readj",),
    "planners.rebalance.sketch": ("SpaceSaving",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Imports a name's module when the name is first asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'planners' has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value  # from now on, asking costs a lookup
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
