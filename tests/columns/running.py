"""Runs operators on columns under seeds: the rows that come out, with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import dataflow
from dataflow.columns import Columns
from dataflow.testing import simulate

Record = dict[str, Any]
Epochs = Sequence[Sequence[Record]]
"""Records of each time, as dictionaries."""


def columns_of(records: Sequence[Record], kinds: dict[str, Any] | None = None) -> dict[str, Any]:
    """Records as columns, of the types that are asked for."""
    columns: dict[str, Any] = {name: [record[name] for record in records] for name in records[0]}
    if "word" in columns:  # of which all may be missing
        columns["word"] = pa.array(columns["word"], pa.string())
    for name, kind in (kinds or {}).items():
        columns[name] = np.array(columns[name], kind)
    return columns


def run(
    seed: int,
    build: Callable[..., Any],
    *inputs: Epochs,
    kinds: dict[str, Any] | None = None,
    workers: int | None = None,
) -> Counter[Any]:
    """The bag of (time, row) that comes out of `build(*streams)`: 1 to 3 workers, records dealt at random.

    Rows are tuples of (name, value), in the order of the columns.
    """
    out: list[Any] = []
    chance = Random(seed)
    peers = workers or chance.randint(1, 3)
    dealt = [[[chance.randrange(peers) for _ in records] for records in epochs] for epochs in inputs]

    def note(time: Any, batch: Any) -> None:
        assert isinstance(batch, Columns) and len(batch)
        out.extend((time, tuple(zip(batch.names, row, strict=True))) for row in batch.rows())

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handles, streams = zip(*(scope.input() for _ in inputs), strict=True)
            probe = build(*streams).inspect_batch(note).probe()
        for time in range(max(map(len, inputs))):
            for handle, epochs, owners in zip(handles, inputs, dealt, strict=True):
                if time < len(epochs):
                    mine = [r for r, owner in zip(epochs[time], owners[time], strict=True) if owner == worker.index]
                    for part in (mine[::2], mine[1::2]):
                        if part:
                            handle.send(columns_of(part, kinds))
                handle.advance_to(time + 1)
            if seed % 3:
                await probe.wait_passed(time)

    simulate(main, workers=peers, seed=seed, debug=seed % 7 == 0)
    return Counter(out)


def row(**values: Any) -> tuple[tuple[str, Any], ...]:
    """A row as `run` gives it."""
    return tuple(values.items())
