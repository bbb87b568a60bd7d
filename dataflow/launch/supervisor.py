"""The parent of worker processes: starts them, prints what they print, collects their results, and ends them.

Processes are forked, so that closures and lambdas in `main` need not be serialised (`starting`). The supervisor itself
runs no dataflow: it is never busy, and so can tell a worker that is busy from one that is gone.

Whatever happens, `ending.end` runs last: it asks the workers to stop, gives them a moment to run their `finally`
clauses, kills what is left, and reaps every process. If the supervisor itself is killed, the kernel kills the
workers.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from dataflow.errors import WorkerFailed
from dataflow.execute import Main, refuse_inside_a_loop
from dataflow.groups import unwrap
from dataflow.launch.child import socket_links
from dataflow.launch.ending import end, printers
from dataflow.launch.process import Process, Settings
from dataflow.launch.report import decode_failure, decode_report
from dataflow.launch.starting import FindLinks, fork_workers
from dataflow.launch.verdict import Event, Exited, Failed, Lost, Returned, Silent, Verdict
from dataflow.signal import Signal

__all__ = ["Settings", "run_processes", "supervise"]

Watch = Callable[[list[Process], range, Settings], Awaitable[dict[int, Any]]]

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 16


def run_processes(
    main: Main,
    args: tuple[Any, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks = socket_links,
    watch: Watch | None = None,
) -> dict[int, Any]:
    """Runs workers in processes of their own until all are done; their results, by worker.

    `workers` are the numbers of those to run here, of `peers` in all. `find_links` is how they find each other, and
    `watch` waits for their results in place of `supervise`.
    """
    refuse_inside_a_loop()
    processes: list[Process] = []
    try:
        fork_workers(processes, main, args, workers, peers, settings, find_links)
        results: dict[int, Any] = trio.run(watch or supervise, processes, workers, settings)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        raise error from error.__cause__
    finally:
        unprinted = end(processes, settings.grace)
    if unprinted is not None:
        raise unprinted
    return results


async def supervise(processes: list[Process], workers: range, settings: Settings) -> dict[int, Any]:
    """Waits until every worker has returned; raises the verdict if something goes wrong."""
    verdict = Verdict(workers)
    news = Signal()

    def tell(event: Event) -> None:
        verdict.handle(event)
        news.set()

    async with trio.open_nursery() as nursery:
        for printer in printers(processes):
            nursery.start_soon(printer.watch)
        for process in processes:
            nursery.start_soon(watch_process, process, tell)
            for fd in process.outputs:
                nursery.start_soon(_print_output, process, fd)
        nursery.start_soon(_watch_for_silence, processes, settings.patience, tell)
        await reach_verdict(verdict, news, settings)
        nursery.cancel_scope.cancel()
    return verdict.results


async def reach_verdict(verdict: Verdict, news: Signal, settings: Settings) -> None:
    """Returns when all is done; raises the verdict otherwise."""
    while not verdict.complete and verdict.error is None:
        if verdict.suspicious:
            with trio.move_on_after(settings.grace) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                verdict.give_up_waiting()
        else:
            await news.wait()
    if verdict.error is not None:
        raise verdict.error


async def watch_process(process: Process, tell: Callable[[Event], None]) -> None:
    """Hears what a worker reports, and how its process ends.

    Not by the end of the connection: a child that the worker has started may have a copy of it, and live on.
    """
    process.control.setblocking(False)
    received = bytearray()

    def hear(chunk: bytes) -> None:
        received.extend(chunk)
        while (message := _cut_message(received)) is not None:
            tell(_understand(process.index, message))

    async def listen() -> None:
        while chunk := await _receive(process.control):
            hear(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await _wait_exit(process)
        nursery.cancel_scope.cancel()
    while chunk := _receive_now(process.control):  # what it said last
        hear(chunk)
    assert process.status is not None
    tell(Exited(process.index, process.status))


async def _wait_exit(process: Process) -> None:
    if sys.platform == "linux":
        watch = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(watch)
        finally:
            os.close(watch)
    while not process.poll():  # noqa: ASYNC110
        await trio.sleep(0.01)  # other systems tell only those who ask


async def _receive(sock: socket.socket) -> bytes:
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            return sock.recv(_CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""


def _receive_now(sock: socket.socket) -> bytes:
    try:
        return sock.recv(_CHUNK)
    except OSError:
        return b""


def _cut_message(received: bytearray) -> bytes | None:
    """The first whole message of what a worker has sent, taken off the front."""
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if len(received) < _LENGTH.size + length:
        return None
    message = bytes(received[_LENGTH.size : _LENGTH.size + length])
    del received[: _LENGTH.size + length]
    return message


def _understand(worker: int, data: bytes) -> Event:
    try:
        message = decode_report(data)
    except ValueError as error:  # a result of a class that only the worker has imported
        return Failed(worker, WorkerFailed(f"what worker {worker} returned cannot be brought here: {error}", worker))
    kind = message[0]
    if kind == "result":
        return Returned(worker, message[1])
    if kind == "lost":
        return Lost(worker, message[1])
    return Failed(worker, decode_failure(worker, message))


async def _print_output(process: Process, fd: int) -> None:
    """Prints what a worker prints, in whole lines, as fast as somebody reads them."""
    os.set_blocking(fd, False)
    printer, _ = process.outputs[fd]
    while True:
        await printer.room()
        await trio.lowlevel.wait_readable(fd)
        if not process.print_some(fd):
            return


async def _watch_for_silence(processes: list[Process], patience: float, tell: Callable[[Event], None]) -> None:
    """Tells of workers that are stopped for longer than `patience`. Being busy is not being stopped."""
    tick = min(1.0, patience / 4)
    stopped_for = {process.index: 0.0 for process in processes}
    last = time.monotonic()
    while True:
        await trio.sleep(tick)
        now = time.monotonic()
        awake = now - last < 2 * tick + 1  # otherwise we were stopped ourselves (Ctrl-Z), and so were they
        last = now
        for process in processes:
            if process.status is None and process.stopped() and awake:
                stopped_for[process.index] += tick
            else:
                stopped_for[process.index] = 0.0
            if stopped_for[process.index] > patience:
                tell(Silent(process.index, f"is stopped and has not answered for {patience:g} seconds"))
