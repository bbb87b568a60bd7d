"""What it costs that workers always count: epochs of two dataflows that are alike, but one of them does not count.

Epochs are as short as they get (a record or a few), where each costs the engine most and the counters weigh most. Both
dataflows are in one process, and take turns epoch by epoch, in an order that is drawn: whatever else the machine does
meets both alike, and medians of many epochs differ by what the counters cost. What one of them lacks are the lines that
count (`dataflow.run.meters`).

How well that can be told is measured as well. Epochs are taken in blocks; each block gives a ratio, and the median of
these has an interval in which it is with 95 %. The same is done with two dataflows that both count: their ratio is 1,
and its interval says what the machine lets us see.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil
from statistics import median
from types import MethodType

import dataflow
import megaphone
from bench.registry import benchmark
from bench.run import Run
from dataflow import InputHandle, Probe
from dataflow.channels.channel import AloneChannel, LocalChannel, RoutedChannel
from dataflow.channels.pact import Batch
from dataflow.run.dataflow import Dataflow
from dataflow.run.meters import Meter
from dataflow.run.readings import read_worker
from dataflow.run.worker import pump_of
from dataflow.time.order import Time

CASES = [("epochs of 1 record", 1, 60_000), ("epochs of 1,000 records", 1000, 9000)]
BLOCKS = 60
Measured = tuple[list[float], list[float], list[float]]


@benchmark("observing", "epochs with the counters that are always on, as a ratio to the same engine without them")
def observing(run: Run) -> None:
    for name, width, epochs in run.each("observing", CASES):
        count = epochs // 20 if run.quick else epochs
        ((bare, counted, looks),) = dataflow.execute(_main, count, width, False)
        ((one, other, _),) = dataflow.execute(_main, count, width, True)
        run.report(f"{name}: throughput with counters", 1 / median(counted), "epochs/s", 1 / median(bare))
        run.report(f"{name}: .99 of an epoch", 1000 * _high(counted), "ms", 1000 * _high(bare))
        if looks:
            run.report(f"{name}: a look at all counters, once a second", median(looks) * 1000, "ms")
        for what, of in (("throughput", median), (".99", _high)):
            cost, null = (_interval(_ratios(a, b, of)) for a, b in ((bare, counted), (one, other)))
            run.tell(
                f"{name}: {what}, without over with: {cost[0]:.4f} ({cost[1]:.4f} to {cost[2]:.4f}); of two that both "
                f"count: {null[0]:.4f} ({null[1]:.4f} to {null[2]:.4f})"
            )


def _high(times: Sequence[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _ratios(a: list[float], b: list[float], of: Callable[[Sequence[float]], float]) -> list[float]:
    """By block, in order."""
    size = max(1, len(a) // BLOCKS)
    return sorted(of(a[at : at + size]) / of(b[at : at + size]) for at in range(0, size * (len(a) // size), size))


def _interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median of sorted values, and the two between which the true one is with about 95 % (order statistics)."""
    count = len(ratios)
    away = 0.98 * count**0.5
    return median(ratios), ratios[max(0, int(count / 2 - away))], ratios[min(count - 1, ceil(count / 2 + away) - 1)]


@dataclass
class _Side:
    """One of the two dataflows."""

    numbers: InputHandle[int]
    probe: Probe
    epoch: int = 0

    async def run(self, records: list[int]) -> float:
        """The seconds of an epoch."""
        began = time.perf_counter()
        self.numbers.send(records)
        self.epoch += 1
        self.numbers.advance_to(self.epoch)
        await self.probe.wait_passed(self.epoch - 1)
        return time.perf_counter() - began


async def _main(worker: dataflow.Worker, epochs: int, width: int, both: bool) -> Measured:
    """Seconds of epochs without and with counters, and of looks at the counters. `both`: both count."""
    sides = [_build(worker), _build(worker)]  # without, and with
    pump = pump_of(worker)
    if not both:
        _stop_counting(pump.dataflows[0])
    for side in sides:
        await side.run([0])
    meters = [Meter(pump) if both else _NoMeter(pump), Meter(pump)]  # from now on each hears of its own dataflow alone
    times: list[list[float]] = [[], []]
    looks: list[float] = []
    chance, looked = random.Random(0), time.perf_counter()
    for number in range(-epochs // 10, epochs):  # the first ones warm up
        for which in chance.sample([0, 1], 2):
            pump.meter = meters[which]
            took = await sides[which].run(list(range(width)))
            if number >= 0:
                times[which].append(took)
        if time.perf_counter() - looked > 1.0:
            looked = time.perf_counter()
            read_worker(pump)
            looks.append(time.perf_counter() - looked)
    return times[0], times[1], looks


def _build(worker: dataflow.Worker) -> _Side:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        pairs = stream.map(lambda n: (n, 1)).filter(lambda pair: pair[0] >= 0)
        totals = megaphone.state_machine(scope.control(), pairs, fold=_count, bins=64, name="totals")
        return _Side(numbers, totals.probe())


def _count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]


# The engine without what counts


def _stop_counting(part: Dataflow) -> None:
    """Of a dataflow alone: a change of its class would slow down the other one, too."""
    kinds: dict[type, type] = {LocalChannel: _Local, AloneChannel: _Alone}
    part.sweep = MethodType(_sweep, part)  # type: ignore[method-assign]
    for operator in part.operators:
        for output in operator.outputs:
            for place in range(output.width):
                channel = output.channel(place)
                local = channel._local if isinstance(channel, RoutedChannel) else channel
                local.__class__ = kinds[type(local)]


class _NoMeter(Meter):
    def turned(self, began: int, ended: int) -> None:
        """Counts nothing."""


def _sweep(self: Dataflow) -> None:
    if self._next:
        for number in self._next:
            heappush(self._active, number)
        self._next = []
    active = self._active
    try:
        while active:
            self._cursor = number = heappop(active)
            self.run(number)
    finally:
        self._cursor = -1


class _Local(LocalChannel):
    __slots__ = ()

    def push(self, time: Time, batch: Batch) -> None:
        """Sends one message."""
        counts = self._counts
        pointstamp = (self._index, time)
        count = counts.get(pointstamp, 0) + 1
        if count:
            counts[pointstamp] = count
        else:
            del counts[pointstamp]
        self._queue.append((time, batch))
        operator = self._operator
        if not operator.active:
            operator.activate()


class _Alone(AloneChannel):
    __slots__ = ()

    def push(self, time: Time, batch: Batch) -> None:
        """Sends one message."""
        if self.most is None or time > self.most:
            self.most = time
        _Local.push(self, time, batch)  # type: ignore[arg-type]
