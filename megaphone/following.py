"""Updates from outside: a file of JSON lines that is known beforehand, or a pipe that somebody writes to meanwhile.

Lines are {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1, ...]}, with times in the dataflow's own units.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import trio

from dataflow import InputHandle
from dataflow.errors import TimeError
from megaphone.control import ControlError, Update, check_update, parse_lines


def read_control(path: str | Path, bins: int, workers: int) -> list[tuple[int, Update]]:
    """The updates of a file, all checked before any is used: ControlError names the line that makes no sense.

    Send each with `control.send([update], at=time)`: configurations may be given any time ahead.
    """
    with open(path, encoding="utf-8") as file:
        updates = list(parse_lines(file))
    for number, (time, update) in enumerate(updates, 1):
        try:
            check_update(update, bins, workers)
        except ControlError as error:
            raise ControlError(f"{path}, update {number}, at time {time}: {error}") from None
    return updates


async def follow(
    control: InputHandle, path: str | Path, refuse: Callable[[Exception, str], None] | None = None
) -> None:
    """Sends what is written to a pipe (or a file) on the control stream, line by line, until it ends.

    Run it in a nursery beside main, which goes on advancing the input. A line that makes no sense, or comes too late,
    goes to `refuse(error, line)`, which prints it to stderr unless you say otherwise; the configuration stays as it
    was.
    """
    tell = refuse or _complain
    async with await trio.open_file(path, encoding="utf-8") as lines:
        async for line in lines:
            try:
                for time, update in parse_lines([line]):
                    control.send([update], at=time)
            except (ControlError, TimeError) as error:
                tell(error, line.rstrip("\n"))


def _complain(error: Exception, line: str) -> None:
    print(f"refused: {line}: {error}", file=sys.stderr, flush=True)
