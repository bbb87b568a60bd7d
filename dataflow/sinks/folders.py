"""Files in a folder: written aside, and renamed when they are committed. What does not depend on their format.

What is being written or waits to be committed is under names that begin with the incarnation of the run. Before files
are renamed, their names are noted in `committed-...`, so that a commit can be repeated after somebody has taken the
files away. Where they are is a `Shelf`."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from dataflow.channels.pact import Batch
from dataflow.clients.buckets import BucketError, is_address, open_store
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.shape import require_text
from dataflow.sinks.shelves import BucketShelf, FolderShelf, Shelf
from dataflow.sinks.staged import StagedFile
from dataflow.time.order import Time

R = TypeVar("R")


class FolderSink(Sink):
    """Files in a folder, here or in an object store. Each worker writes files of its own."""

    ending: str
    every = 10.0

    def __init__(self, folder: str | os.PathLike[str], every: float) -> None:
        require_text("a sink of files", "a folder", folder)
        if not every >= 0:
            raise ConstructionError(f"every is a number of seconds, not {every!r}")
        self.folder = os.fspath(folder)
        self.every = every
        if is_address(self.folder):
            try:
                open_store(self.folder)  # says what is wrong with the address
            except (ValueError, BucketError) as error:
                raise ConstructionError(str(error)) from None

    def __repr__(self) -> str:
        return f"<{self.ending} files in {self.shelf().title}>"

    def shelf(self) -> Shelf:
        """Where its files are."""
        return BucketShelf(self.folder) if is_address(self.folder) else FolderShelf(Path(self.folder))

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
        self._shelf = sink.shelf()
        self._writer = f"{place.incarnation}-{uuid4().hex[:12]}-{place.worker}"
        self._number = 0
        self._file: StagedFile | None = None
        self._name = ""
        self._times: tuple[Time, Time] = (0, 0)  # the first and the last in the file
        self._whole: list[tuple[StagedFile, str, str]] = []  # nothing is added to them; not durable, or not staged yet
        self._prepared: list[tuple[str, str]] = []  # (staged name, final name), staged and not committed

    def close(self) -> None:
        for file in (self._file, *(file for file, _, _ in self._whole)):
            if file is not None:
                file.abandon()
        self._shelf.close()

    async def write(self, time: Time, batch: Batch) -> None:
        await self._place.away(lambda: self._guarded(lambda: self._write(time, batch)))

    def _write(self, time: Time, batch: Batch) -> None:
        if self._file is None:
            self._name = f"{self._writer}-{self._number}{self._sink.ending}"
            self._number += 1
            self._file = self._sink.start(self._shelf.begin(self._name))
            self._times = time, time
        self._file.take(batch)
        self._times = self._times[0], time

    async def prepare(self, time: Time) -> object:
        if self._file is not None or self._whole:
            await self._place.away(lambda: self._guarded(self._stage))
        return [list(names) for names in self._prepared] or None

    def _stage(self) -> None:
        """If the disk does not take all of it, the rest is tried again; what is written meanwhile goes to another
        file."""
        if self._file is not None:
            first, last = self._times
            # With the writer's own name in it, it replaces no file of another run, whose times are the same.
            final = f"{first:012d}-{last:012d}-{self._writer.replace('-', '.')}{self._sink.ending}"
            self._whole.append((self._file, self._name, final))
            self._file = None
        while self._whole:  # one that cannot be staged now is staged with the next snapshot
            file, name, final = self._whole[0]
            file.finish()
            self._shelf.stage(name)
            self._prepared.append((name, final))
            del self._whole[0]

    async def commit(self, token: object) -> None:
        names = _names(token)
        await self._place.away(lambda: self._guarded(lambda: self._publish(names)))
        self._prepared = [pair for pair in self._prepared if pair not in names]

    def _publish(self, names: list[tuple[str, str]]) -> None:
        """Notes the files, and then renames those that have not been."""
        missing = [pair for pair in names if not self._shelf.is_staged(pair[0])]
        if missing:
            noted = self._noted()
            for staged, final in missing:
                if staged not in noted and not self._shelf.is_shown(final):
                    raise SinkError(
                        f"{self._sink!r}: {staged}, which was staged there, is gone and was not committed: the folder "
                        "was replaced since the last snapshot. Bring it back, or start afresh with both"
                    )
        present = [pair for pair in names if pair not in missing]
        if present:
            self._note([staged for staged, _ in present])
            self._shelf.show(present)

    def _note(self, staged: list[str]) -> None:
        self._shelf.note(f"committed-{self._writer}.json", json.dumps(staged))

    def _noted(self) -> set[str]:
        return {name for text in self._shelf.notes() for name in json.loads(text)}

    async def recover(self, tokens: Sequence[object]) -> None:
        names = [pair for token in tokens for pair in _names(token)]
        await self._place.away(lambda: self._guarded(lambda: self._recover(names)))

    def _recover(self, names: list[tuple[str, str]]) -> None:
        """Commits, and removes what earlier incarnations left behind."""
        if names:
            self._publish(names)
        waiting = self._shelf.waiting()
        if not waiting:
            return
        noted = self._noted() & {staged for staged, _ in names}
        if noted:
            self._note(sorted(noted))  # those of the snapshot, in a note that stays
        for name in waiting:
            incarnation = name.removeprefix("committed-").partition("-")[0]
            # Later ones than this have nothing to fear, should this be a zombie that has not noticed them.
            if incarnation.isdecimal() and int(incarnation) < self._place.incarnation:
                self._shelf.remove(name)

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
