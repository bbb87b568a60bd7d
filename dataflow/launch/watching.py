"""Watching processes: what they report and print, how they end, whether they are stopped. Events come out."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import trio

from dataflow.asking.messages import Question
from dataflow.asking.run import worker_unknown
from dataflow.errors import WorkerFailed
from dataflow.launch.framing import cut_message
from dataflow.launch.health import serve_health, workers_ready
from dataflow.launch.orders import Order, encode_order
from dataflow.launch.output import Output
from dataflow.launch.process import Process, Settings
from dataflow.launch.questions import Answered
from dataflow.launch.report import decode_report
from dataflow.launch.starting import Crew, Zygote
from dataflow.launch.verdict import Event, Exited, Failed, Idle, Orphaned, Silent

Teller = Callable[[Event], None]

_CHUNK = 1 << 16


async def watch_process(process: Process, tell: Teller) -> None:
    """Hears what a worker reports, and how its process ends; sends what it is to be told meanwhile.

    Not by the end of the connection: a child that the worker has started may have a copy of it, and live on.
    """
    process.control.setblocking(False)
    received = bytearray()

    def hear(chunk: bytes) -> None:
        received.extend(chunk)
        while (message := cut_message(received)) is not None:
            event = _understand(process.index, message)
            if isinstance(event, Answered):
                process.questions.answered(event)
                continue
            if isinstance(event, Idle):
                process.questions.give_up("the run has failed meanwhile, and goes on from its last snapshot: ask again")
            tell(event)

    async def listen() -> None:
        while chunk := await _receive(process.control):
            hear(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        nursery.start_soon(_send_orders, process)
        await process.ended.wait()
        nursery.cancel_scope.cancel()
    while chunk := _receive_now(process.control):  # what it said last
        hear(chunk)
    assert process.status is not None
    process.questions.give_up(f"worker {process.index} has ended: the run is over, or begins again", for_good=True)
    tell(Exited(process.index, process.status))


async def _send_orders(process: Process) -> None:
    """Sends orders, for as long as the worker can hear them."""
    while True:
        await process.news.wait()
        while process.unsent:
            await _send_order(process, process.unsent.popleft())


async def _send_order(process: Process, order: Order) -> None:
    rest = memoryview(encode_order(order))
    while rest:
        await trio.lowlevel.wait_writable(process.control)
        try:
            rest = rest[process.control.send(rest, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            continue
        except OSError:
            return  # it has ended, which we shall hear


async def watch_zygote(crew: Crew, zygote: Zygote, tell: Teller) -> None:
    """Hears who has started and who has ended, and whether anything failed before workers could report it."""
    while True:
        await trio.lowlevel.wait_readable(zygote.control)
        failure = zygote.hear(crew.processes)
        if failure is not None:
            tell(Failed(None, failure, unbuilt=True))
        if zygote.lost:
            await trio.lowlevel.checkpoint()  # what workers said last comes first
            tell(Orphaned(zygote.obituary()))
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


def _understand(worker: int, data: bytes) -> Event | Answered:
    try:
        return decode_report(worker, data)
    except ValueError as error:  # a result of a class that only the worker has imported
        return Failed(worker, WorkerFailed(f"what worker {worker} returned cannot be brought here: {error}", worker))


async def serve_door(crew: Crew) -> None:
    """Answers those who ask the run something, if it has a name."""

    async def ask_worker(worker: int, question: Question) -> object:
        for process in crew.processes:
            if process.index == worker:
                return await process.ask(question)
        if crew.ask_elsewhere is not None:
            return await crew.ask_elsewhere(worker, question)
        raise worker_unknown(worker)

    if crew.door is not None:
        await crew.door.serve(ask_worker)


async def answer_managers(crew: Crew, settings: Settings) -> None:
    """Answers cluster managers, if there is an address for that."""
    if settings.health is not None:
        await serve_health(settings.health, lambda: workers_ready(crew.processes))


async def print_output(output: Output) -> None:
    """Prints what a process prints, in whole lines, as fast as somebody reads them."""
    os.set_blocking(output.fd, False)
    while True:
        await output.printer.room()
        await trio.lowlevel.wait_readable(output.fd)
        if not output.print_some():
            return


async def watch_for_silence(crew: Crew, zygote: Zygote, patience: float, tell: Teller) -> None:
    """Tells of processes that are stopped for longer than `patience`. Being busy is not being stopped."""
    tick = min(1.0, patience / 4)
    # None is the process that workers are forked from.
    stopped_for: dict[int | None, float] = {}
    last = time.monotonic()
    while True:
        await trio.sleep(tick)
        now = time.monotonic()
        awake = now - last < 2 * tick + 1  # otherwise we were stopped ourselves (Ctrl-Z), and so were they
        last = now
        stopped: set[int | None] = {process.index for process in crew.processes if process.stopped()}
        if zygote.stopped():
            stopped.add(None)
        for index in [None, *(process.index for process in crew.processes)]:
            stopped_for[index] = stopped_for.get(index, 0.0) + tick if index in stopped and awake else 0.0
            if stopped_for[index] > patience:
                tell(_silent(index, f"is stopped and has not answered for {patience:g} seconds"))


def _silent(worker: int | None, why: str) -> Event:
    if worker is None:
        return Orphaned(WorkerFailed(f"the process that starts workers {why}"))
    return Silent(worker, why)
