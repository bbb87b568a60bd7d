"""Who are you: the facts of a run."""

from __future__ import annotations

from dataflow.asking.messages import Arguments
from dataflow.asking.run import NamedRun


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """Its name, the process that answers, its workers, and since when."""
    facts = run.facts
    return {"name": facts.name, "pid": facts.pid, "workers": facts.workers, "since": facts.since}
