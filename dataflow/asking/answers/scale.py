"""Other workers: how many there shall be, which shall leave, and who is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from dataflow.asking.messages import Arguments, Question, Refused, seconds_of
from dataflow.asking.run import NamedRun
from dataflow.comm.codec import require_text

if TYPE_CHECKING:
    from dataflow.members.requests import ScaleChange
    from dataflow.run.pump import Pump

LONGEST = 86400.0  # seconds that somebody may wait


async def scale_at_run(run: NamedRun, arguments: Arguments) -> object:
    """Worker 0 decides who takes part."""
    return await run.ask_worker(0, Question("scale", arguments))


async def scale_at_worker(pump: Pump, arguments: Arguments) -> object:
    """Waits until there are so many workers; from which time on, after how many seconds, after how many the first
    record was at a worker that joined, and for how many all stood still."""
    workers = arguments.get("workers")
    if type(workers) is not int or not 1 <= workers <= 1 << 15:
        raise Refused(f"there can be 1 to {1 << 15:,} workers, not {workers!r}")
    change = pump.changes.asking.scale(workers, None, None, None)
    return await _outcome(change, seconds_of(arguments, "timeout", LONGEST))


async def guests_at_worker(pump: Pump, arguments: Arguments) -> object:
    """Workers of another host want to join: the number of the first, when it is their turn, who is there, and who
    joins with them, where."""
    if pump.changes.scaling is None:
        raise Refused(f"worker {pump.roster.leader} decides who takes part")
    at = [(require_text(host), port) for host, port in arguments["at"]]  # type: ignore[attr-defined]
    number = arguments.get("number")
    guests, place = pump.changes.scaling.admit(at, number if isinstance(number, int) else None)
    first, fellows = await guests.wait_numbered(place, len(at))
    return [first, list(pump.roster.present), [list(each) for each in fellows]]


async def absent_at_worker(pump: Pump, arguments: Arguments) -> object:
    """Workers that were invited do not come, and why."""
    await trio.lowlevel.checkpoint()
    if pump.changes.scaling is not None:
        pump.changes.scaling.cannot_come(int(arguments["number"]), str(arguments["why"]))  # type: ignore[call-overload]
    return None


async def drain_at_run(run: NamedRun, arguments: Arguments) -> object:
    """Worker 0 decides who takes part."""
    return await run.ask_worker(0, Question("drain", arguments))


async def drain_at_worker(pump: Pump, arguments: Arguments) -> object:
    """Waits until a worker has left."""
    worker = arguments.get("worker")
    if type(worker) is not int or worker not in pump.roster.members:
        known = ", ".join(map(str, pump.roster.members))
        raise Refused(f"there is no worker {worker!r}: there are {known}")
    change = pump.changes.asking.scale((worker,), None, None, None)
    return await _outcome(change, seconds_of(arguments, "timeout", LONGEST))


async def members_at_run(run: NamedRun, arguments: Arguments) -> object:
    """Worker 0 knows."""
    return await run.ask_worker(0, Question("members", arguments))


async def members_at_worker(pump: Pump, arguments: Arguments) -> object:
    """Who takes part, as of which time, and who is leaving."""
    await trio.lowlevel.checkpoint()
    now = pump.changes.asking.now()
    leaving = [worker for worker in pump.roster.present if worker not in now.workers or worker in pump.roster.leaving]
    return [list(now.workers), now.time, leaving]


async def _outcome(change: ScaleChange, seconds: float) -> object:
    with trio.move_on_after(seconds):
        await change.wait()
        return [change.time, change.seconds, change.first_record, change.pause]
    raise Refused(f"it is not done after {seconds:g} seconds, and goes on: {change.state}, {change.progress:.0%} moved")
