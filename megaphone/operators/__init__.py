"""Stateful operators that can be migrated (Listing 1), each an F and an S.

- `signatures`: `unary`, `binary` and `state_machine` as users call them, with a signature for rows and one for columns.
- `rows`: the operators on rows: `key` is a function of a record, and state is any Python object.
- `columns`: the operators on columns: `key` names a column, and state is typed. Imported on demand, since it compiles.
- `windowing`: `window`, windows over event time. `timed_joins`: joins over event time, and `deduplicate`.
- `joining`: `window_join` and `opaque`, whose bins have plans that change. `joining_columns`: `window_join` on columns,
  imported on demand.
"""

from megaphone.operators.joining import opaque, window_join
from megaphone.operators.signatures import binary, dense, spelled, state_machine, unary
from megaphone.operators.timed_joins import as_of_join, deduplicate, interval_join, table_join
from megaphone.operators.windowing import window

__all__ = [
    "as_of_join",
    "binary",
    "deduplicate",
    "dense",
    "interval_join",
    "opaque",
    "spelled",
    "state_machine",
    "table_join",
    "unary",
    "window",
    "window_join",
]
