"""A storage in a folder.

A blob is written to a file of another name, which is synced, then renamed (or linked, if there must be none of that
name: of several who link at once one succeeds), and the folder is synced. So a crash at any moment leaves the whole
blob or none, and what `put` has returned from survives a power cut, as far as the disk tells the truth.

Whoever can write to the folder can change what a program goes on from. So it must belong to this user (or to root), and
nobody else may write to it; folders and files inside are opened relative to it, without following links.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TypeVar

import trio

from dataflow.recovery.backstage import run_backstage
from dataflow.recovery.direct import read_all, write_all
from dataflow.recovery.storage import AlreadyThere, Blob, NotThere, StorageError, Threaded, check_name

T = TypeVar("T")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OLD = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_UNFINISHED = ".put-"
_LARGE = 1 << 20  # bytes of a blob that nobody waits for: state
_ABANDONED_AFTER = 3600.0  # seconds after which nobody writes to an unfinished file any more


class LocalStorage(Threaded):
    """Named blobs as files in a folder. Calls go to threads, and cannot be cancelled before they have ended."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self.title = str(self.path)

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob. Costs two syncs."""
        run = run_backstage if memoryview(data).nbytes >= _LARGE else trio.to_thread.run_sync
        await self._in_thread(self._put, check_name(name), data, if_absent, run=run)

    async def get(self, name: str) -> bytes:
        """A blob; NotThere if there is none."""
        return await self._in_thread(self._get, check_name(name))

    async def get_large(self, name: str) -> memoryview:
        """The same past the system's cache."""
        return await self._in_thread(self._get_large, check_name(name))

    async def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, sorted. Reads the folders that the prefix leads to, and no others."""
        return await self._in_thread(self._names, prefix)

    async def delete(self, name: str) -> None:
        """Deletes a blob, if there is one."""
        await self._in_thread(self._delete, check_name(name))

    async def _in_thread(
        self, call: Callable[..., T], *args: object, run: Callable[..., Awaitable[T]] = trio.to_thread.run_sync
    ) -> T:
        try:
            return await run(call, *args)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise StorageError(f"{self.title}: {error.strerror or error}{where}") from error

    # In a thread

    def _put(self, name: str, data: Blob, if_absent: bool) -> None:
        with self._folder_of(name, make=True) as (folder, own):
            unfinished = f"{_UNFINISHED}{os.getpid()}-{secrets.token_hex(8)}"
            fd = os.open(unfinished, _NEW, 0o600, dir_fd=folder)
            try:
                with open(fd, "wb", buffering=0):
                    write_all(fd, memoryview(data))
                    os.fsync(fd)
                if if_absent:
                    _link(folder, unfinished, own, f"{name} is in {self.title} already")
                else:
                    os.rename(unfinished, own, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
            os.fsync(folder)

    def _get(self, name: str) -> bytes:
        with self._opened(name) as (file, _):
            return file.read()

    def _get_large(self, name: str) -> memoryview:
        with self._opened(name) as (file, size):
            return read_all(file.fileno(), size)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[FileIO, int]]:
        """A blob, to be read, and how large it is."""
        try:
            with self._folder_of(name) as (folder, own), FileIO(os.open(own, _OLD, dir_fd=folder)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise StorageError(f"{name} in {self.title} is not a file")
                yield file, status.st_size
        except (FileNotFoundError, NotADirectoryError):
            raise NotThere(f"there is no {name} in {self.title}") from None

    def _names(self, prefix: str) -> list[str]:
        top, slash, _ = prefix.rpartition("/")
        with ExitStack() as stack:
            try:
                folder, _ = stack.enter_context(self._folder_of(f"{check_name(top) if slash else ''}{slash}."))
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(name for name in _walk(folder, top + slash) if name.startswith(prefix))

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError, NotADirectoryError), self._folder_of(name) as (folder, own):
            os.unlink(own, dir_fd=folder)

    @contextmanager
    def _folder_of(self, name: str, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a blob, open, and the blob's name in it."""
        *parts, own = name.split("/")
        if make:
            _make_folders(self.path)
        fd = os.open(self.path, _FOLDER)
        try:
            self._check(fd)
            for part in parts:
                above, fd = fd, _enter(fd, part, make)
                os.close(above)
                self._check(fd)
            yield fd, own
        finally:
            os.close(fd)

    def _check(self, fd: int) -> None:
        status = os.fstat(fd)
        if status.st_uid not in (os.geteuid(), 0):
            raise StorageError(
                f"snapshots are not kept in {self.title}: it belongs to user {status.st_uid}, and this is user "
                f"{os.geteuid()}, who would trust what others wrote; name a folder of your own"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise StorageError(
                f"snapshots are not kept in {self.title}, because other users may write to it "
                f"(mode {stat.S_IMODE(status.st_mode):o}): chmod -R go-w it, or name another folder"
            )


def _make_folders(path: Path) -> None:
    """Makes a folder, and those above it, so that they survive a power cut."""
    if not path.is_dir():
        _make_folders(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        above = os.open(path.parent, _FOLDER)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def _enter(above: int, name: str, make: bool) -> int:
    """A folder inside an open one, made if that is asked for."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, mode=0o700, dir_fd=above)
            os.fsync(above)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)


def _link(folder: int, unfinished: str, own: str, taken: str) -> None:
    try:
        os.link(unfinished, own, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise AlreadyThere(taken) from None
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise StorageError("snapshots need a file system that has hard links, and this one refuses them") from error
        raise
    os.unlink(unfinished, dir_fd=folder)


def _walk(folder: int, before: str) -> Iterator[str]:
    """The blobs in an open folder and below. What a crash has left unfinished is deleted when it is old enough."""
    for name in os.listdir(folder):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:  # somebody has deleted or renamed it since
            continue
        if name.startswith("."):
            if name.startswith(_UNFINISHED) and status.st_mtime < time.time() - _ABANDONED_AFTER:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
        elif stat.S_ISREG(status.st_mode):
            yield before + name
        elif stat.S_ISDIR(status.st_mode):
            inner = _enter(folder, name, make=False)
            try:
                yield from _walk(inner, f"{before}{name}/")
            finally:
                os.close(inner)
