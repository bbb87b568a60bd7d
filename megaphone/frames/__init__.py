"""Frames: what most people start from. A frame is a plan (where records come from, steps without state, windows by
key); `stream(scope)` builds it from the operators, and `collect` runs it.

- `expressions`: `col("price") > 3`. They are Arrow's expressions with names: Arrow evaluates them in compiled code, and
  they can be written down and sent. narwhals was considered and rejected: its expressions cannot be asked for the
  columns that they need, and each batch would become a frame of another library. Substrait is another spelling.
- `plan`: `frame(...)` and its steps. `running`: steps without state in one pass of Arrow's engine.
- `joining`: joins of two frames by key and time. `schema`: which columns and types are known before anything runs.
- `collecting`: a frame as a table, from any number of workers.
"""

from megaphone.frames.collecting import collect
from megaphone.frames.expressions import col, lit
from megaphone.frames.plan import PlannedFrame, frame

__all__ = ["PlannedFrame", "col", "collect", "frame", "lit"]
