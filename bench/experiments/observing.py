"""What it costs that workers always count: the same dataflow with its counters and without, in slices that alternate.

Epochs are as short as they get (a few records), where each costs the engine most and the counters weigh most. Both
halves run in one process on one dataflow; what is taken out are the lines that count (`dataflow.run.meters`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from statistics import median
from unittest.mock import patch

import dataflow
import megaphone
from bench.registry import benchmark
from bench.run import Run
from dataflow.channels.channel import LocalChannel
from dataflow.channels.pact import Batch
from dataflow.run.dataflow import Dataflow
from dataflow.run.meters import Meter
from dataflow.run.readings import read_worker
from dataflow.run.worker import pump_of
from dataflow.time.order import Time

SLICE = 100  # epochs
Measured = tuple[list[float], list[float], list[float], list[float]]


@benchmark("observing", "epochs with the counters that are always on, as a ratio to the same engine without them")
def observing(run: Run) -> None:
    pairs = 8 if run.quick else 80
    for name, width in run.each("observing", [("epochs of 1 record", 1), ("epochs of 1,000 records", 1000)]):
        ((bare, counted, bare_times, counted_times),) = dataflow.execute(_main, pairs, width)
        ratio = median(b / c for b, c in zip(bare, counted, strict=True))
        run.report(f"{name}: throughput with counters", ratio * SLICE / median(bare), "epochs/s", SLICE / median(bare))
        high = [sorted(times)[int(0.99 * len(times))] for times in (counted_times, bare_times)]
        run.report(f"{name}: .99 of an epoch", high[0] * 1000, "ms", high[1] * 1000)


async def _main(worker: dataflow.Worker, pairs: int, width: int) -> Measured:
    """Processor seconds of slices without and with counters, and the seconds of their epochs."""
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        pairs_of = stream.map(lambda n: (n, 1)).filter(lambda pair: pair[0] >= 0)
        totals = megaphone.state_machine(scope.control(), pairs_of, fold=_count, bins=64, name="totals")
        probe = totals.probe()
    seconds: dict[bool, list[float]] = {False: [], True: []}
    times: dict[bool, list[float]] = {False: [], True: []}
    epoch, chance, looked = 0, random.Random(0), time.perf_counter()
    for number in range(-2, pairs):  # the first ones warm up
        for counts in chance.sample([False, True], 2):
            with ExitStack() as stack:
                if not counts:
                    stack.enter_context(_bare())
                began = time.thread_time()
                for _ in range(SLICE):
                    since = time.perf_counter()
                    numbers.send(list(range(width)))
                    epoch += 1
                    numbers.advance_to(epoch)
                    await probe.wait_passed(epoch - 1)
                    if number >= 0:
                        times[counts].append(time.perf_counter() - since)
                if counts and time.perf_counter() - looked > 1.0:
                    looked = time.perf_counter()
                    read_worker(pump_of(worker))  # somebody looks each second
                if number >= 0:
                    seconds[counts].append(time.thread_time() - began)
    return seconds[False], seconds[True], times[False], times[True]


def _count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]


@contextmanager
def _bare() -> Iterator[None]:
    """The engine without what counts."""
    with (
        patch.object(Dataflow, "sweep", _sweep),
        patch.object(LocalChannel, "push", _push),
        patch.object(Meter, "turned", lambda self, began, ended: None),
    ):
        yield


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


def _push(self: LocalChannel, time: Time, batch: Batch) -> None:
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
