"""Stop: all workers end, and run their `finally` clauses, as after SIGTERM."""

from __future__ import annotations

from dataflow.asking.messages import Arguments
from dataflow.asking.run import NamedRun


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """Says so, and ends. Whoever asks may see the end of the connection instead of the answer."""
    run.stopping.set()
    return run.facts.pid
