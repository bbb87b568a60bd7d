"""What do you wait for: who holds which time, since when, and who waits, on every worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.messages import Arguments, Question
from dataflow.asking.run import NamedRun
from dataflow.run.explain import explain

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """By worker, some lines."""
    return [[worker, str(text)] for worker, text in (await run.ask_all(Question("explain"))).items()]


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """Some lines."""
    return explain(pump, pump.meter.date_pointstamps())
