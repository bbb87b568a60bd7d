"""Stateful operators whose state moves between workers while the stream flows (Megaphone).

An operator is split into F, which routes records by the configuration at their time, and S, which holds the state; both
speak timely dataflow and nothing else. State is grouped into bins of keys. A configuration update is a record on an
ordinary stream: as of its time, a bin lives at a worker.

- `control`: what is said on the control stream: `Move`, `Assign`; and its form as JSON lines.
- `pins`: keys that live apart from their bins. `keyspace`: what a key is. Pure. `errors`: what is refused.
- `configuration`: which worker has which bin at which time. Pure.
- `hashing`: from a key to its bin.
- `following`: updates from files and pipes; `tailing`: their bytes, as they come.
- `routing`: F, as far as rows and columns agree. `assembly`: F and S put together.
- `bins`: state and pending records by bin, as Python objects. `portions`: how such a bin travels. Pure. `state`: S for
  rows. `rows`: F for rows.
- `columns`: F and S for columns. `pieces`: how a bin of columns travels. Pure.
- `apart`: the store of keys that live apart, in columns, and how one travels. `returning`: how one goes back.
- `operators`: `unary`, `binary` and `state_machine`, which are an F and an S each.
- `statistics`: records, processing time and bytes of state, by bin and interval. `heavy`: heavy keys, by a `sketch`;
  `tally`: those of rows.
- `strategies`: how a migration is cut into steps. Pure. `controller`: feeds the steps to the control stream. `group`:
  several operators, which migrate together.
"""

from typing import TYPE_CHECKING, Any

from megaphone.control.files import follow, read_control
from megaphone.control.updates import Assign, ControlError, Move, Moves
from megaphone.keys.pins import Pin, Pins, Unpin
from megaphone.migration.controller import Controller
from megaphone.migration.group import Group
from megaphone.migration.strategies import all_at_once, batched, fluid, matched
from megaphone.operators import binary, dense, state_machine, unary

if TYPE_CHECKING:
    from dataflow.state.folds.fold import fold
    from megaphone.operators.columns import join


def __getattr__(name: str) -> Any:
    """`fold` and `join`, which compile, are imported when they are first asked for."""
    if name == "fold":
        from dataflow.state.folds.fold import fold

        return fold
    if name == "join":
        from megaphone.operators.columns import join

        return join
    raise AttributeError(f"module 'megaphone' has no attribute {name!r}")


__all__ = [
    "Assign",
    "ControlError",
    "Controller",
    "Group",
    "Move",
    "Moves",
    "Pin",
    "Pins",
    "Unpin",
    "all_at_once",
    "batched",
    "binary",
    "dense",
    "fluid",
    "fold",
    "follow",
    "join",
    "matched",
    "read_control",
    "state_machine",
    "unary",
]
