"""Stateful operators whose state moves between workers while the stream flows (Megaphone).

An operator is split into F, which routes records by the configuration at their time, and S, which holds the state; both
speak timely dataflow and nothing else. State is grouped into bins of keys. A configuration update is a record on an
ordinary stream: as of its time, a bin lives at a worker.

- `operators`: `unary`, `binary`, `state_machine` and `join`, on rows and on columns; `window_join` and `opaque`, whose
  plan changes. `assembly`: F and S put together, and registered with the engine's hooks.
- `control`: what is said on the control stream, the configurations that follow, and updates from files and pipes.
- `router`: F, for rows and columns. `host`: S.
- `keys`: from a key to its bin; single keys that live apart from their bins.
- `load`: records, processing time and bytes by bin and interval, and heavy keys: what planners want to know.
- `migration`: how a migration is cut into steps, the controller that feeds them to the control stream, and groups.
- `plans`: plans of windowed joins, and how a bin gets from one to another while the stream flows (HybMig).
- `harness`: open-loop measurements of latency, with migrations and without.
- `errors`: what is refused.
"""

from typing import TYPE_CHECKING

from megaphone import plans
from megaphone.control.files import follow, read_control
from megaphone.control.replans import Replan
from megaphone.control.updates import Assign, ControlError, Move, Moves
from megaphone.keys.pins import Pin, Pins, Unpin
from megaphone.migration.controller import Controller
from megaphone.migration.group import Group
from megaphone.migration.strategies import all_at_once, batched, fluid, matched
from megaphone.operators import binary, dense, opaque, state_machine, unary, window_join

if TYPE_CHECKING:
    from dataflow.state.folds.fold import fold
    from megaphone.operators.columns import join


def __getattr__(name: str) -> object:
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
    "Replan",
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
    "opaque",
    "plans",
    "read_control",
    "state_machine",
    "unary",
    "window_join",
]
