"""Who holds which time back, and from whom: for whoever draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.messages import Arguments, Question, Refused
from dataflow.asking.run import NamedRun
from dataflow.run.holding import read_holding

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """By worker that answers, its view of each dataflow."""
    answers = await run.ask_all(Question("holding"))
    return [[worker, seen] for worker, seen in answers.items() if not isinstance(seen, Refused)]


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """One view for each dataflow."""
    return read_holding(pump)
