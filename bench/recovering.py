"""A count that is killed: `python -m bench.recovering KEYS FOLDER EVERY WORKERS MIGRATE`, and again.

Every key is loaded once. Then come a thousand records every ten milliseconds from each of two halves of the keys, over
and over in the same order, so the count of each is known when it is sent, and every output says whether it is right. A
line for each epoch says when it was complete, and one when a sink has shown it: (`done` or `shown`, seconds since 1970,
epoch, wrong counts). `began` says where a life begins.
"""

from __future__ import annotations

import os
import sys
import time
from typing import cast

import numpy as np
import trio

import dataflow
import megaphone
from bench.counting import halved
from dataflow import sinks
from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from megaphone.control.updates import Update

HALVES = 2
RECORDS = 1000  # of a half in an epoch
PACE = 0.01  # seconds of an epoch
LOADING = 1 << 18  # keys of a half in an epoch, while loading
BINS = 1024


@fold(state={"count": "i8"}, output={"wrong": "i8"})
def check(key, value, state):  # type: ignore[no-untyped-def]
    state.count += 1
    return state.count != value


class CheckedLoad:
    """What is sent at each epoch, on any number of workers."""

    def __init__(self, keys: int) -> None:
        self.half = keys // HALVES
        self.loading = -(-self.half // LOADING)  # epochs

    def batch(self, half: int, epoch: int) -> dict[str, object]:
        """Keys of one half, and what their counts must be then."""
        if epoch < self.loading:
            low = epoch * LOADING
            numbers = np.arange(low, min(low + LOADING, self.half), dtype=np.int64)
        else:
            low = self.half + (epoch - self.loading) * RECORDS
            numbers = np.arange(low, low + RECORDS, dtype=np.int64)
        return {"key": (numbers % self.half) * HALVES + half, "value": numbers // self.half + 1}


def say(kind: str, time_: int, wrong: int) -> None:
    """A line that the benchmark reads, in one piece."""
    os.write(1, f"{kind} {time.time():.6f} {time_} {wrong}\n".encode())


async def main(worker: dataflow.Worker, keys: int, migrate: float = 0.0) -> None:
    """One worker's share. `migrate`: half of worker 0's bins move so many seconds after all keys are loaded."""
    load = CheckedLoad(keys)
    with worker.dataflow("count") as scope:
        records, stream = scope.input("records", of=Columns)
        control = scope.control()
        checked = megaphone.state_machine(
            control, stream, key="key", value="value", fold=check, bins=BINS, name="counts"
        )
        sums = checked.columns.aggregate(wrong=("sum", "wrong"))
        shown = sums.inspect_batch(lambda time_, batch: say("done", time_, int(batch["wrong"].sum())))
        probe = shown.sink(sinks.callback(show), name="shown").probe()
    if worker.index == 0:
        say("began", worker.resume_at, 0)
    start = worker.saved if isinstance(worker.saved, float) else None
    epoch = worker.resume_at
    controller = megaphone.Controller(cast(dataflow.InputHandle[Update], control), checked)
    begin = load.loading + round(migrate / PACE) if migrate and worker.index == 0 else -1
    while True:
        if epoch == load.loading and start is None:
            await probe.wait_passed(epoch - 1)
            start = time.time()
            say("start", epoch, 0)
        if epoch == begin:
            controller.migrate(halved(BINS), megaphone.batched(16))
        controller.advance_to(epoch)
        if epoch >= load.loading:
            assert start is not None
            worker.save(start)
            await trio.sleep(max(0.0, start + (epoch - load.loading) * PACE - time.time()))
        for half in range(worker.index, HALVES, worker.peers):
            records.send(load.batch(half, epoch))
        epoch += 1
        records.advance_to(epoch)
        await probe.wait_passed(epoch - (4 if epoch < load.loading else 100))


def show(time_: int, batch: Columns) -> None:
    """What a sink shows, with each snapshot."""
    say("shown", time_, int(batch["wrong"].sum()))


if __name__ == "__main__":
    keys, folder, every, workers, migrate = sys.argv[1:]
    recovery = dataflow.Recovery(folder, every=float(every))
    dataflow.execute(main, int(keys), float(migrate), workers=int(workers), recovery=recovery)
