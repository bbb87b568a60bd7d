"""Make a savepoint: a snapshot now, under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from dataflow.asking.messages import Arguments, Question, Refused, seconds_of, text_of
from dataflow.asking.run import NamedRun
from dataflow.recovery.savepoints import save_run

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

LONGEST = 86400.0  # seconds that somebody may wait


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """Worker 0 makes manifests."""
    checked = {"name": text_of(arguments, "name"), "timeout": seconds_of(arguments, "timeout", LONGEST)}
    return await run.ask_worker(0, Question("save", checked))


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """By dataflow, the snapshot's number and time."""
    name, timeout = text_of(arguments, "name"), seconds_of(arguments, "timeout", LONGEST)
    with trio.move_on_after(timeout):
        saved = await save_run(pump, name)
        return [[each.dataflow, each.number, each.time] for each in saved]
    raise Refused(
        f"there was no snapshot within {timeout:g} seconds, and none is kept as {name!r}: times must advance for one, "
        "and the storage must answer. Allow more (--timeout)"
    )
