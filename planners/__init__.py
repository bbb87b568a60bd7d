"""What should move where: pure functions from an assignment, loads, sizes and limits to a new assignment.

- `model`: tasks, limits, assignments as intervals and as maps of bins, plans. `errors`: what planners refuse.
- Interval planners. `ssm`: the cheapest single migration (`ssm_kernel`: the compiled program behind it; `simple_ssm`:
  the paper's recursion, an oracle; `feasibility`: the least tau). `oms`: the cheapest known sequence.
- MTM-aware planning. `mtm`: the online choice, from `tables` of projected costs; `problem`, `partitionings`, `grids`,
  `matching`, `cheapest`, `policy`, `projected`: how these are computed; `transitions`: the matrix.
- `baselines`: Storm's even split, consistent hashing, Redist.
- `schedule`: in which phases moves go over the links; `progressive`: mini-migrations, as strategies for `megaphone`.
- `command`: ``python -m planners plan | compare | explain | loop``; `files` reads and writes for it, `picture` draws.
  `decoding`: what files say, checked; `table_files`: those of tables, and how they are known to be whole.

- Rebalancing under skew: ``rebalance/`` (LLFD, MinTable, MinMig, Mixed and what they are compared with), `sketch`
  (heavy
  keys), ``workloads/`` (generators of skewed data).

- The closed loop. `loop`: from statistics of a running dataflow to a ``megaphone`` controller; `observation`: what it
  sees, and any planner in the form it takes; `replay`: the same on a log.

The offline pipeline lives in ``spark/``, the only place here that may import pyspark.
"""

from planners.errors import BadRequest, Infeasible, PlannerError
from planners.intervals.baselines import consistent_hashing, redist, storm
from planners.intervals.oms import oms
from planners.intervals.simple_ssm import simple_ssm
from planners.intervals.ssm import ssm
from planners.links.progressive import mini_migrations, progressive, scheduled
from planners.links.schedule import Schedule, schedule
from planners.model import BinMap, Intervals, Limits, Plan, Tasks
from planners.mtm.choice import Tables, mtm_aware
from planners.rebalance import RoutingTable, llfd, min_mig, min_table, mixed, mixed_bf, pkg, readj
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
