"""Where compiled code is kept, and whether it may be trusted.

In `$XDG_CACHE_HOME/megaphone-dataflow/compiled`, or under `~/.cache`; where that cannot be written to (a container
without a home), in a folder of this user's own under the temporary directory; and if that cannot be either, nowhere.

Whoever can put a file there can run code as us, for what is kept is unpickled. So the folder must belong to this user,
and nobody else may write to it. We check the owner of the open folder, and open files relative to it. Somebody who can
write to a folder above may put another folder in its place; but that belongs to somebody else, or it is not the one
that we have opened. So the folders above need not be trusted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from dataflow.compiled.telling import teller

_NAME = "megaphone-dataflow"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Untrusted(Exception):
    """Somebody else could have written it."""


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """An open folder of ours."""

    path: Path
    fd: int

    @property
    def short(self) -> str:
        """Its name, for people."""
        home, path = os.path.expanduser("~"), str(self.path)
        return f"~{path.removeprefix(home)}" if home != "/" and path.startswith(f"{home}/") else path


@contextmanager
def open_cache_folder() -> Iterator[CacheFolder | None]:
    """The folder for compiled code, made if need be; None if there is none, of which users are told once."""
    folder = _find()
    try:
        yield folder
    finally:
        if folder is not None:
            os.close(folder.fd)


def check_owner(status: os.stat_result, name: str | Path) -> None:
    """Untrusted unless it is ours, and only we may write to it."""
    if status.st_uid != os.geteuid():
        raise Untrusted(f"{name} belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(f"other users may write to {name} (mode {stat.S_IMODE(status.st_mode):o})")


def _find() -> CacheFolder | None:
    troubles = []
    for base, name in _candidates():
        try:
            return _open(base, name)
        except Untrusted as error:
            troubles.append(str(error))
            advice = "delete it, or take the others' permissions away, or set XDG_CACHE_HOME to a folder of your own"
            teller.warn(str(error), f"compiled code is not taken from where others may put it: {error}; {advice}")
        except OSError as error:
            troubles.append(f"{error.filename or base}: {error.strerror or error}")
    why = "; ".join(troubles) or "there is neither a home nor a temporary directory"
    teller.warn("nowhere", f"compiled code cannot be kept, and every process compiles for itself: {why}")
    return None


def _candidates() -> Iterator[tuple[Path, str]]:
    """Folders that exist or may be made, and the name of ours in them."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # such are to be ignored, says the specification
        home = os.path.expanduser("~")
        base = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    if base:
        yield Path(base), _NAME
    try:
        temporary = gettempdir()
    except FileNotFoundError:
        return
    yield Path(temporary), f"{_NAME}-{os.geteuid()}"


def _open(base: Path, name: str) -> CacheFolder:
    """Our folder in `base`; OSError if it cannot be made or written to, Untrusted if it is not ours alone."""
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, path = os.open(base, _FOLDER), base
    try:
        for part in (name, "compiled"):
            path = path / part
            above, fd = fd, _step(fd, part, path)
            os.close(above)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=fd):
            raise PermissionError(13, "not writable", str(path))
    except BaseException:
        os.close(fd)
        raise
    return CacheFolder(path, fd)


def _step(above: int, name: str, path: Path) -> int:
    """One folder of ours, made if need be and opened, inside an open one."""
    try:
        os.mkdir(name, mode=0o700, dir_fd=above)
    except FileExistsError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise Untrusted(f"{path} is a symbolic link") from None
    fd = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    try:
        check_owner(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd
