"""Updates from outside: a file of JSON lines that is known beforehand, or a pipe that somebody writes to meanwhile.

Lines are {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1, ...]}, with times in the dataflow's own units.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import trio

from dataflow import InputHandle
from dataflow.errors import TimeError
from megaphone.control import ControlError, Update, check_update, parse_line

_CHUNK = 1 << 16  # bytes that are read at once


def read_control(path: str | Path, bins: int, workers: int) -> list[tuple[int, Update]]:
    """The updates of a file, all checked before any is used: ControlError names the line that makes no sense.

    Send each with `control.send([update], at=time)`: configurations may be given any time ahead.
    """
    updates = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                updates.append(_checked_line(line, number, path, bins, workers))
    return updates


def _checked_line(line: str, number: int, path: str | Path, bins: int, workers: int) -> tuple[int, Update]:
    try:
        time, update = parse_line(line, number)
    except ControlError as error:
        raise ControlError(f"{path}: {error}") from None
    try:
        if time < 0:
            raise ControlError("the first time is 0")
        return time, check_update(update, bins, workers)
    except ControlError as error:
        raise ControlError(f"{path}: line {number}, at time {time}: {error}") from None


async def follow(
    control: InputHandle, path: str | Path, refuse: Callable[[Exception, str], None] | None = None
) -> None:
    """Sends what is written to a pipe (or a file) on the control stream, line by line, until it ends.

    Run it in a nursery beside main, which goes on advancing the input, and cancel it when it is no longer wanted. A
    line that makes no sense, or comes too late, goes to `refuse(error, line)`, which prints it to stderr unless you say
    otherwise; the configuration stays as it was.
    """
    tell = refuse or _complain
    number = 0
    async with aclosing(_lines(path)) as lines:
        async for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                time, update = parse_line(line, number)
                control.send([update], at=time)
            except (ControlError, TimeError) as error:
                tell(error, line)


async def _lines(path: str | Path) -> AsyncGenerator[str, None]:
    """The lines of a file or pipe, as they come."""
    rest = b""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe can be opened before anybody writes to it
    try:
        pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        while chunk := await _read(descriptor, pipe):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
    finally:
        os.close(descriptor)
    if rest:
        yield rest.decode(errors="replace")


async def _read(descriptor: int, pipe: bool) -> bytes:
    """Waits without a thread, which nobody could call back from a pipe that stays silent."""
    await trio.lowlevel.checkpoint()
    while True:
        if pipe:
            await trio.lowlevel.wait_readable(descriptor)  # before the first writer has come, reading would be an end
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue  # somebody else has read it


def _complain(error: Exception, line: str) -> None:
    print(f"refused: {line}: {error}", file=sys.stderr, flush=True)
