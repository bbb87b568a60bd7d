"""Forking workers: each keeps its own ends of what was made for it, and closes the rest."""

from __future__ import annotations

import errno
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from dataflow.comm.arena import Arena, arena_size
from dataflow.compiled.telling import Voice
from dataflow.errors import TooManyWorkers
from dataflow.execute import Main
from dataflow.launch.child import Assignment, Connect, Neighbours, run_child
from dataflow.launch.lines import LineAssembler
from dataflow.launch.printer import Printer
from dataflow.launch.process import Process, Settings

FindLinks = Callable[[int, Neighbours], Connect]
"""(index, the others on this host): how a worker gets its links."""

Pairs = dict[tuple[int, int], socket.socket]
Controls = dict[int, tuple[socket.socket, socket.socket]]
Outputs = dict[int, tuple[tuple[int, int], tuple[int, int]]]

_BUFFER = 1 << 20  # of the kernel's, for each direction of a connection between two workers


def fork_workers(
    processes: list[Process],
    main: Main,
    args: tuple[Any, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks,
) -> None:
    """Forks one process per worker. Each keeps its own ends of what was made for it, and closes the rest.

    Adds them to `processes` as they start, for whoever has to end them if this fails half-way. Ctrl-C has to wait: a
    child must not take it for its own before it has settled in.
    """
    key = secrets.token_bytes(24)
    pairs, controls, outputs = _make_ends(workers)
    arenas = {index: Arena(arena_size(settings.limit)) for index in workers} if len(workers) > 1 else {}
    sys.stdout.flush()
    sys.stderr.flush()
    stdout, stderr = Printer(sys.stdout), Printer(sys.stderr)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for index in workers:
            pid = os.fork()
            if pid == 0:
                sockets = {peer: pairs[index, peer] for peer in workers if peer != index}
                connect = find_links(index, Neighbours(sockets, key, arenas))
                (_, out), (_, err) = outputs[index]
                control = controls[index][1]
                _close_others(controls, outputs, pairs, index)
                debug, limit = settings.debug, settings.limit
                crowded = len(workers) > _processors()
                voice = Voice(settings.terminal, speaks=index == workers.start)
                warn_after = settings.warn_after
                mine = Assignment(
                    index, peers, connect, control, out, err, parent, debug, limit, crowded, warn_after, voice
                )
                run_child(mine, main, args)
            prefix = f"[worker {index}] " if settings.prefix else ""
            (out, _), (err, _) = outputs[index]
            streams = {out: (stdout, LineAssembler(prefix)), err: (stderr, LineAssembler(prefix))}
            processes.append(Process(index, pid, controls[index][0], streams))
    finally:
        _close_theirs(controls, outputs, pairs, {process.index for process in processes})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _make_ends(workers: range) -> tuple[Pairs, Controls, Outputs]:
    """All connections of workers with each other and with us; TooManyWorkers if there may not be as many open files."""
    pairs: Pairs = {}
    controls: Controls = {}
    outputs: Outputs = {}
    try:
        _connect_workers(workers, pairs)
        for index in workers:
            controls[index] = socket.socketpair()
            outputs[index] = _two_pipes()
    except OSError as error:
        _close_theirs(controls, outputs, pairs, set())
        if error.errno != errno.EMFILE:
            raise
        count = workers.stop - workers.start  # len() has an end
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise TooManyWorkers(
            f"{count:,} workers on one host need {count * (count - 1) + 6 * count:,} open files to start, and this "
            f"process may have {limit:,}: start fewer workers, or raise the limit first (ulimit -n)"
        ) from None
    return pairs, controls, outputs


def _two_pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    first = os.pipe()
    try:
        return first, os.pipe()
    except OSError:
        for fd in first:
            os.close(fd)
        raise


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _close_theirs(controls: Controls, outputs: Outputs, pairs: Pairs, started: set[int]) -> None:
    """In the parent: closes every end that is a worker's, and all of what was made for workers that did not start."""
    for sock in pairs.values():
        sock.close()
    for index, (mine, theirs) in controls.items():
        theirs.close()
        if index not in started:
            mine.close()
    for index, ends in outputs.items():
        for read_end, write_end in ends:
            os.close(write_end)
            if index not in started:
                os.close(read_end)


def _connect_workers(workers: range, pairs: Pairs) -> None:
    """Adds a pair of connected sockets for each two workers: (a, b) is a's end of the connection to b."""
    for a in workers:
        for b in workers:
            if a < b:
                pairs[a, b], pairs[b, a] = socket.socketpair()
    for sock in pairs.values():
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def _close_others(controls: Controls, outputs: Outputs, pairs: Pairs, index: int) -> None:
    """In a worker's process: closes every end that is not its own, or nobody would ever see an end of anything."""
    for other, (parents, childs) in controls.items():
        parents.close()
        if other != index:
            childs.close()
    for other, ends in outputs.items():
        for read_end, write_end in ends:
            os.close(read_end)
            if other != index:
                os.close(write_end)
    for (owner, _), sock in pairs.items():
        if owner != index:
            sock.close()
