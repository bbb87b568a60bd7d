"""Sources that cannot go back, with a journal before them: what came is kept until a snapshot has it.

A journal is a folder for each partition, with *segments*: files whose name is the number of bytes before them. A
record is its length, a checksum and its bytes. A position is a number of bytes."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import AsyncIterator, Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote

import trio

from dataflow.clients.background import Background
from dataflow.clients.extras import require_number
from dataflow.columns.batch import Columns
from dataflow.comm.codec import decode, encode
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.operators.source import Reader
from dataflow.values import Record

D = TypeVar("D")

_END = object()
_HEAD = 8  # bytes: a length and a checksum


class Journal:
    """The journal of one partition. One process at a time has it open, and only that appends."""

    def __init__(self, folder: Path, segment: int) -> None:
        self._folder = folder
        self._segment = segment  # bytes after which a new one is begun
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / "lock", "wb")  # noqa: SIM115  # closed by close
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise SourceError(f"the journal {folder} is in use: by another source, or by a run that goes on") from None
        self._file: BinaryIO | None = None
        starts = self._starts()
        self.begin = starts[0] if starts else 0
        self.end = self._mend(starts[-1]) if starts else 0

    def _starts(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("*.log"))

    def _path(self, start: int) -> Path:
        return self._folder / f"{start:020d}.log"

    def _mend(self, start: int) -> int:
        """Cuts off what was being written when somebody died: nobody was told that it had been taken."""
        path = self._path(start)
        whole = sum(_HEAD + len(data) for data in _records(path, 0))
        if whole < path.stat().st_size:
            os.truncate(path, whole)
        return start + whole

    def append(self, records: list[bytes]) -> None:
        """Makes records durable."""
        if self._file is not None and self._file.tell() >= self._segment:
            self._file.close()
            self._file = None
        if self._file is None:
            starts = self._starts()
            last = starts[-1] if starts and self.end - starts[-1] < self._segment else self.end
            self._file = open(self._path(last), "ab")  # noqa: SIM115  # closed by close
            _sync(self._folder)
        data = b"".join(
            len(record).to_bytes(4, "little") + zlib.crc32(record).to_bytes(4, "little") + record for record in records
        )
        self._file.write(data)
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self.end += len(data)

    def read(self, position: int, most: int) -> tuple[int, list[bytes]]:
        """Records behind a position; the position behind them."""
        starts = self._starts()
        if position >= self.end or not starts:
            return position, []
        start = max((start for start in starts if start <= position), default=None)
        if start is None:
            raise SourceError(f"the journal {self._folder} begins at {starts[0]}, and {position} is next: part is gone")
        found: list[bytes] = []
        for data in _records(self._path(start), position - start):
            if len(found) == most or position >= self.end:
                break
            found.append(data)
            position += _HEAD + len(data)
        if not found and starts[-1] > start:  # the segment is read to its end
            return self.read(starts[starts.index(start) + 1], most)
        return position, found

    def forget(self, position: int) -> None:
        """Deletes segments that are wholly before a position."""
        starts = self._starts()
        for start, following in pairwise(starts):
            if following <= position:
                self._path(start).unlink(missing_ok=True)

    def close(self) -> None:
        """Another may have it."""
        if self._file is not None:
            self._file.close()
        self._lock.close()


def _records(path: Path, offset: int) -> Iterator[bytes]:
    """The whole records of a segment from a byte on."""
    with open(path, "rb") as file:
        file.seek(offset)
        while len(head := file.read(_HEAD)) == _HEAD:
            data = file.read(int.from_bytes(head[:4], "little"))
            if len(data) < int.from_bytes(head[:4], "little") or zlib.crc32(data) != int.from_bytes(head[4:], "little"):
                return
            yield data


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Journaled(Partitions[D]):
    """Reads the source in the background, into the journal; gives what the journal has."""

    moves = False  # what listens is where it was started

    def __init__(self, source: Partitions[D], folder: Path, batch: int, most: int) -> None:
        self.follow, self.look_every, self.tick = source.follow, source.look_every, source.tick
        self._source = source
        self._folder = folder
        self._batch = batch
        self._most = most
        self._open: dict[str, Journal] = {}

    def __repr__(self) -> str:
        return f"<{self._source!r}, with a journal in {self._folder}>"

    async def partitions(self) -> Collection[str]:
        """Those of the source."""
        return await self._source.partitions()

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """What the journal has behind a position, and then what comes."""
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{self!r}: {position!r} is no position in a journal: a number of bytes was expected")
        journal = Journal(self._folder / quote(partition, safe=""), self._most)
        behind = journal.begin if position is None else position
        if behind > journal.end:
            journal.close()
            raise SourceError(f"{self!r} ends at {journal.end}, and was read up to {behind}: it was replaced")
        self._open[partition] = journal
        copying = _Copying(self._source, partition, journal, behind, self._most)
        try:
            while True:
                behind, records = journal.read(behind, self._batch)
                if records:
                    copying.taken(behind)
                    yield behind, None, [decode(record) for record in records]
                elif not await copying.more(behind):
                    return
        finally:
            await copying.stop()
            del self._open[partition]
            journal.close()

    async def acknowledge(self, partition: str, position: object) -> None:
        """What is in a snapshot is not needed any more."""
        journal = self._open.get(partition)
        if journal is not None and isinstance(position, int):
            journal.forget(position)


class _Copying:
    """The task that copies a source into a journal, and waits when too much is unread there."""

    def __init__(self, source: Partitions[D], partition: str, journal: Journal, behind: int, most: int) -> None:
        self._items = source.read(partition, None)
        self._journal = journal
        self._most = most
        self._behind = behind
        self._event = trio.Event()
        self._task = Background(self._copy, self._wake)

    def _wake(self) -> None:
        self._event.set()
        self._event = trio.Event()

    async def _copy(self) -> None:
        reader = Reader(self._items)
        try:
            while (item := await reader.next(_END)) is not _END:
                while self._journal.end - self._behind > self._most:
                    await self._event.wait()
                records = [encode(record) for record in _rows(item[2])]
                # Not cancelled in the middle: half of a record would be in the file.
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(self._journal.append, records)
                self._wake()
        finally:
            with trio.CancelScope(shield=True):
                await reader.close()

    def taken(self, behind: int) -> None:
        """So much has been read."""
        self._behind = behind
        self._wake()

    async def more(self, behind: int) -> bool:
        """Waits until the journal has more than this; False if it never will."""
        while self._journal.end <= behind:
            self._task.check()
            if self._task.ended:
                return False
            await self._event.wait()
        return True

    async def stop(self) -> None:
        await self._task.stop()


def _rows(batch: Collection[Record] | Columns) -> Collection[Record]:
    if isinstance(batch, Columns):
        raise SourceError("a journal keeps rows, and columns came")
    return batch


class _AtMostOnce(Partitions[D]):
    """Says that it goes on, and does not."""

    moves = False  # what came and was not taken would be lost

    def __init__(self, source: Partitions[D]) -> None:
        self.timed, self.follow, self.look_every = source.timed, source.follow, source.look_every
        self.tick, self.at_once = source.tick, source.at_once
        self._source = source

    def __repr__(self) -> str:
        return f"<{self._source!r}, at most once>"

    async def partitions(self) -> Collection[str]:
        """Those of the source."""
        return await self._source.partitions()

    def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]] | Iterator[Item[D]]:
        """What comes from now on."""
        return self._source.read(partition, None)


def journaled(
    source: Partitions[D], folder: str | os.PathLike[str], *, batch: int = 1000, most: int = 16 << 20
) -> Partitions[D]:
    """A source that can be set where it was, made of one that cannot: a webhook, a WebSocket, standard input.

    What comes is written to a journal in a folder, durably, before it is taken (a webhook is answered after that), and
    kept there until a snapshot has it. So what was taken is not lost, and counts once. The folder must be visible to
    whoever goes on after a crash; `most`: at most about so many bytes wait there unread, and then the source waits.
    Records are plain data.
    """
    given: object = source
    if not isinstance(given, Partitions) or given.timed or given.resumable:
        raise ConstructionError(f"journaled is for sources that cannot go back to where they were, not {source!r}")
    require_number("journaled", "batch", batch, 1, whole=True)
    require_number("journaled", "most", most, 1, whole=True)
    return _Journaled(source, Path(folder), batch, most)


def at_most_once(source: Partitions[D]) -> Partitions[D]:
    """A source that cannot go back to where it was, for a run with recovery all the same: after a crash it goes on with
    what comes then. What came since the last snapshot is lost."""
    given: object = source
    if not isinstance(given, Partitions) or given.resumable:
        raise ConstructionError(f"at_most_once is for sources that cannot go back to where they were, not {source!r}")
    return _AtMostOnce(source)
