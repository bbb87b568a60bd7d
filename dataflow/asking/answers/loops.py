"""What the loops of a program decided, and whether they act: `planners` has such loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.asking.messages import Arguments, Question, Refused
from dataflow.asking.run import NamedRun

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

MOST = 200  # decisions of each loop


async def at_run(run: NamedRun, arguments: Arguments) -> object:
    """By worker that has any, its loops; with `worker`, `loop` and `dry`, that one is switched before."""
    if "loop" in arguments:
        worker = arguments.get("worker")
        if type(worker) is not int:
            raise Refused(f"'worker' must be a number, not {worker!r}")
        await run.ask_worker(worker, Question("loops", arguments))
    answers = await run.ask_all(Question("loops"))
    return [[worker, loops] for worker, loops in answers.items() if loops and not isinstance(loops, Refused)]


async def at_worker(pump: Pump, arguments: Arguments) -> object:
    """Each loop: its title, whether it only says what it would do, and what it decided of late."""
    loops = pump.meter.loops
    if "loop" in arguments:
        number, dry = arguments.get("loop"), arguments.get("dry")
        if type(number) is not int or not 0 <= number < len(loops) or type(dry) is not bool:
            raise Refused(f"there is no loop {number!r} on worker {pump.index}, or 'dry' is no yes or no")
        if loops[number].dry_run != dry:
            loops[number].dry_run = dry
            pump.meter.mark("dry run" if dry else "no dry run", f"{loops[number].title}, asked for from outside")
    return [[loop.title, loop.dry_run, [list(each) for each in loop.lately][-MOST:]] for loop in loops]
