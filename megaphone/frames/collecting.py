"""A frame as a table, from any number of workers: for scripts, the REPL and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import trio

import dataflow
from dataflow import Worker
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.state.values import Value
from megaphone.frames.plan import PlannedFrame

if TYPE_CHECKING:
    import polars as pl

    from dataflow.notebook import LiveRun

Target: TypeAlias = Literal["arrow", "polars", "pandas", "columns"]
Table: TypeAlias = Value
"""A table of a library whose types are not published: pyarrow's, pandas'."""


@overload
def collect(frame: PlannedFrame, *, workers: int = ..., to: Literal["columns"]) -> Columns: ...


@overload
def collect(frame: PlannedFrame, *, workers: int = ..., to: Literal["polars"]) -> pl.DataFrame: ...


@overload
def collect(frame: PlannedFrame, *, workers: int = ..., to: Literal["arrow", "pandas"] = ...) -> Table: ...


def collect(frame: PlannedFrame, *, workers: int = 1, to: Target = "arrow") -> Table:
    """Runs a frame to its end and gives what comes out as a table: Arrow's, or of polars or pandas. Works in a notebook
    as well, where asyncio and threads run; interrupting the cell ends the run."""
    _require_target(to)
    _require_heard(frame)

    async def main(worker: Worker) -> list[Columns]:
        parts: list[Columns] = []
        with worker.dataflow("collect") as scope:
            frame.stream(scope).inspect_batch(lambda time, batch: parts.append(batch))
        return parts

    found = dataflow.execute(main, workers=workers)
    return _as(to, [part for some in found for part in some])


def head(frame: PlannedFrame, rows: int, to: Target) -> Table:
    """The first rows that come out, on one worker; then the run is ended. See `PlannedFrame.head`."""
    _require_target(to)
    _require_heard(frame)
    if type(rows) is not int or rows < 0:
        raise ConstructionError(f"head needs a number of rows, not {rows!r}")

    async def main(worker: Worker) -> list[Columns]:
        parts: list[Columns] = []
        enough = trio.Event()

        def take(_: object, batch: Columns) -> None:
            parts.append(batch)
            if sum(map(len, parts)) >= rows:
                enough.set()

        with worker.dataflow("head") as scope:
            probe = frame.stream(scope).inspect_batch(take).probe()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_wait_for_end, probe, enough)
            await enough.wait()
            nursery.cancel_scope.cancel()
        if not probe.done:
            worker.drop_dataflow(scope)
        return parts

    (parts,) = dataflow.execute(main, in_process=True)
    whole = _joined(parts)
    return _as(to, [whole.slice(0, min(rows, len(whole)))] if parts else [])


async def _wait_for_end(probe: dataflow.Probe, enough: trio.Event) -> None:
    await probe.wait_done()
    enough.set()


def live(frame: PlannedFrame, *, workers: int = 1, every: float = 0.5) -> LiveRun[Columns]:
    """Runs a frame in the background, and shows it in a notebook. See `dataflow.notebook.live`; each main returns what
    came out on its worker."""
    from dataflow.notebook import live

    _require_heard(frame)

    async def main(worker: Worker) -> Columns:
        parts: list[Columns] = []
        with worker.dataflow("frame") as scope:
            probe = frame.stream(scope).inspect_batch(lambda time, batch: parts.append(batch)).probe()
        await probe.wait_done()
        return _joined(parts)

    return live(main, workers=workers, every=every)


def _require_target(to: object) -> None:
    if to not in ("arrow", "polars", "pandas", "columns"):
        raise ConstructionError(f"a frame is collected as 'arrow', 'polars', 'pandas' or 'columns', not {to!r}")


def _require_heard(frame: PlannedFrame) -> None:
    """Nobody would see a stream of late records here."""
    if frame.streams_late:
        raise ConstructionError(
            "late='stream' gives late records to whoever goes on with plan.stream(scope).late, and here nobody does: "
            "say late='count' to have them left out and told, or build the plan into a dataflow"
        )


def _joined(parts: list[Columns]) -> Columns:
    return Columns.concat(parts) if parts else Columns({})


def _as(to: Target, parts: list[Columns]) -> Table:
    whole = _joined(parts)
    if to == "columns":
        return whole
    return {"arrow": whole.to_arrow, "polars": whole.to_polars, "pandas": whole.to_pandas}[to]()
