"""Stateful operators whose state moves between workers while the stream flows (Megaphone).

An operator is split into F, which routes records by the configuration at their time, and S, which holds the state; both
speak timely dataflow and nothing else. State is grouped into bins of keys. A configuration update is a record on an
ordinary stream: as of its time, a bin lives at a worker.

- `operators`: `unary`, `binary`, `state_machine`, `join` and `window`, on rows and on columns; `window_join` and
  `opaque`, whose plan changes. `assembly`: F and S put together, and registered with the engine's hooks.
- `control`: what is said on the control stream, the configurations that follow, and updates from files and pipes.
- `router`: F, for rows and columns. `host`: S.
- `keys`: from a key to its bin; single keys that live apart from their bins.
- `load`: records, processing time and bytes by bin and interval, and heavy keys: what planners want to know.
- `migration`: how a migration is cut into steps, the controller that feeds them to the control stream, and groups.
- `plans`: plans of windowed joins, and how a bin gets from one to another while the stream flows (HybMig).
- `frames`: plans over columns, from a source to windows, that most people start from.
- `harness`: open-loop measurements of latency, with migrations and without.
- `errors`: what is refused.
"""

from typing import TYPE_CHECKING

from dataflow.compiled import ahead
from megaphone import plans
from megaphone.control.files import follow, read_control
from megaphone.control.replans import Replan
from megaphone.control.tree import Merge, Split
from megaphone.control.updates import Assign, ControlError, Move, Moves
from megaphone.keys.pins import Pin, Pins, Unpin
from megaphone.migration.controller import Controller
from megaphone.migration.group import Group
from megaphone.migration.strategies import all_at_once, batched, fluid, matched, within
from megaphone.operators import (
    as_of_join,
    binary,
    deduplicate,
    dense,
    interval_join,
    opaque,
    spelled,
    state_machine,
    table_join,
    unary,
    window,
    window_join,
)

if TYPE_CHECKING:
    from dataflow.state.folds.fold import fold
    from megaphone.frames import col, collect, frame
    from megaphone.operators.columns import join

ahead.expect(
    "dataflow.state.folds.fold",
    "megaphone.operators.columns",
    "megaphone.router.columns",
    "megaphone.migration.steering",
    "dataflow.progress.ordering",
)


def __getattr__(name: str) -> object:
    """`fold` and `join`, which compile, and frames, which need Arrow, are imported when they are first asked for."""
    if name in ("col", "collect", "frame"):
        from megaphone import frames

        found: object = getattr(frames, name)
        return found
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
    "Merge",
    "Move",
    "Moves",
    "Pin",
    "Pins",
    "Replan",
    "Split",
    "Unpin",
    "all_at_once",
    "as_of_join",
    "batched",
    "binary",
    "col",
    "collect",
    "deduplicate",
    "dense",
    "fluid",
    "fold",
    "follow",
    "frame",
    "interval_join",
    "join",
    "matched",
    "opaque",
    "plans",
    "read_control",
    "spelled",
    "state_machine",
    "table_join",
    "unary",
    "window",
    "window_join",
    "within",
]
