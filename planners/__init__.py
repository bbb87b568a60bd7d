"""What should move where: pure functions from an assignment, loads, sizes and limits to a new assignment.

Here belong the model (assignments, loads, plans), the interval planners (SSM, OMS, MTM-aware), the rebalancing planners
(LLFD, MinTable, MinMig, Mixed), the hashing baselines, transfer schedules, and the closed loop that takes statistics of
a running dataflow to a ``megaphone`` controller. The offline pipeline lives in ``spark/``, the only place here that may
import pyspark.
"""

from planners.errors import BadRequest, Infeasible, PlannerError
from planners.model import BinMap, Intervals, Limits, Plan, Tasks
from planners.simple_ssm import simple_ssm
from planners.ssm import ssm

__all__ = [
    "BadRequest",
    "BinMap",
    "Infeasible",
    "Intervals",
    "Limits",
    "Plan",
    "PlannerError",
    "Tasks",
    "simple_ssm",
    "ssm",
]
