"""Stateful operators whose state moves between workers while the stream flows (Megaphone).

An operator is split into F, which routes records by the configuration at their time, and S, which holds the state; both
speak timely dataflow and nothing else. State is grouped into bins of keys. A configuration update is a record on an
ordinary stream: as of its time, a bin lives at a worker.

- `control`: what is said on the control stream: `Move`, `Assign`; and its form as JSON lines.
- `configuration`: which worker has which bin at which time. Pure.
- `hashing`: from a key to its bin.
- `bins`: state and pending records by bin, as Python objects.
- `routing`: F. `state`: S. `operators`: `unary`, `binary` and `state_machine`, which are an F and an S each.
- `strategies`: how a migration is cut into steps. Pure. `controller`: feeds the steps to the control stream.

So far state is rows of Python objects. Columns, compiled folds, byte budgets and statistics are to come.
"""

from typing import TYPE_CHECKING, Any

from megaphone.control import Assign, ControlError, Move, Moves
from megaphone.controller import Controller
from megaphone.operators import binary, dense, state_machine, unary
from megaphone.strategies import all_at_once, batched, fluid, matched

if TYPE_CHECKING:
    from dataflow.columns.fold import fold


def __getattr__(name: str) -> Any:
    """`fold`, which compiles, is imported when it is first asked for."""
    if name == "fold":
        from dataflow.columns.fold import fold

        return fold
    raise AttributeError(f"module 'megaphone' has no attribute {name!r}")


__all__ = [
    "Assign",
    "ControlError",
    "Controller",
    "Move",
    "Moves",
    "all_at_once",
    "batched",
    "binary",
    "dense",
    "fluid",
    "fold",
    "matched",
    "state_machine",
    "unary",
]
