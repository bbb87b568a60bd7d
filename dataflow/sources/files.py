"""Which files a path stands for, here or in an object store, and the whole lines of a file from a byte on."""

from __future__ import annotations

import glob
import io
import os
from pathlib import Path
from typing import BinaryIO

import trio

from dataflow.clients.buckets import is_address
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import SourceError
from dataflow.sources.blobs import BucketFiles
from dataflow.sources.compressed import DAMAGE, compression_of, decompressed

_PIECE = 1 << 20  # bytes that are read at once, or one line


class FileSet:
    """The files that a path stands for: one file, all of a folder, or those that match a pattern. Each has a name
    within the set, so that a folder that was moved is the same set.

    Names that begin with a dot or an underscore are left out in a folder: others' work in progress.
    """

    remote = False  # whether reading waits for a server

    def __init__(self, path: str | os.PathLike[str], follow: bool) -> None:
        self.title = _text_of(path)
        self._follow = follow
        self._pattern = glob.has_magic(self.title) and not os.path.exists(self.title)
        parts = Path(self.title).parts
        fixed = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts)) if self._pattern else 0
        self._root = Path(*parts[:fixed]) if self._pattern else Path(self.title)

    def names(self) -> list[str]:
        """The names of the files that there are now, sorted."""
        if self._pattern:
            found = sorted(name for name in glob.glob(self.title, recursive=True) if os.path.isfile(name))
            names = [Path(name).relative_to(self._root).as_posix() for name in found]
        elif self._root.is_dir():
            entries = [entry for entry in os.scandir(self._root) if entry.name[0] not in "._" and entry.is_file()]
            return sorted(entry.name for entry in entries)
        else:
            names = [self._root.name] if self._root.is_file() else []
        if not names and not self._follow:
            raise SourceError(f"there is no file or folder {self.title!r}")
        return names

    def path(self, name: str) -> Path:
        """Where a file of the set is."""
        return self._root / name if self._pattern or self._root.is_dir() else self._root

    def where(self, name: str) -> str:
        """What a file is called when it is talked about."""
        return str(self.path(name))

    def open(self, name: str) -> BinaryIO:
        """A file of the set, as it is."""
        return open(self.path(name), "rb")


AnyFiles = FileSet | BucketFiles


def files_at(path: str | os.PathLike[str], follow: bool) -> AnyFiles:
    """The files that a path or an address stands for."""
    text = _text_of(path)
    return BucketFiles(text, follow) if is_address(text) else FileSet(text, follow)


async def names_of(files: AnyFiles) -> list[str]:
    """`names`, in a thread if it has to wait for a server."""
    return await trio.to_thread.run_sync(files.names) if files.remote else files.names()


def _text_of(path: object) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not isinstance(text, str) or not text:
        raise ConstructionError(
            f"a source of files needs a file, a folder or a pattern such as 'logs/*.txt', not {path!r}"
        )
    return text


class Tail:
    """The whole lines of a file from a byte on. The file is open only while it is read: there may be thousands."""

    whole = False  # whether all of the file is there from the beginning

    def __init__(self, files: AnyFiles, name: str, position: object, follow: bool) -> None:
        self.path = files.where(name)
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(
                f"{self.path}: {position!r} is no position in a file of lines: a number of bytes was expected"
            )
        self.offset: int = position or 0
        self._files, self._name = files, name
        self._follow = follow
        self._started = False

    async def more(self, most: int) -> list[bytes]:
        """`take`, in a thread if it has to wait for a server."""
        return self.take(most)

    def close(self) -> None:
        """Nobody asks any more."""

    def take(self, most: int) -> list[bytes]:
        """Up to so many lines, with their ends, or about a megabyte; none if there are no more now. A last line without
        an end counts unless the file is followed: then its end is still to come."""
        lines: list[bytes] = []
        size = 0
        with self._opened() as file:
            length = os.fstat(file.fileno()).st_size
            if length < self.offset:
                raise SourceError(
                    f"{self.path} has {length} bytes, and {self.offset} have been read: it was cut off or replaced. A "
                    "file may grow, and new ones may come; give a new file a new name"
                )
            if not self._started:
                self._skip_late_end(file)
                self._started = True
            file.seek(self.offset)
            for line in file:
                if self._follow and not line.endswith(b"\n"):
                    break
                lines.append(line)
                size += len(line)
                if len(lines) == most or size >= _PIECE:
                    break
        self.offset += size
        return lines

    def _opened(self) -> BinaryIO:
        try:
            return self._files.open(self._name)
        except FileNotFoundError:
            raise SourceError(
                f"{self.path} is gone, and was read up to byte {self.offset}: leave files where they are while they "
                "are read"
            ) from None

    def _skip_late_end(self, file: BinaryIO) -> None:
        """Where the last line had no end when it was read, and counted: its end may have come since, but no more of
        it."""
        if self.offset == 0:
            return
        file.seek(self.offset - 1)
        before, after = file.read(1), file.read(2)
        if before == b"\n" or not after:
            return
        if after[:1] == b"\n" or after == b"\r\n":
            self.offset += len(after) if after == b"\r\n" else 1
            return
        raise SourceError(
            f"{self.path}: the last line had no end when it was read, up to byte {self.offset}, and has grown since: "
            "it counted as a whole line. End lines with a newline, or read the file with follow=True from the start"
        )


class WholeTail(Tail):
    """The lines of a file that does not grow: it is compressed, or it is a blob of an object store. It stays open. The
    position is a byte of what is in it; where that has to be decompressed, going on means to read it from its
    beginning."""

    whole = True

    def __init__(self, files: AnyFiles, name: str, position: object) -> None:
        super().__init__(files, name, position, follow=False)
        self._file: BinaryIO | None = None

    async def more(self, most: int) -> list[bytes]:
        return await trio.to_thread.run_sync(self.take, most) if self._files.remote else self.take(most)

    def take(self, most: int) -> list[bytes]:
        lines: list[bytes] = []
        size = 0
        try:
            if self._file is None:
                self._file = decompressed(self._opened(), self._name)
                self._skip(self._file)
            for line in self._file:
                lines.append(line)
                size += len(line)
                if len(lines) == most or size >= _PIECE:
                    break
        except DAMAGE as error:
            raise SourceError(f"{self.path}, behind byte {self.offset}, cannot be read: {error}") from None
        self.offset += size
        return lines

    def _skip(self, file: BinaryIO) -> None:
        """To the position. A plain blob is asked for what comes after it only."""
        if compression_of(self._name) is None and file.seek(0, io.SEEK_END) >= self.offset:
            file.seek(self.offset)
            return
        left = self.offset
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise SourceError(f"{self.path} has less than the {self.offset} bytes that were read: it was replaced")
            left -= len(piece)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def tail_of(files: AnyFiles, name: str, position: object, follow: bool) -> Tail:
    """The lines of a file from a position on."""
    if files.remote or compression_of(name) is not None:
        return WholeTail(files, name, position)
    return Tail(files, name, position, follow)
