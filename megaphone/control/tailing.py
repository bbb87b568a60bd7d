"""The bytes of a file that grows, or of a pipe that one writer after the other opens: as they come, until told to stop.

Nothing tells a trio loop that a file has grown, so it is looked at ten times a second; a pipe wakes us. Looks are on
the loop's clock: under a virtual one they cost no time. Nothing blocks: neither the opening of a pipe nor a read waits.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio

from megaphone.control.updates import ControlError

CHUNK = 1 << 16  # bytes that are read at once
PAUSE = 0.1  # seconds between two looks
BREAK = b""  # in place of bytes: nothing will be added to the line that was begun


@dataclass(frozen=True)
class Until:
    """When to end. It is asked whenever everything that is there has been read."""

    end: bool = False  # of the file as it is; of the pipe's last writer
    stop: Callable[[], bool] = field(default=lambda: False)


class _Opened:
    """A file or a pipe, and how far it was read."""

    def __init__(self, path: str | Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe opens before anybody writes to it
        status = os.fstat(self.descriptor)
        self.identity = status.st_dev, status.st_ino
        self.pipe = stat.S_ISFIFO(status.st_mode)
        self._offset = 0
        if not self.pipe and not stat.S_ISREG(status.st_mode):
            self.close()
            raise ControlError(f"{path} can be followed if it is a file or a pipe, and it is neither")

    def read(self) -> bytes | None:
        """The next bytes; BREAK if nothing will be added to them; None if there are none now."""
        if self.pipe:
            event = _event(self.descriptor)
            if event & select.POLLIN:
                return os.read(self.descriptor, CHUNK) or None
            return BREAK if event else None  # all writers have gone; before the first one there is no event
        if chunk := os.read(self.descriptor, CHUNK):
            self._offset += len(chunk)
            return chunk
        if os.fstat(self.descriptor).st_size >= self._offset:
            return None
        self._offset = os.lseek(self.descriptor, 0, os.SEEK_SET)  # it was truncated: what is in it now is new
        return BREAK

    async def wait(self) -> None:
        """Waits until there may be more, for a moment at most."""
        with trio.move_on_after(PAUSE):
            if self.pipe:
                await trio.lowlevel.wait_readable(self.descriptor)
            else:
                await trio.sleep_forever()

    def close(self) -> None:
        os.close(self.descriptor)


def _event(descriptor: int) -> int:
    """The events of a descriptor now; 0 if there are none."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return sum(event for _, event in poll.poll(0))


async def chunks(path: str | Path, until: Until) -> AsyncGenerator[bytes, None]:
    """Bytes as they come. BREAK between them where a file was truncated or replaced, or all writers of a pipe have
    gone: then comes what is in it from its beginning, or what the next writer writes."""
    source = _Opened(path)
    try:
        while True:
            await trio.lowlevel.checkpoint()
            replaced = _is_replaced(path, source)  # asked before the read, so that the old file is read to its end
            chunk = source.read()
            if chunk is not None:
                yield chunk
                if chunk or not source.pipe:
                    continue
            ended = chunk == BREAK  # a pipe without writers
            if until.stop() or (until.end and (ended or not source.pipe)):
                return
            if not replaced and not ended:
                await source.wait()
                continue
            if not ended:
                yield BREAK
            source = await _reopened(path, source)
    finally:
        source.close()


def _is_replaced(path: str | Path, source: _Opened) -> bool:
    """Whether another file has the name now. While no file has it, the one that is open counts."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) != source.identity


async def _reopened(path: str | Path, source: _Opened) -> _Opened:
    """The file or pipe that has the name now. A pipe that is opened anew waits for its next writer.

    It is opened before the old one is closed, so that a pipe keeps what somebody has written to it meanwhile.
    """
    try:
        successor = _Opened(path)
    except FileNotFoundError:
        await trio.sleep(PAUSE)  # it is being replaced, or was removed
        return source
    source.close()
    return successor
