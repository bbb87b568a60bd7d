"""What tests of dates and moments in columns share."""

from __future__ import annotations

from typing import Any

import numpy as np

import dataflow
from dataflow.columns import Columns
from dataflow.columns.zones import with_zone
from dataflow.testing import simulate

UNITS = ["s", "ms", "us", "ns"]
START = 1_700_000_000
BERLIN = "Europe/Berlin"


def results(
    build: Any, batches: list[Any], workers: int = 1, time: Any = int, seed: int = 0
) -> list[tuple[int, Columns]]:
    """What comes out of columns that are sent at time 0, to the workers in turn: (time, batch) pairs."""
    out: list[tuple[int, Columns]] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=time) as scope:
            handle, stream = scope.input()
            build(stream).inspect_batch(lambda at, batch: out.append((at, batch)))
        for number, batch in enumerate(batches):
            if number % workers == worker.index:
                handle.send(batch)

    simulate(main, workers=workers, seed=seed)
    return sorted(out, key=lambda pair: pair[0])


def zoned(unit: str = "us", zone: str = BERLIN, numbers: Any = (0, START, -5)) -> Any:
    return with_zone(np.array(numbers, f"M8[{unit}]"), zone)
