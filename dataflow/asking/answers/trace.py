"""A timeline of every worker: which operator ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from dataflow.asking.messages import Arguments, Question, Refused, seconds_of
from dataflow.asking.run import NamedRun
from dataflow.run.tracing import StepTrace, traced

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

LONGEST = 60.0  # seconds


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """The timelines of workers that answer."""
    asked = {"seconds": seconds_of(arguments, "seconds", LONGEST)}
    answers = await run.ask_all(Question("trace", asked))
    timelines = [each for each in answers.values() if isinstance(each, StepTrace)]
    if not timelines:
        raise next((each for each in answers.values() if isinstance(each, Refused)), Refused("no worker answers"))
    return timelines


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """A timeline of so many seconds."""
    with traced(pump) as timeline:
        await trio.sleep(seconds_of(arguments, "seconds", LONGEST))
    return timeline()
