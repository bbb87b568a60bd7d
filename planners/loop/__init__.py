"""The closed loop: from statistics of a running dataflow to migrations.

- `loop`: statistics of an interval in, a decision out; and the thin driver between it and a controller.
- `observation`: what the loop sees, and what a planner proposes. Pure.
- `shaping`: which bins there should be: what is split and merged. Pure.
- `planning`: any planner in the form that the loop takes. Pure.
- `steering`: what the loop asks of a controller, as Protocols.

On a log, without a dataflow: ``python -m planners loop LOG`` (`planners.cli.replay`).
"""

from planners.loop.loop import Decision, Driver, Loop, observe
from planners.loop.observation import Observation, Proposal
from planners.loop.planning import by_bins, by_intervals, by_keys
from planners.loop.shaping import BinShape, Shaping

__all__ = [
    "BinShape",
    "Decision",
    "Driver",
    "Loop",
    "Observation",
    "Proposal",
    "Shaping",
    "by_bins",
    "by_intervals",
    "by_keys",
    "observe",
]
