"""Stateful operators that can be migrated (Listing 1), each an F and an S.

- `signatures`: `unary`, `binary` and `state_machine` as users call them, with a signature for rows and one for columns.
- `rows`: the operators on rows: `key` is a function of a record, and state is any Python object.
- `columns`: the operators on columns: `key` names a column, and state is typed. Imported on demand, since it compiles.
- `joining`: `window_join` and `opaque`, whose bins have plans that change. `joining_columns`: `window_join` on columns,
  imported on demand.
"""

from megaphone.operators.joining import opaque, window_join
from megaphone.operators.signatures import binary, dense, state_machine, unary

__all__ = ["binary", "dense", "opaque", "state_machine", "unary", "window_join"]
