"""Updates from outside: a file of JSON lines that is known beforehand, or one (or a pipe) that somebody writes to
meanwhile.

Lines are {"time": 5, "bin": 3, "worker": 1} or {"time": 5, "map": [0, 1, ...]}, with times in the dataflow's own units.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import trio

from dataflow import InputHandle
from dataflow.errors import InputClosed, TimeError
from megaphone.control.tailing import BREAK, Until, chunks
from megaphone.control.updates import ControlError, Update, check_update, parse_line

LONGEST = 1 << 26  # bytes of a line: a map of a million bins has 8 MiB, and what has no end must not fill the memory
SHOWN = 200  # characters of a line that is refused


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
    control: InputHandle,
    path: str | Path,
    refuse: Callable[[Exception, str], None] | None = None,
    *,
    stop: trio.Event | None = None,
    until_end: bool = False,
) -> None:
    """Sends what is written to a file or a pipe on the control stream, line by line, until it is told to stop.

    Run it in a nursery beside main, which goes on advancing the input. It ends when it is cancelled (at once), when
    `stop` is set (after it has read what is there) or when the control input is closed; with `until_end` at the end of
    the file as it is then, or when the last writer of the pipe has gone. A line that makes no sense, or comes too late,
    goes to `refuse(error, line)`, which prints it to stderr unless you say otherwise; the configuration stays as it
    was.

    A line waits for its newline, for it may be half written. It is over without one where nothing can be added to it:
    at the end of following, when the writers of a pipe have gone, and where a file was truncated or replaced. Such a
    file is read from its beginning.
    """
    tell = refuse or _complain
    until = Until(until_end, lambda: control.closed or (stop is not None and stop.is_set()))
    number = 0
    async with aclosing(_lines(path, until)) as lines:
        async for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                time, update = parse_line(line, number)
                control.send([update], at=time)
            except (ControlError, TimeError) as error:
                tell(error, line)
            except InputClosed as error:  # nothing that is still to come can be sent
                tell(error, line)
                return


async def _lines(path: str | Path, until: Until) -> AsyncGenerator[str, None]:
    """The lines of a file or pipe, as they come."""
    begun: list[bytes] = []
    async with aclosing(chunks(path, until)) as found:
        async for chunk in found:
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                yield _text([*begun, line])
                begun.clear()
            begun.append(rest)
            if any(begun) and (chunk == BREAK or sum(map(len, begun)) > LONGEST):
                yield _text(begun)
                begun.clear()
    if any(begun):
        yield _text(begun)


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")


def _complain(error: Exception, line: str) -> None:
    shown = line if len(line) <= SHOWN else f"{line[:SHOWN]}..."
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)  # whoever wrote it has no say in a terminal
    print(f"refused: {plain}: {error}", file=sys.stderr, flush=True)
