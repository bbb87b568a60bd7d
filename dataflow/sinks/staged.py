"""A file that is being written, whatever its format."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

from dataflow.channels.pact import Batch

_DRAIN_AT = 1 << 20  # bytes that wait in memory


class StagedBytes:
    """The bytes of a file that is being written, for whoever knows its format. They wait in memory until `drain`: what
    the disk does not take then stays, in order, and is tried again. So formats need not know of full disks."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._waiting = bytearray()
        self._given = 0
        self._over = False
        self.closed = False  # for libraries that ask

    def write(self, data: bytes | memoryview) -> int:
        """Appends bytes."""
        self._waiting += data
        self._given += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were appended."""
        return self._given

    def flush(self) -> None:
        """Nothing: libraries call this, and must not meet a full disk."""

    def close(self) -> None:
        """Nothing: libraries call this, and more may be to be written."""

    @property
    def waiting(self) -> int:
        """How many bytes are not on the disk."""
        return len(self._waiting)

    def drain(self) -> None:
        """Writes what waits; OSError if the disk does not take all of it."""
        while self._waiting:
            del self._waiting[: os.write(self._fd, self._waiting)]

    def finish(self) -> None:
        """Everything is durable. May be called again, after a failure or a success."""
        if not self._over:
            self.drain()
            os.fsync(self._fd)
            self.abandon()

    def abandon(self) -> None:
        """Closes the file as it is."""
        if not self._over:
            self._over = True
            os.close(self._fd)


class StagedFile(ABC):
    """A file that is being written, in a format."""

    def __init__(self, path: Path) -> None:
        self.bytes = StagedBytes(path)
        self._ended = False

    def take(self, batch: Batch) -> None:
        """Appends a batch. What waits is written first: if the disk does not take that, nothing of the batch was
        taken."""
        if self.bytes.waiting > _DRAIN_AT:
            self.bytes.drain()
        self.write(batch)

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Appends a batch to the bytes, or keeps it for later."""

    @abstractmethod
    def end(self) -> None:
        """Appends the rest to the bytes."""

    def finish(self) -> None:
        """Writes the rest and makes the file durable. May be called again."""
        if not self._ended:
            self.end()
            self._ended = True
        self.bytes.finish()

    def abandon(self) -> None:
        """Closes it as it is."""
        self.bytes.abandon()
