"""Runs workers in processes: has them started, prints what they print, collects their results, and ends them.

The supervisor is the process that called `execute`. It runs no dataflow: it is never busy, and so can tell a worker
that is busy from one that is gone. Workers are forked from a process that it starts for them (`starting`, `zygote`).

Whatever happens, `ending.end` runs last: it asks the workers to stop, gives them a moment to run their `finally`
clauses, kills what is left, and reaps every process. If the supervisor itself is killed, the kernel kills the
others.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import trio

from dataflow.errors import WorkerFailed
from dataflow.execute import Main, refuse_inside_a_loop
from dataflow.launch.child import FindLinks, socket_links
from dataflow.launch.descriptors import standard_numbers_taken
from dataflow.launch.ending import end, finish_printing
from dataflow.launch.framing import cut_message
from dataflow.launch.output import Output
from dataflow.launch.parcel import attempt, packed
from dataflow.launch.process import Process, Settings
from dataflow.launch.report import decode_report
from dataflow.launch.signals import Signals, run_trio, signals_noted
from dataflow.launch.starting import Crew, Zygote, start
from dataflow.launch.travel import cannot_travel
from dataflow.launch.verdict import ByWorker, Event, Exited, Failed, Silent, Verdict
from dataflow.launch.zygote import Errand
from dataflow.run.exceptions import unwrap
from dataflow.run.signal import Signal

__all__ = ["Crew", "Settings", "run_processes", "supervise"]

Watch = Callable[[Crew, Settings], Awaitable[ByWorker]]

_CHUNK = 1 << 16


def run_processes(
    main: Main,
    args: tuple[object, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks = socket_links,
    watch: Watch | None = None,
) -> ByWorker:
    """Runs workers in processes of their own until all are done; their results, by worker.

    `workers` are the numbers of those to run here, of `peers` in all. `find_links` is how they find each other, and
    `watch` waits for their results in place of `supervise`.
    """
    refuse_inside_a_loop()
    crew = Crew(workers)
    errand = Errand(workers, peers, settings, list(sys.argv))
    results: ByWorker = {}
    failure: BaseException | None = None
    troubles: list[Exception] = []
    with standard_numbers_taken():
        with signals_noted() as signals:
            try:
                with ExitStack() as stack:
                    parcel = _pack(stack, main, args, find_links)
                    start(crew, errand, parcel, settings.prefix)
                results = run_trio(_watch, watch or supervise, crew, settings, signals)
            except BaseException as error:
                failure = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
            troubles += end(crew, settings.grace)
            failure = signals.meaning() or failure
        # Whoever has interrupted twice does not wait for those who do not read.
        troubles += finish_printing(crew, settings.grace if signals.impatient else None)
    _raise(failure, troubles)
    return results


def _pack(stack: ExitStack, main: Main, args: tuple[object, ...], find_links: FindLinks) -> int:
    """The descriptor of a parcel with all that workers need; CannotTravel names what cannot be in it."""
    try:
        return stack.enter_context(packed((main, args, find_links)))
    except OSError:
        raise  # there is no room for it
    except Exception as error:  # whatever the program's own objects raise
        raise cannot_travel(main, args, error, attempt) from error


def _raise(failure: BaseException | None, troubles: list[Exception]) -> None:
    """Raises what ended the computation; what went wrong when it was ended becomes notes."""
    if failure is None and troubles:
        failure, *troubles = troubles
    if failure is not None:
        for trouble in troubles:
            if trouble is not failure:
                failure.add_note(f"while everybody was ended: {type(trouble).__name__}: {trouble}")
        raise failure from failure.__cause__


async def _watch(watch: Watch, crew: Crew, settings: Settings, signals: Signals) -> ByWorker:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(signals.watch)
        results = await watch(crew, settings)
        nursery.cancel_scope.cancel()
    return results


async def supervise(crew: Crew, settings: Settings) -> ByWorker:
    """Waits until every worker has returned; raises the verdict if something goes wrong."""
    verdict = Verdict(crew.workers)
    news = Signal()
    assert crew.zygote is not None

    def tell(event: Event) -> None:
        verdict.handle(event)
        news.set()

    async with trio.open_nursery() as nursery:
        for printer in (crew.stdout, crew.stderr):
            nursery.start_soon(printer.watch)
        for output in crew.outputs:
            nursery.start_soon(_print_output, output)
        for process in crew.processes:
            nursery.start_soon(watch_process, process, tell)
        nursery.start_soon(_watch_zygote, crew.zygote, crew.processes, tell)
        nursery.start_soon(_watch_for_silence, crew, crew.zygote, settings.patience, tell)
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
        while (message := cut_message(received)) is not None:
            tell(_understand(process.index, message))

    async def listen() -> None:
        while chunk := await _receive(process.control):
            hear(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await process.ended.wait()
        nursery.cancel_scope.cancel()
    while chunk := _receive_now(process.control):  # what it said last
        hear(chunk)
    assert process.status is not None
    tell(Exited(process.index, process.status))


async def _watch_zygote(zygote: Zygote, processes: list[Process], tell: Callable[[Event], None]) -> None:
    """Hears who has started and who has ended, and whether anything failed before workers could report it."""
    while True:
        await trio.lowlevel.wait_readable(zygote.control)
        failure = zygote.hear(processes)
        if failure is not None:
            tell(Failed(None, failure))
        if zygote.lost:
            await trio.lowlevel.checkpoint()  # what workers said last comes first
            tell(Failed(None, zygote.obituary()))
            return


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


def _understand(worker: int, data: bytes) -> Event:
    try:
        return decode_report(worker, data)
    except ValueError as error:  # a result of a class that only the worker has imported
        return Failed(worker, WorkerFailed(f"what worker {worker} returned cannot be brought here: {error}", worker))


async def _print_output(output: Output) -> None:
    """Prints what a process prints, in whole lines, as fast as somebody reads them."""
    os.set_blocking(output.fd, False)
    while True:
        await output.printer.room()
        await trio.lowlevel.wait_readable(output.fd)
        if not output.print_some():
            return


async def _watch_for_silence(crew: Crew, zygote: Zygote, patience: float, tell: Callable[[Event], None]) -> None:
    """Tells of processes that are stopped for longer than `patience`. Being busy is not being stopped."""
    tick = min(1.0, patience / 4)
    # None is the process that workers are forked from.
    stopped_for: dict[int | None, float] = dict.fromkeys([None, *crew.workers], 0.0)
    last = time.monotonic()
    while True:
        await trio.sleep(tick)
        now = time.monotonic()
        awake = now - last < 2 * tick + 1  # otherwise we were stopped ourselves (Ctrl-Z), and so were they
        last = now
        stopped: set[int | None] = {process.index for process in crew.processes if process.stopped()}
        if zygote.stopped():
            stopped.add(None)
        for index in stopped_for:
            stopped_for[index] = stopped_for[index] + tick if index in stopped and awake else 0.0
            if stopped_for[index] > patience:
                tell(_silent(index, f"is stopped and has not answered for {patience:g} seconds"))


def _silent(worker: int | None, why: str) -> Event:
    if worker is None:
        return Failed(None, WorkerFailed(f"the process that starts workers {why}"))
    return Silent(worker, why)
