"""Where the sockets of runs are: a folder that is ours alone.

In `$XDG_RUNTIME_DIR/dataflow`; where there is none, `dataflow-UID` under the temporary directory. Whoever asks looks
into both, since a service and a login may differ in what their environment says.

The folder must belong to this user, and nobody else may enter it. We check the open folder, not its name, and name what
is in it relative to it. So the folders above need not be trusted, and names may be longer than those of a socket.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from dataflow.errors import DataflowError

_NAME = "dataflow"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
SOCKET, LOCK = ".sock", ".lock"


class NoFolder(DataflowError):
    """There is no folder for the sockets of runs, or not one that can be trusted."""


def check_run_name(name: str) -> str:
    """ValueError unless it can be the name of a run.

    >>> check_run_name("app-2")
    'app-2'
    """
    if type(name) is not str:
        raise TypeError(f"the name of a run is a string, not {name!r}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError(
            f"a run cannot be called {name!r}: its name has up to 64 letters (a to z), digits, '.', '_' and '-', and "
            "begins with a letter or digit"
        )
    return name


@dataclass(frozen=True, slots=True)
class RunsFolder:
    """An open folder of ours."""

    path: Path
    fd: int

    def address(self, file: str) -> str:
        """What a socket in it is bound to, or connected to: by the open folder, where the system has such names."""
        own = f"/proc/self/fd/{self.fd}"
        return f"{own}/{file}" if os.path.isdir(own) else str(self.path / file)

    def names(self) -> list[str]:
        """The runs that have a socket in it, dead ones among them."""
        return sorted(name.removesuffix(SOCKET) for name in os.listdir(self.fd) if name.endswith(SOCKET))


@contextmanager
def make_folder() -> Iterator[RunsFolder]:
    """The folder for a run that begins, made if need be. NoFolder if it cannot be, or is not ours alone."""
    path = _candidates()[0]
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        folder = _open(path)
    except OSError as error:
        raise NoFolder(
            f"a run with a name needs a folder for its socket, and {path} cannot be made: {error.strerror or error}. "
            "Set XDG_RUNTIME_DIR to a folder of your own"
        ) from None
    try:
        yield folder
    finally:
        os.close(folder.fd)


@contextmanager
def open_folders() -> Iterator[list[RunsFolder]]:
    """Those that there are, for whoever looks for a run."""
    folders: list[RunsFolder] = []
    troubles: list[str] = []
    try:
        for path in _candidates():
            try:
                folders.append(_open(path))
            except FileNotFoundError:
                continue
            except NoFolder as error:
                troubles.append(str(error))
            except OSError as error:
                troubles.append(f"{path} cannot be opened: {error.strerror or error}")
        if troubles and not folders:  # somebody else's folder is of no interest to those who have one
            raise NoFolder("; ".join(troubles))
        yield folders
    finally:
        for folder in folders:
            os.close(folder.fd)


def _candidates() -> list[Path]:
    """Where runs' sockets may be, the best place first."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    found = [Path(given, _NAME)] if os.path.isabs(given) and os.path.isdir(given) else []
    return [*found, Path(gettempdir(), f"{_NAME}-{os.geteuid()}")]


def _open(path: Path) -> RunsFolder:
    fd = os.open(path, _FOLDER)
    try:
        _require_ours(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return RunsFolder(path, fd)


def _require_ours(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        raise NoFolder(
            f"{path} belongs to user {status.st_uid}, and this is user {os.geteuid()}: set XDG_RUNTIME_DIR to a folder "
            "of your own"
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NoFolder(
            f"other users may enter {path} (mode {stat.S_IMODE(status.st_mode):o}), and could steer your runs: "
            "chmod 700 it"
        )
