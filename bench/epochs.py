"""What an epoch costs: closed loops of tiny epochs, which the experiment `workers` runs on many workers and in company.

In a closed loop an epoch is sent when the one before has come out. All records are small integers, one per worker and
epoch, so what is measured is the engine, and not what it carries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

import dataflow
from dataflow.lowlevel import Context, InputPort, OutputPort

Shape = Callable[[dataflow.Stream[int]], dataflow.Stream[int]]
BUSY = 50_000  # turns of a loop: about a millisecond


@dataclass(frozen=True)
class ClosedLoop:
    """A closed loop: what an epoch goes through, and what else its worker has."""

    shape: str
    epochs: int
    idle: int = 0  # dataflows beside it in which nothing happens
    busy: int = 0  # dataflows beside it in which an operator runs all the time, a millisecond each time

    @property
    def name(self) -> str:
        """What tables call it."""
        beside = f", {self.idle:,} idle dataflows beside it" if self.idle else ""
        return self.shape + beside + (", a busy dataflow beside it" if self.busy else "")


@dataclass(frozen=True)
class Cost:
    """What a loop took on one worker, per epoch: seconds by the clock, and of a processor."""

    clock: float
    processor: float


def same(record: int) -> int:
    """The key and the function of everything here."""
    return record


def _chain(count: int, one: Shape) -> Shape:
    def build(stream: dataflow.Stream[int]) -> dataflow.Stream[int]:
        for _ in range(count):
            stream = one(stream)
        return stream

    return build


def _exchange(stream: dataflow.Stream[int]) -> dataflow.Stream[int]:
    return stream.exchange(same)


def _rounds(count: int) -> Shape:
    """Exchanges each of which sends a record to another worker than the one before."""

    def build(stream: dataflow.Stream[int]) -> dataflow.Stream[int]:
        for number in range(count):
            stream = stream.exchange(lambda record, number=number: record + number)  # type: ignore[misc]
        return stream

    return build


def _map(stream: dataflow.Stream[int]) -> dataflow.Stream[int]:
    return stream.map(same)


SHAPES: dict[str, Shape] = {
    "exchange, map, exchange": lambda stream: _exchange(_map(_exchange(stream))),
    "one exchange": _exchange,
    "ten exchanges": _rounds(10),
    "ten maps": _chain(10, _map),
    "a thousand maps": _chain(1000, _map),
}


async def closed_loop(worker: dataflow.Worker, loop: ClosedLoop) -> Cost:
    """Runs a loop on one worker. Workers start together, since the first epochs are not measured."""
    for _ in range(loop.idle):
        with worker.dataflow() as scope:
            scope.input()[1].map(same).probe()
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = SHAPES[loop.shape](stream).probe()
    busy = []
    for _ in range(loop.busy):
        with worker.dataflow() as scope:
            scope.input()[1].unary("busy", _always_busy).probe()
        busy.append(scope)
    warm = max(10, loop.epochs // 10)
    clock = processor = 0.0
    for epoch in range(warm + loop.epochs):
        if epoch == warm:
            clock, processor = time.perf_counter(), time.process_time()
        numbers.send([worker.index + epoch])
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    for scope in busy:
        worker.drop_dataflow(scope)
    return Cost(clock / loop.epochs, processor / loop.epochs)


def _always_busy(context: Context) -> Callable[[InputPort[int], OutputPort[int]], None]:
    """An operator that has always something to do: a millisecond at a time, again and again."""

    def step(input: InputPort[int], output: OutputPort[int]) -> None:
        sum(range(BUSY))
        context.activate()

    context.activate()
    return step


def run_loop(loop: ClosedLoop, workers: int) -> Sequence[Cost]:
    """The loop on so many worker processes: by worker, what it cost."""
    costs = dataflow.execute(_main, loop, workers=workers)
    return [Cost(clock, processor) for clock, processor in costs]


async def _main(worker: dataflow.Worker, loop: ClosedLoop) -> tuple[float, float]:
    cost = await closed_loop(worker, loop)
    return cost.clock, cost.processor


async def idle(worker: dataflow.Worker, seconds: float) -> float:
    """Share of a processor that a worker needs while nothing happens."""
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = _exchange(stream).probe()
    numbers.advance_to(1)
    await probe.wait_passed(0)
    await trio.sleep(0.2)
    start = time.process_time()
    await trio.sleep(seconds)
    return (time.process_time() - start) / seconds


HELLO = "import dataflow\nasync def main(worker): return worker.index\nprint(dataflow.execute(main, workers={workers}))"


def seconds_of(program: str, bytecode: str) -> float:
    """How long a new interpreter takes to run a program, by the clock. `bytecode`: a folder for that of all modules, as
    an installed package has it; a checkout may have none. The first run with a folder fills it."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start
