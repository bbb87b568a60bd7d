"""Runs in the background, with a view that follows them: for notebooks, the REPL and scripts. docs/notebooks.md.

- `running`: `live`, a run in a thread, and what it has done so far. `looks`: from what workers count to rates, pure.
- `page`: a look as HTML, pure. `showing`: that in a notebook, with a button that stops the run.
"""

from dataflow.notebook.running import LiveRun, live

__all__ = ["LiveRun", "live"]
