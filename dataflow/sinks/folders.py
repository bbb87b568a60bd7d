"""Files in a folder: written aside, and renamed when they are committed. What does not depend on their format.

`folder/_staged/` has what is being written or waits to be committed, under names that begin with the incarnation of the
run. To commit is to rename. Before that, the new names are noted in `_staged/committed-...`, so that a commit can be
repeated after somebody has taken the files away."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from dataflow.channels.pact import Batch
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.shape import require_text
from dataflow.time.order import Time

R = TypeVar("R")

STAGED = "_staged"
_DRAIN_AT = 1 << 20  # bytes that wait in memory


class StagedBytes:
    """The bytes of a file that is being written, for whoever knows its format. They wait in memory until `drain`: what
    the disk does not take then stays, in order, and is tried again. So formats need not know of full disks."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._waiting = bytearray()
        self._given = 0
        self.closed = False

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
        if not self.closed:
            self.drain()
            os.fsync(self._fd)
            self.close()

    def close(self) -> None:
        """Closes the file as it is."""
        if not self.closed:
            self.closed = True
            os.close(self._fd)


class StagedFile(ABC):
    """A file that is being written."""

    def __init__(self, path: Path) -> None:
        self.bytes = StagedBytes(path)

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Appends a batch to the bytes, or keeps it for later."""

    @abstractmethod
    def end(self) -> None:
        """Appends the rest to the bytes. May be called again."""

    def finish(self) -> None:
        """Writes the rest and makes the file durable. May be called again."""
        if not self.bytes.closed:
            self.end()
            self.bytes.finish()

    def abandon(self) -> None:
        """Closes it as it is."""
        self.bytes.close()


class FolderSink(Sink):
    """Files in a folder. Each worker writes files of its own."""

    ending: str
    every = 10.0

    def __init__(self, folder: str | os.PathLike[str], every: float) -> None:
        require_text("a sink of files", "a folder", folder)
        if not every >= 0:
            raise ConstructionError(f"every is a number of seconds, not {every!r}")
        self.folder = Path(folder)
        self.every = every

    def __repr__(self) -> str:
        return f"<{self.ending} files in {os.fspath(self.folder)}>"

    def open(self, place: Place) -> Writer:
        """A writer; folders are made when there is something to write."""
        return FolderWriter(self, place)

    @abstractmethod
    def start(self, path: Path) -> StagedFile:
        """Starts a file."""


class FolderWriter(Writer):
    """Writes one file between two commits."""

    def __init__(self, sink: FolderSink, place: Place) -> None:
        self._sink = sink
        self._place = place
        self._staged = sink.folder / STAGED
        self._writer = f"{place.incarnation}-{uuid4().hex[:12]}-{place.worker}"
        self._number = 0
        self._file: StagedFile | None = None
        self._name = ""
        self._times: tuple[Time, Time] = (0, 0)  # the first and the last in the file
        self._full: list[tuple[StagedFile, str, str]] = []  # files to which nothing is added, and both of their names
        self._prepared: list[tuple[str, str]] = []  # (staged name, final name), not committed

    def close(self) -> None:
        for file in (self._file, *(file for file, _, _ in self._full)):
            if file is not None:
                file.abandon()

    async def write(self, time: Time, batch: Batch) -> None:
        await self._place.away(lambda: self._guarded(lambda: self._write(time, batch)))

    def _write(self, time: Time, batch: Batch) -> None:
        """Writes what waits first: if the disk does not take that, nothing of the batch was taken."""
        if self._file is not None and self._file.bytes.waiting > _DRAIN_AT:
            self._file.bytes.drain()
        if self._file is None:
            self._staged.mkdir(parents=True, exist_ok=True)
            self._name = f"{self._writer}-{self._number}{self._sink.ending}"
            self._number += 1
            self._file = self._sink.start(self._staged / self._name)
            self._times = time, time
        self._file.write(batch)
        self._times = self._times[0], time

    async def prepare(self, time: Time) -> object:
        if self._file is not None or self._full:
            await self._place.away(lambda: self._guarded(self._finish))
        return [list(names) for names in self._prepared] or None

    def _finish(self) -> None:
        """If the disk does not take all of it, the rest is tried again; what is written meanwhile goes to another
        file."""
        if self._file is not None:
            first, last = self._times
            # With the writer's own name in it, it replaces no file of another run, whose times are the same.
            final = f"{first:012d}-{last:012d}-{self._writer.replace('-', '.')}{self._sink.ending}"
            self._full.append((self._file, self._name, final))
            self._file = None
        for file, _, _ in self._full:
            file.finish()
        _sync(self._staged)
        self._prepared += [(name, final) for _, name, final in self._full]
        self._full = []

    async def commit(self, token: object) -> None:
        names = _names(token)
        await self._place.away(lambda: self._guarded(lambda: self._publish(names)))
        self._prepared = [pair for pair in self._prepared if pair not in names]

    def _publish(self, names: list[tuple[str, str]]) -> None:
        """Notes the files, and then renames those that have not been."""
        missing = [pair for pair in names if not (self._staged / pair[0]).exists()]
        if missing:
            noted = self._noted()
            for staged, final in missing:
                if staged not in noted and not (self._sink.folder / final).exists():
                    raise SinkError(
                        f"{self._sink!r}: {staged}, which was staged there, is gone and was not committed: the folder "
                        "was replaced since the last snapshot. Bring it back, or start afresh with both"
                    )
        present = [pair for pair in names if pair not in missing]
        if not present:
            return
        self._note([staged for staged, _ in present])
        for staged, final in present:
            try:
                os.replace(self._staged / staged, self._sink.folder / final)
            except FileNotFoundError:  # somebody else was faster
                if not (self._sink.folder / final).exists():
                    raise
        _sync(self._sink.folder)
        _sync(self._staged)

    def _note(self, staged: list[str]) -> None:
        path = self._staged / f"committed-{self._writer}.json"
        aside = path.with_suffix(".new")
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(staged, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        _sync(self._staged)

    def _noted(self) -> set[str]:
        notes = self._staged.glob("committed-*.json")
        return {name for path in notes for name in json.loads(path.read_text(encoding="utf-8"))}

    async def recover(self, tokens: Sequence[object]) -> None:
        names = [pair for token in tokens for pair in _names(token)]
        await self._place.away(lambda: self._guarded(lambda: self._recover(names)))

    def _recover(self, names: list[tuple[str, str]]) -> None:
        """Commits, and removes what earlier incarnations left behind."""
        if names:
            self._publish(names)
        if not self._staged.is_dir():
            return
        noted = self._noted() & {staged for staged, _ in names}
        if noted:
            self._note(sorted(noted))  # those of the snapshot, in a note that stays
        for path in self._staged.iterdir():
            incarnation = path.name.removeprefix("committed-").partition("-")[0]
            # Later ones than this have nothing to fear, should this be a zombie that has not noticed them.
            if incarnation.isdecimal() and int(incarnation) < self._place.incarnation:
                path.unlink(missing_ok=True)

    def _guarded(self, function: Callable[[], R]) -> R:
        """What the system refuses is told with the folder's name."""
        try:
            return function()
        except SinkError:
            raise
        except OSError as error:
            reason = error.strerror or str(error)
            raise SinkUnavailable(f"{self._sink!r} cannot be written: {reason}") from error


def _names(token: object) -> list[tuple[str, str]]:
    if not isinstance(token, list):
        raise SinkError(f"{token!r} is no token of a folder")
    names = [(str(staged), str(final)) for staged, final in token]
    for name in (name for pair in names for name in pair):
        if Path(name).name != name:
            raise SinkError(f"{name!r} in a token is no name of a file")
    return names


def _sync(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
