"""How many workers a dataflow needs: the DS2 autoscaler (Kalavri et al., OSDI 2018).

- `work`: what was done in an interval: records, flows and useful time, by operator. Plain data.
- `need`: from that to the workers needed, by the paper's rule. Pure.
- `autoscaler`: interval by interval, whether to change anything, and why. Pure.
- `readings`: from counters of workers, read twice, to the work of an interval. Pure.
- `driver`: between it and what can be scaled. `placing`: planners as placements, for where state goes then.
- `curves`, `simulation`: recorded rates, and a dataflow that runs in a table of numbers, to judge the policy by.

The page is docs/autoscaling.md; without a dataflow: ``python -m planners scale --curve diurnal``.
"""

from planners.scaling.autoscaler import Autoscaler, ScaleDecision, ScaleSettings
from planners.scaling.driver import ScaleDriver
from planners.scaling.need import WorkerNeed, workers_needed
from planners.scaling.readings import work_between
from planners.scaling.work import OperatorWork, RecordFlow, SourceWork, WorkInterval

__all__ = [
    "Autoscaler",
    "OperatorWork",
    "RecordFlow",
    "ScaleDecision",
    "ScaleDriver",
    "ScaleSettings",
    "SourceWork",
    "WorkInterval",
    "WorkerNeed",
    "work_between",
    "workers_needed",
]
