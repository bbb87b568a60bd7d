"""Counting by key on Bytewax, to be killed and started again: `bytewax.run bench.rivals.bytewax_count:flow()`.

Two partitions send each of their keys once, and then again and again in the same order, a thousand every ten
milliseconds. So the count of the record with the number `j` of a partition of `n` keys must be `j // n + 1`: every
thousandth is printed, as `seconds since the epoch, number, right or WRONG`.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

KEYS = int(os.environ.get("RIVAL_KEYS", "10000"))
BATCH, PAUSE = 1000, timedelta(milliseconds=10)


class KeysOfHalf(StatefulSourcePartition[Any, int]):
    """The keys of one partition, over and over."""

    def __init__(self, partition: int, position: int | None) -> None:
        self._partition = partition
        self._count = KEYS // 2
        self._position = position or 0
        self._awake: datetime | None = None

    def next_batch(self) -> list[Any]:
        """The next thousand."""
        first = self._position
        self._position += BATCH
        if first >= self._count:  # every key is there: now at a steady pace
            self._awake = datetime.now(UTC) + PAUSE
        numbers = range(first, self._position)
        return [(f"{self._partition}-{j % self._count}", (j, self._count)) for j in numbers]

    def next_awake(self) -> datetime | None:
        """When the next batch is due."""
        return self._awake

    def snapshot(self) -> int:
        """Where it is."""
        return self._position


class BothHalves(FixedPartitionedSource[Any, int]):
    """Two partitions."""

    def list_parts(self) -> list[str]:
        """Their names."""
        return ["0", "1"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> KeysOfHalf:
        """One of them, from where it was."""
        return KeysOfHalf(int(for_part), resume_state)


class Printing(StatelessSinkPartition[Any]):
    """Prints every thousandth."""

    def write_batch(self, items: list[Any]) -> None:
        """A line for each that is printed."""
        for _, (number, count, keys) in items:
            if number % BATCH == 0:
                verdict = "right" if count == number // keys + 1 else "WRONG"
                sys.stdout.write(f"{time.time():.6f} {number} {verdict}\n")
        sys.stdout.flush()


class PrintingSink(DynamicSink[Any]):
    """On every worker."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Printing:
        """One of them."""
        return Printing()


def _count(state: int | None, value: tuple[int, int]) -> tuple[int, tuple[int, int, int]]:
    total = (state or 0) + 1
    number, keys = value
    return total, (number, total, keys)


def flow() -> Dataflow:
    """The program."""
    dataflow = Dataflow("count")
    records = op.input("keys", dataflow, BothHalves())
    op.output("out", op.stateful_map("count", records, _count), PrintingSink())
    return dataflow
