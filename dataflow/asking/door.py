"""The socket of a run, from its start to its end.

Invariant: whoever has the lock of a name has its socket. The system frees the lock when a process ends, however that
happens, so a socket whose lock is free is that of a dead run, and may be replaced. A lock file is removed by whoever
holds it; so whoever has locked one looks whether it is still the one of that name.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import trio

from dataflow.asking.answers.known import AT_RUN
from dataflow.asking.folder import LOCK, SOCKET, NoFolder, RunsFolder, check_run_name, make_folder
from dataflow.asking.messages import Question
from dataflow.asking.naming import Suggested
from dataflow.asking.network import ControlAddress, serve_network
from dataflow.asking.run import AskWorker, NamedRun, RunFacts, answer
from dataflow.asking.serving import serve
from dataflow.errors import DataflowError, Terminated

_BACKLOG = 16


class NameTaken(DataflowError):
    """A run of that name is there already."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where a run is asked. It outlives the loops in which it is served."""

    facts: RunFacts
    listener: socket.socket
    network: tuple[socket.socket, ControlAddress] | None = None  # where it is asked from other hosts

    async def serve(self, ask_worker: AskWorker) -> None:
        """Answers whoever asks, until it is cancelled. Terminated, if somebody asks the run to stop."""
        run = NamedRun(self.facts, ask_worker)

        async def respond(question: Question) -> bytes:
            return await answer(question, run, AT_RUN)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, self.listener, respond)
            if self.network is not None:
                nursery.start_soon(serve_network, *self.network, respond)
            await run.stopping.wait()
            raise Terminated(f"{self.facts.name!r} was asked to stop (python -m dataflow stop)")


@contextmanager
def opened(name: str | None, workers: int, control: ControlAddress | None = None) -> Iterator[Door | None]:
    """The door of a run that begins; None if it has no name. NameTaken if there is a run of that name."""
    if name is None:
        yield None
        return
    if isinstance(name, Suggested):
        with ExitStack() as stack:
            yield _open_first(stack, name, workers, control)
        return
    check_run_name(name)
    with make_folder() as folder, _locked(folder, name), socket.socket(socket.AF_UNIX) as listener:
        file = name + SOCKET
        with suppress(FileNotFoundError):
            os.unlink(file, dir_fd=folder.fd)  # of a run that is dead: we have its lock
        listener.bind(folder.address(file))
        try:
            os.chmod(file, 0o600, dir_fd=folder.fd)
            listener.listen(_BACKLOG)
            facts = RunFacts(name, os.getpid(), workers, time.time())
            if control is None:
                yield Door(facts, listener)
            else:
                with control.listen() as outside:
                    yield Door(facts, listener, (outside, control))
        finally:
            with suppress(FileNotFoundError):  # somebody has cleaned up
                os.unlink(file, dir_fd=folder.fd)


def _open_first(stack: ExitStack, name: Suggested, workers: int, control: ControlAddress | None) -> Door | None:
    """The door of the first of the names that is free; None if there cannot be one here and nobody has asked for it."""
    for each in name.each():
        try:
            return stack.enter_context(opened(each, workers, control))
        except NameTaken:
            continue
        except (NoFolder, OSError):
            if control is not None:
                raise
            return None
    return None


@contextmanager
def _locked(folder: RunsFolder, name: str) -> Iterator[None]:
    file = name + LOCK
    while True:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder.fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(fd, file, folder):
                break
        except BlockingIOError:
            os.close(fd)
            raise NameTaken(
                f"there is a run called {name!r} already (python -m dataflow list): give this one another name, or "
                "wait for the end of that one"
            ) from None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file, dir_fd=folder.fd)
        os.close(fd)


def _is_still(fd: int, file: str, folder: RunsFolder) -> bool:
    """Whether the file that was locked is the one that has the name."""
    try:
        there = os.stat(file, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
