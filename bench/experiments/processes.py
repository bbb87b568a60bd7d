"""Two worker processes, beside what two processes and a Unix socket can do with trio and nothing else."""

import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Any, TypeVar

import numpy as np
import trio

import dataflow
from bench.registry import benchmark
from bench.run import Run
from dataflow.columns import Columns
from dataflow.lowlevel import InputPort, OutputPort, Pact

T = TypeVar("T")


@benchmark("bulk", "columns between two processes, as a ratio to a plain Unix-socket loop with trio")
def bulk(run: Run) -> None:
    total = (1 << 29) if run.quick else (1 << 31)
    sizes = [1 << 20, 1 << 23]
    cases = [(size, batches) for size in sizes for batches in (1, 16)]
    for size, batches in run.each("sizes of batches", cases):
        repeats = range(3 if run.quick else 5)
        pairs = [(_engine_bulk(size, batches, total), _bare_bulk(size, total)) for _ in repeats]
        engine, bare = (median(column) / 1e9 for column in zip(*pairs, strict=True))
        run.report(f"batches of {size >> 20} MiB, {batches} an epoch (aim: 0.7)", engine, "GB/s", baseline=bare)


@benchmark("round-trip", "one small record through exchange with its frontier, as a ratio to the bare trio round trip")
def round_trip(run: Run) -> None:
    rounds = 2_000 if run.quick else 10_000
    repeats = 3 if run.quick else 7
    triples = []
    for _ in run.each("rounds", range(repeats)):
        triples.append((_engine_round_trip(rounds), _bare_round_trip(rounds), _bare_round_trip(rounds, looks=True)))
    engine, bare, looking = (median(column) * 1e6 for column in zip(*triples, strict=True))
    run.report("record and frontier, there and back (aim: 3)", engine, "µs", baseline=bare)
    # Workers may look for messages before they sleep. The bare loop above does not; in this ratio it does, too.
    run.report("the same, to a bare loop that never sleeps (no aim)", engine, "µs", baseline=looking)


@benchmark("exchange", "closed-loop epochs per second for five operators with an exchange, on two processes")
def exchange(run: Run) -> None:
    epochs = 2_000 if run.quick else 10_000
    rates = []
    for _ in run.each("runs", range(3 if run.quick else 7)):
        rates.append(min(dataflow.execute(_exchange_main, epochs, workers=2)))
    run.report("epochs, 2 processes (aim: 1,500)", median(rates), "epochs/s")


@benchmark("speedup", "two workers against one on a CPU-bound map")
def speedup(run: Run) -> None:
    records = 1_000 if run.quick else 4_000  # fewer take so little time that the processors' clocks have not settled
    rows = []
    for _ in run.each("runs", range(3 if run.quick else 5)):
        rows.append((_map_rate(records, 2), _map_rate(records, 1), _bare_rate(records, 2), _bare_rate(records, 1)))
    two, one, bare_two, bare_one = (median(column) for column in zip(*rows, strict=True))
    run.report("CPU-bound map, 2 workers over 1 (aim: 1.7)", two, "records/s", baseline=one)
    # What the machine can do: two processors that share a core or a cache do not do twice as much as one.
    run.report("the same loop, 2 bare processes over 1 (no aim)", bare_two, "records/s", baseline=bare_one)


# Bulk columns


class _ToOther(Pact):
    """Everything goes to the other worker."""

    name = "to the other"

    def __init__(self, worker: int) -> None:
        self._worker = worker

    def split(self, batch: Any, peers: int) -> Sequence[Any]:
        return [batch if worker != self._worker else [] for worker in range(peers)]


def _engine_bulk(size: int, batches: int, total: int) -> float:
    return float(dataflow.execute(_bulk_main, size, batches, total, workers=2, limit=1 << 28)[0])


async def _bulk_main(worker: dataflow.Worker, size: int, batches: int, total: int) -> float:
    columns = Columns({"key": np.arange(size // 16, dtype="u8"), "diff": np.ones(size // 16, "i8")})
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        probe = stream.unary("receive", lambda _: _swallow, pact=_ToOther(worker.index)).probe()
    start = time.perf_counter()
    rounds = total // size // batches
    ahead = max(1, (1 << 26) // (size * batches))  # about 64 MiB are outstanding
    for epoch in range(rounds):
        for _ in range(batches if worker.index == 0 else 0):
            handle.send(columns)
        handle.advance_to(epoch + 1)
        await probe.wait_passed(epoch - ahead)
    handle.close()
    await probe.wait_done()
    return rounds * batches * columns.nbytes / (time.perf_counter() - start)


def _swallow(input: InputPort, output: OutputPort) -> None:
    for _ in input:
        pass


def _bare_bulk(size: int, total: int) -> float:
    """One process sends, the other receives into one buffer of the batch's size, both with trio's sockets."""
    block = np.ones(size, np.uint8)

    async def send(sock: trio.socket.SocketType) -> float:
        stream = trio.SocketStream(sock)
        start = time.perf_counter()
        for _ in range(total // size):
            await stream.send_all(block.data)
        await stream.receive_some(1)
        return total / (time.perf_counter() - start)

    async def receive(sock: trio.socket.SocketType) -> None:
        view = np.empty(size, np.uint8).data
        for _ in range(total // size):
            got = 0
            while got < size:
                got += await sock.recv_into(view[got:])
        await sock.send(b"x")

    return _two_processes(send, receive)


def _two_processes(
    here: Callable[[trio.socket.SocketType], Awaitable[float]],
    there: Callable[[trio.socket.SocketType], Awaitable[object]],
) -> float:
    mine, other = socket.socketpair()
    for sock in (mine, other):
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
    pid = os.fork()
    if pid == 0:
        mine.close()
        trio.run(_with_socket, there, other)
        os._exit(0)
    other.close()
    result = trio.run(_with_socket, here, mine)
    mine.close()
    os.waitpid(pid, 0)
    return result


async def _with_socket(task: Callable[[trio.socket.SocketType], Awaitable[T]], sock: socket.socket) -> T:
    return await task(trio.socket.from_stdlib_socket(sock))


# Round trips


def _engine_round_trip(rounds: int) -> float:
    return float(dataflow.execute(_round_trip_main, rounds, workers=2)[0])


async def _round_trip_main(worker: dataflow.Worker, rounds: int) -> float:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.exchange(lambda record: record).probe()
    if worker.index == 1:
        numbers.close()  # worker 0 asks, worker 1 answers
        return 0.0
    start = time.perf_counter()
    for epoch in range(rounds):
        numbers.send([1])
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return (time.perf_counter() - start) / rounds


def _bare_round_trip(rounds: int, looks: bool = False) -> float:
    """Seconds for a message and its answer; `looks`: both sides look for the next one again and again."""

    async def receive(sock: trio.socket.SocketType, stream: trio.SocketStream) -> None:
        while looks:
            try:
                os.read(sock.fileno(), 1024)
            except BlockingIOError:
                os.sched_yield()
            else:
                return await trio.lowlevel.checkpoint()
        await stream.receive_some(1024)

    async def ask(sock: trio.socket.SocketType) -> float:
        stream = trio.SocketStream(sock)
        start = time.perf_counter()
        for _ in range(rounds):
            await stream.send_all(b"x" * 64)
            await receive(sock, stream)
        return (time.perf_counter() - start) / rounds

    async def answer(sock: trio.socket.SocketType) -> None:
        stream = trio.SocketStream(sock)
        for _ in range(rounds):
            await receive(sock, stream)
            await stream.send_all(b"y" * 64)

    return _two_processes(ask, answer)


# Epochs and speed-up


async def _exchange_main(worker: dataflow.Worker, epochs: int) -> float:
    batch = list(range(10))
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        kept = stream.map(_same).filter(_true).exchange(_same).map(_same)
        probe = kept.inspect_batch(lambda time, batch: None).probe()
    start = time.perf_counter()
    for epoch in range(epochs):
        numbers.send(batch)
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return epochs / (time.perf_counter() - start)


def _same(record: int) -> int:
    return record


def _true(record: int) -> bool:
    return True


def _map_rate(records: int, workers: int) -> float:
    """Records per second of all workers together, each working on its own."""
    return float(sum(dataflow.execute(_map_main, records, workers=workers)))


async def _map_main(worker: dataflow.Worker, records: int) -> float:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.map(_work).probe()
    start = time.perf_counter()
    for epoch in range(10):
        numbers.send(range(records // 10))
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return records / (time.perf_counter() - start)


def _bare_rate(records: int, processes: int) -> float:
    """The same work in forked processes, and nothing else."""
    ends = [os.pipe() for _ in range(processes)]
    pids = []
    for _, write in ends:
        pids.append(os.fork())
        if pids[-1] == 0:
            start = time.perf_counter()
            for record in range(records):
                _work(record)
            os.write(write, repr(records / (time.perf_counter() - start)).encode())
            os._exit(0)
    rates = []
    for (read, write), pid in zip(ends, pids, strict=True):
        rates.append(float(os.read(read, 100)))
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)
    return sum(rates)


def _work(record: int) -> int:
    return sum(range(50_000)) + record
