"""Where a sink of files keeps what is staged, and shows what is committed: a folder here, or one in an object store.

`_staged/` has what is being written or waits to be committed, and notes of what was. To commit is to rename; where
there is no renaming, to copy and to delete."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO

from dataflow.clients.buckets import Bucket, title_of

STAGED = "_staged"


class Shelf(ABC):
    """A folder of files. Every call may block, and may raise OSError."""

    title: str

    @abstractmethod
    def begin(self, name: str) -> Path:
        """Where a file that will be staged is to be written."""

    @abstractmethod
    def stage(self, name: str) -> None:
        """A file has been written, and is durable at its place: makes it durable under its staged name."""

    @abstractmethod
    def is_staged(self, name: str) -> bool:
        """Whether a file waits."""

    @abstractmethod
    def is_shown(self, name: str) -> bool:
        """Whether a file can be seen."""

    @abstractmethod
    def show(self, names: list[tuple[str, str]]) -> None:
        """Gives staged files their final names: (staged, final). Those that somebody else has just shown are passed
        over."""

    @abstractmethod
    def note(self, name: str, text: str) -> None:
        """Writes a note beside what is staged, whole or not at all."""

    @abstractmethod
    def notes(self) -> list[str]:
        """The text of all notes."""

    @abstractmethod
    def waiting(self) -> list[str]:
        """The names of staged files and of notes."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes a staged file or a note, if it is there."""

    def close(self) -> None:  # noqa: B027  # folders have nothing to close
        """The worker ends."""


class FolderShelf(Shelf):
    """A folder of this machine."""

    def __init__(self, path: Path, staged: str = STAGED) -> None:
        self.title = os.fspath(path)
        self._shown, self._staged = path, path / staged

    def begin(self, name: str) -> Path:
        self._staged.mkdir(parents=True, exist_ok=True)
        return self._staged / name

    def stage(self, name: str) -> None:
        _sync(self._staged)

    def is_staged(self, name: str) -> bool:
        return (self._staged / name).exists()

    def is_shown(self, name: str) -> bool:
        return (self._shown / name).exists()

    def show(self, names: list[tuple[str, str]]) -> None:
        for staged, final in names:
            try:
                os.replace(self._staged / staged, self._shown / final)
            except FileNotFoundError:  # somebody else was faster
                if not (self._shown / final).exists():
                    raise
        _sync(self._shown)
        _sync(self._staged)

    def note(self, name: str, text: str) -> None:
        path = self._staged / name
        aside = path.with_suffix(".new")
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        _sync(self._staged)

    def notes(self) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self._staged.glob("committed-*.json")]

    def waiting(self) -> list[str]:
        return [path.name for path in self._staged.iterdir()] if self._staged.is_dir() else []

    def remove(self, name: str) -> None:
        (self._staged / name).unlink(missing_ok=True)


class BucketShelf(Shelf):
    """A folder of an object store. Files are written here first, without a name, so that nothing is left of them
    whatever happens, and put there when they are whole."""

    def __init__(self, address: str, staged: str = STAGED) -> None:
        self.title = title_of(address)
        self._staged = staged
        self._bucket = Bucket(address)
        self._aside: dict[str, IO[bytes]] = {}  # on this machine

    def begin(self, name: str) -> Path:
        file = self._aside[name] = tempfile.TemporaryFile()  # noqa: SIM115  # closed when it is staged
        return Path(f"/dev/fd/{file.fileno()}")

    def stage(self, name: str) -> None:
        file = self._aside[name]
        file.seek(0)
        self._bucket.put(f"{self._staged}/{name}", file)
        self._aside.pop(name).close()

    def is_staged(self, name: str) -> bool:
        return self._bucket.size(f"{self._staged}/{name}") is not None

    def is_shown(self, name: str) -> bool:
        return self._bucket.size(name) is not None

    def show(self, names: list[tuple[str, str]]) -> None:
        for staged, final in names:
            self._bucket.copy(f"{self._staged}/{staged}", final)
            self._bucket.delete(f"{self._staged}/{staged}")

    def note(self, name: str, text: str) -> None:
        self._bucket.put(f"{self._staged}/{name}", text.encode())

    def notes(self) -> list[str]:
        names = [name for name in self.waiting() if name.startswith("committed-")]
        return [self._bucket.get(f"{self._staged}/{name}").decode() for name in names]

    def waiting(self) -> list[str]:
        return [name.rpartition("/")[2] for name in self._bucket.names(self._staged)]

    def remove(self, name: str) -> None:
        self._bucket.delete(f"{self._staged}/{name}")

    def close(self) -> None:
        for file in self._aside.values():
            file.close()


def _sync(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
