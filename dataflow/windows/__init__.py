"""Windows over event time, by key: on rows and on columns, native here and migratable in `megaphone`.

- `kinds`: tumbling, sliding, session and count windows, as users name them.
- `aggregates`: what is computed in a window: state of plain data, which is merged, moved and saved. `sketches`: those
  that are approximate.
- `partials`: the rows of a batch of columns, aggregated by key and pane before they become state.
- `fold`: windows as a fold over the state of a bin.
- `operator`: `window`, the native operator, and what it shares with the migratable one.
"""

from dataflow.windows.kinds import count, session, sliding, tumbling
from dataflow.windows.operator import window

__all__ = ["count", "session", "sliding", "tumbling", "window"]
