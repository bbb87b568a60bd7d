"""Files of compiled code: one for each function and signature, whole or not at all, with a checksum.

The checksum is of the content and of the key under which it was written (all that the code depends on; its digest is
the file's name), so what was cut short, has rotted or stands under a wrong name is noticed. It is no protection against
others: `cache_folder` is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dataflow.compiled.cache_folder import CacheFolder, Untrusted, check_owner

_MAGIC = b"megaphone-dataflow compiled code 1\n"
_DIGEST = hashlib.sha256().digest_size
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # not to hang if it is a FIFO
_PATIENCE = 60.0  # seconds to wait for a process that compiles the same: if that is stopped, the others go on
_PAUSE = 0.02


class Damaged(Exception):
    """A file that is not what was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the code for a key is, in any folder."""

    key: str  # all that the code depends on
    label: str  # what the file's name begins with, for people

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.label}-{hashlib.sha256(self.key.encode()).hexdigest()[:32]}"

    def read(self, folder: CacheFolder) -> bytes | None:
        """The content; None if there is none. Damaged, or Untrusted, if it cannot be used."""
        try:
            fd = os.open(self.name, _READ, dir_fd=folder.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Untrusted(f"{folder.path / self.name} cannot be read: {error.strerror}") from error
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            check_owner(status, folder.path / self.name)
            if not stat.S_ISREG(status.st_mode):
                raise Untrusted(f"{folder.path / self.name} is no file")
            data = file.read()
        start = len(_MAGIC) + _DIGEST
        content = data[start:]
        if data[:start] != _MAGIC + self._checksum(content):
            raise Damaged(f"{folder.path / self.name} is damaged")
        return content

    def write(self, folder: CacheFolder, content: bytes) -> None:
        """Keeps the content; OSError if there is no room, for example."""
        self._clear(folder)
        temporary = f"{self.name}.{secrets.token_hex(8)}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder.fd)
        try:
            with open(fd, "wb") as file:
                file.write(_MAGIC + self._checksum(content) + content)
            os.replace(temporary, self.name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except BaseException:
            with suppress(OSError):  # what it was is being raised
                os.unlink(temporary, dir_fd=folder.fd)
            raise

    def discard(self, folder: CacheFolder) -> None:
        """Removes what cannot be used, where that can be."""
        with suppress(OSError):  # it was no file, or is not ours to remove: then it stays, and is not used
            os.unlink(self.name, dir_fd=folder.fd)

    @contextmanager
    def locked(self, folder: CacheFolder) -> Iterator[None]:
        """Keeps other processes from compiling the same meanwhile. If a process is killed, its lock is free.

        Goes on without a lock if the file system has none, or if it is not free after a while: then several processes
        do the same work.
        """
        name = f"{self.name}.lock"
        fd = _lock(folder, name)
        try:
            yield
        finally:
            if fd is not None:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder.fd)
                os.close(fd)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(b"%s\0%s" % (self.key.encode(), content)).digest()

    def _clear(self, folder: CacheFolder) -> None:
        """Removes what killed processes have left."""
        for name in os.listdir(folder.fd):
            if name.startswith(f"{self.name}.") and name.endswith(".tmp"):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder.fd)


def _lock(folder: CacheFolder, name: str) -> int | None:
    """The lock file, open and locked; None if that cannot be had."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder.fd)
        except OSError:
            return None
        if _is_mine(fd, deadline) and os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # somebody has removed it as we got it, or has not given it up
        if time.monotonic() > deadline:
            return None


def _is_mine(fd: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        except OSError:
            return False  # no locks here
        else:
            return True
