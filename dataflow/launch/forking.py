"""Forking workers, and telling the supervisor how they end.

Every two workers share a pair of connected sockets. The worker that starts later inherits its end. The other one gets
its end through a connection that each worker keeps with this process. So this process never has more than a few files
open for each worker. When some workers are replaced, all are connected anew: those that run already are sent all.

A worker that has ended is not reaped until all have ended, or until it is replaced. Until then no other process gets
its number, and so the supervisor may send signals to it.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import secrets
import select
import signal
import socket
import sys
from typing import NoReturn

from dataflow.comm import codec
from dataflow.comm.arena import Arena, arena_size
from dataflow.comm.hall import HallPlan, make_hall
from dataflow.compiled.telling import Voice
from dataflow.launch.child import Assignment, Ends, Load, run_child
from dataflow.launch.descent import fork
from dataflow.launch.errand import Anew, Errand, More, decode_wish, receive_ends, receive_message, tell_failure
from dataflow.launch.framing import frame
from dataflow.launch.neighbours import Introduction, Neighbours, make_memory, map_memory


class Forks:
    """The workers that this process has forked."""

    def __init__(self, control: socket.socket, errand: Errand, ends: dict[int, Ends], load: Load) -> None:
        """`control`: the connection to the supervisor. `ends`: by worker, its ends of its connections with the
        supervisor. `load`: how a worker gets main."""
        self._control = control
        self._errand = errand
        self._workers = errand.workers
        self._ends = ends
        self._load = load
        self._life = max(1, errand.life)
        self._key = secrets.token_bytes(24)
        size = arena_size(errand.settings.limit) if len(errand.workers) > 1 else 0
        self._size = size - size % mmap.PAGESIZE  # of an arena
        self._arenas = {index: Arena(self._size) for index in errand.workers}
        self._hall = make_hall(HallPlan(len(errand.workers))) if len(errand.workers) > 1 else None
        self._posts: dict[int, socket.socket] = {}  # by worker that has started, the connection to it
        self._pids: dict[int, int] = {}
        self._ended: set[int] = set()
        self._wakers: list[int] = []  # the ends of a pipe that is written to when a worker ends

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
        introduction = Introduction(self._life)
        more = More(tuple(self._workers), self._errand.peers) if self._errand.joins else None
        for index in self._workers:
            self._start(index, introduction, more)

    def start_anew(self, anew: Anew, ends: dict[int, Ends]) -> None:
        """Replaces workers that have ended, and connects all for another life, with new memory to share."""
        self._life = anew.life
        for index in anew.replaced:
            self._bury(index)
        self._ends = ends
        memory = make_memory(self._workers, self._size)
        try:
            self._arenas, self._hall = map_memory(memory, self._workers, self._size)
            introduction = Introduction(anew.life)
            for index in self._workers:
                if index in anew.replaced:
                    self._start(index, introduction)
                else:
                    introduction.admit(index, self._posts[index], memory, self._size)
        finally:
            os.close(memory)

    def start_more(self, more: More, ends: dict[int, Ends]) -> None:
        """Forks workers that join those that run. They share no memory with anybody: all goes through their sockets."""
        self._ends = ends
        here = {index: post for index, post in self._posts.items() if index not in self._ended}
        introduction = Introduction(self._life, here)
        for index in more.joiners:
            self._start(index, introduction, more)

    def _bury(self, index: int) -> None:
        """Forgets a worker that has ended, and was told to have, or one that was given up before it had started."""
        if index in self._pids:
            pid = self._pids.pop(index)
            if index not in self._ended:  # it has started after all
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # where looking at it has reaped it
                os.waitpid(pid, 0)
            self._posts.pop(index).close()
        self._ended.discard(index)
        if index in self._ends:
            self._ends.pop(index).close()

    def _start(self, index: int, introduction: Introduction, more: More | None = None) -> None:
        parent = os.getpid()
        with contextlib.ExitStack() as stack:
            pairs = introduction.pairs()
            for pair in pairs.values():
                for sock in pair:
                    stack.enter_context(sock)
            mine = {peer: pair[0] for peer, pair in pairs.items()}
            theirs = {peer: pair[1] for peer, pair in pairs.items()}
            post, its_post = socket.socketpair()
            stack.enter_context(its_post)
            pid = fork()
            if pid == 0:
                try:
                    post.close()
                    for sock in theirs.values():
                        sock.close()
                    life = introduction.life
                    workers = self._workers if more is None else (index, *mine)
                    arenas = self._arenas if more is None else {index: Arena(0)}
                    hall = self._hall if more is None else None
                    neighbours = Neighbours(index, workers, mine, its_post, self._key, arenas, hall, life)
                    self._become(index, parent, neighbours, more)
                finally:
                    os._exit(1)  # whatever happened: this is not the process that forks workers
            self._posts[index] = post
            self._pids[index] = pid
            self._tell("started", index, pid)
            introduction.settle(index, post, theirs)
        self._ends.pop(index).close()

    def _become(self, index: int, parent: int, neighbours: Neighbours, more: More | None) -> NoReturn:
        """In the new process: runs that worker, then exits."""
        self._control.close()
        for fd in self._wakers:
            os.close(fd)
        for other in self._posts.values():
            other.close()
        ends = self._ends.pop(index)
        for others in self._ends.values():
            others.close()
        crowded = len(self._workers) > _processors()
        of = self._errand.settings
        voice = Voice(of.terminal, speaks=index == self._workers.start)
        peers, recovers = self._errand.peers if more is None else more.peers, self._errand.life > 0
        run_child(
            Assignment(
                index, peers, neighbours, ends, parent, of.debug, of.limit, crowded, of.warn_after, voice, recovers,
                joins=more is not None,
            ),
            self._load,
        )

    def _tell(self, *message: str | int) -> None:
        with contextlib.suppress(OSError):  # the supervisor has ended; `watch` is about to see that
            self._control.sendall(frame(codec.encode(list(message))))

    # Until the supervisor says that it is over

    def watch(self) -> None:
        """Tells the supervisor of each worker that ends, and replaces those that it says, until it closes the
        connection."""
        awake, wake = self._wakers = list(os.pipe())
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
                elif not self._control.recv(1, socket.MSG_PEEK):
                    return
                else:
                    self._obey()

    def _obey(self) -> None:
        """Does what the supervisor says now."""
        try:
            wish = decode_wish(receive_message(self._control))
            if isinstance(wish, More):
                self.start_more(wish, receive_ends(self._control, wish.joiners))
            else:
                self.start_anew(wish, receive_ends(self._control, wish.replaced))
        except BaseException as error:  # those that have started are told to go back, or ended, by the supervisor
            tell_failure(self._control, error)

    def _tell_of_ends(self) -> None:
        for index, pid in self._pids.items():
            if index not in self._ended and (status := _exit_status(pid)) is not None:
                self._ended.add(index)
                self._tell("exited", index, status)


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
