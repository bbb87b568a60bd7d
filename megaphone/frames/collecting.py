"""A frame as a table, from any number of workers: for scripts, the REPL and notebooks."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import dataflow
from dataflow import Worker
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.state.values import Value
from megaphone.frames.plan import PlannedFrame

Target = Literal["arrow", "polars", "pandas", "columns"]


def collect(frame: PlannedFrame, *, workers: int = 1, to: Target = "arrow") -> Value:
    """Runs a frame to its end and gives what comes out as a table. Where asyncio runs already (a notebook), it runs in
    a thread of its own."""
    if to not in ("arrow", "polars", "pandas", "columns"):
        raise ConstructionError(f"a frame is collected as 'arrow', 'polars', 'pandas' or 'columns', not {to!r}")

    async def main(worker: Worker) -> list[Columns]:
        parts: list[Columns] = []
        with worker.dataflow() as scope:
            frame.stream(scope).inspect_batch(lambda time, batch: parts.append(batch))
        return parts

    def execute() -> list[list[Columns]]:
        return dataflow.execute(main, workers=workers)

    if _asyncio_runs():
        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(execute).result()
    else:
        found = execute()
    parts = [part for some in found for part in some]
    whole = Columns.concat(parts) if parts else Columns({})
    if to == "columns":
        return whole
    return {"arrow": whole.to_arrow, "polars": whole.to_polars, "pandas": whole.to_pandas}[to]()


def _asyncio_runs() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
