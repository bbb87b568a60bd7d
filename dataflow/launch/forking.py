"""Forking workers, and telling the supervisor how they end.

Every two workers share a pair of connected sockets. The worker that starts later inherits its end. The other one gets
its end through a connection that each worker keeps with this process. So this process never has more than a few files
open for each worker, and a worker that starts later is connected in the same way.

A worker that has ended is not reaped until all have ended. Until then no other process gets its number, and so the
supervisor may send signals to it.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import secrets
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from dataflow.comm import codec
from dataflow.comm.arena import Arena, arena_size
from dataflow.compiled.telling import Voice
from dataflow.launch.child import PEER, Assignment, Ends, Load, Neighbours, run_child
from dataflow.launch.descent import fork
from dataflow.launch.framing import frame
from dataflow.launch.process import Settings

_BUFFER = 1 << 20  # of the kernel's, for each direction of a connection between two workers
_MOMENT = 0.005  # seconds


class Forks:
    """The workers that this process has forked."""

    def __init__(
        self, control: socket.socket, workers: range, peers: int, settings: Settings, ends: dict[int, Ends], load: Load
    ) -> None:
        """`control`: the connection to the supervisor. `ends`: by worker, its ends of its connections with the
        supervisor. `load`: how a worker gets main."""
        self._control = control
        self._workers = workers
        self._peers = peers
        self._settings = settings
        self._ends = ends
        self._load = load
        self._key = secrets.token_bytes(24)
        size = arena_size(settings.limit) if len(workers) > 1 else 0
        self._arenas = {index: Arena(size) for index in workers}
        self._posts: dict[int, socket.socket] = {}  # by worker that has started, the connection to it
        self._pids: dict[int, int] = {}
        self._ended: set[int] = set()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends and reaps whoever is left."""
        for index, pid in self._pids.items():
            if index not in self._ended:
                os.kill(pid, signal.SIGKILL)
        for pid in self._pids.values():
            with contextlib.suppress(ChildProcessError):  # where looking at it has reaped it
                os.waitpid(pid, 0)

    def start_all(self) -> None:
        """Forks one process per worker."""
        gc.freeze()  # collections skip what all of them share, and so do not copy its pages
        gc.enable()  # it was off while modules were imported: imports make little garbage (see `starting`)
        for index in self._workers:
            self._start(index)

    def _start(self, index: int) -> None:
        parent = os.getpid()
        mine: dict[int, socket.socket] = {}
        theirs: dict[int, socket.socket] = {}
        with contextlib.ExitStack() as stack:
            for peer in self._posts:
                mine[peer], theirs[peer] = (stack.enter_context(end) for end in connected())
            post, its_post = socket.socketpair()
            stack.enter_context(its_post)
            pid = fork()
            if pid == 0:
                post.close()
                for sock in theirs.values():
                    sock.close()
                self._become(index, parent, mine, its_post)
            self._posts[index] = post
            self._pids[index] = pid
            self._tell("started", index, pid)
            for peer, sock in theirs.items():
                hand_over(self._posts[peer], index, sock)
        self._ends.pop(index).close()

    def _become(self, index: int, parent: int, sockets: dict[int, socket.socket], post: socket.socket) -> NoReturn:
        """In the new process: runs that worker, then exits."""
        self._control.close()
        for other in self._posts.values():
            other.close()
        ends = self._ends.pop(index)
        for others in self._ends.values():
            others.close()
        neighbours = Neighbours(index, set(self._workers) - {index}, sockets, post, self._key, self._arenas)
        crowded = len(self._workers) > _processors()
        debug, limit, warn_after = self._settings.debug, self._settings.limit, self._settings.warn_after
        voice = Voice(self._settings.terminal, speaks=index == self._workers.start)
        run_child(
            Assignment(index, self._peers, neighbours, ends, parent, debug, limit, crowded, warn_after, voice),
            self._load,
        )

    def _tell(self, *message: str | int) -> None:
        with contextlib.suppress(OSError):  # the supervisor has ended; `watch` is about to see that
            self._control.sendall(frame(codec.encode(list(message))))

    # Until the supervisor says that it is over

    def watch(self) -> None:
        """Tells the supervisor of each worker that ends, until it closes the connection."""
        awake, wake = os.pipe()
        os.set_blocking(awake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the descriptor is written to
        poll = select.poll()
        poll.register(awake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while True:
            self._tell_of_ends()
            for fd, _ in poll.poll():
                if fd == awake:
                    os.read(awake, 1 << 10)
                elif not self._control.recv(1):
                    return

    def _tell_of_ends(self) -> None:
        for index, pid in self._pids.items():
            if index not in self._ended and (status := _exit_status(pid)) is not None:
                self._ended.add(index)
                self._tell("exited", index, status)


def connected() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets for two workers."""
    pair = socket.socketpair()
    for sock in pair:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    return pair


def hand_over(post: socket.socket, peer: int, sock: socket.socket) -> None:
    """Sends a worker its end of the connection to `peer`."""
    while True:
        try:
            socket.send_fds(post, [PEER.pack(peer)], [sock.fileno()])
        except (BrokenPipeError, ConnectionResetError):
            return  # the worker has ended; the supervisor is told of that
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            time.sleep(_MOMENT)  # workers have not taken their descriptors yet: only so many may be on their way
        else:
            return


def _exit_status(pid: int) -> int | None:
    """How a child has ended: negative if by a signal. None if it has not. It is not reaped."""
    if not hasattr(os, "waitid"):
        reaped, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if reaped else None
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
