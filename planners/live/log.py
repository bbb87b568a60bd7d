"""What workers report, as Parquet files in a folder: interval, worker, bin, records, bytes, cost.

That is the log of `planners.spark` (section 6 of the paper): a row for each bin of a worker's interval. Keys that live
apart from their bins are in no bin's report. Their rows follow, with the bin that they belong to: a table says where
bins should be, and a key may go back into its bin.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from planners.errors import BadRequest
from planners.loop.steering import Key, as_list

COLUMNS = ("interval", "worker", "bin", "records", "bytes", "cost")


class BinReport(Protocol):
    """One worker's bins in one interval, or some of them. Arrays are by bin, and those of keys by heavy key."""

    @property
    def worker(self) -> int: ...
    @property
    def interval(self) -> int: ...
    @property
    def bins(self) -> NDArray[np.int64]: ...
    @property
    def records(self) -> NDArray[np.int64]: ...
    @property
    def bytes(self) -> NDArray[np.int64]: ...
    @property
    def nanoseconds(self) -> NDArray[np.int64]: ...
    @property
    def per_record(self) -> float: ...
    @property
    def keys(self) -> Collection[Key] | NDArray[np.integer]: ...
    @property
    def key_records(self) -> NDArray[np.int64]: ...


class ReportListeners(Protocol):
    """Who hears of every report."""

    def append(self, listener: Callable[[BinReport], None], /) -> None: ...


class Reporting(Protocol):
    """What tells of every report."""

    @property
    def listeners(self) -> ReportListeners: ...


class Watched(Protocol):
    """What a log asks of a controller."""

    @property
    def statistics(self) -> Reporting: ...
    @property
    def pinned(self) -> Mapping[Key, int]: ...
    @property
    def pins_keys(self) -> bool: ...
    def bins_of(self, keys: list[Key], /) -> ArrayLike: ...


class LoadLog:
    """A folder of reports. `log.watch(controller)` has it hear those of an operator; or give it to `hear` yourself.

    `cost`: "records", or "nanoseconds" of processing. `pinned` and `bins_of`: those of the controller, if its keys can
    live apart and nobody calls `watch`. A file is written after `every` reports, which takes milliseconds; intervals go
    on from those of the files that are there. `flush` writes the rest, and may be called from another thread.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        cost: str = "nanoseconds",
        every: int = 64,
        pinned: Callable[[], Mapping[Key, int]] = dict,
        bins_of: Callable[[list[Key]], ArrayLike] | None = None,
    ) -> None:
        if cost not in ("records", "nanoseconds"):
            raise BadRequest(f"cost is 'records' or 'nanoseconds', not {cost!r}")
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._cost, self._every = cost, every
        self._pinned, self._bins_of = pinned, bins_of
        self._lock = threading.Lock()  # around files: who makes tables has the rest written first
        self._rows: list[tuple[NDArray[np.int64], ...]] = []
        files = sorted(self.folder.glob("part-*.parquet"))
        self._files = len(files) and 1 + int(files[-1].stem.removeprefix("part-"))
        self._first = 1 + max((_last_interval(path) for path in files), default=-1)

    def watch(self, controller: Watched) -> None:
        """Hears what the workers of a controller's operator report, keys that live apart included."""
        self._pinned, self._bins_of = lambda: controller.pinned, controller.bins_of if controller.pins_keys else None
        controller.statistics.listeners.append(self.hear)

    def hear(self, load: BinReport) -> None:
        """Notes a report."""
        cost = load.records if self._cost == "records" else load.nanoseconds
        self._note(load, load.bins, load.records, load.bytes, cost)
        bins, records = self._apart(load)
        if len(bins):
            each = 1.0 if self._cost == "records" else load.per_record
            self._note(load, bins, records, np.zeros(len(bins), np.int64), (records * each).astype(np.int64))
        if len(self._rows) >= self._every:
            self.flush()

    def _apart(self, load: BinReport) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The bins of keys that live apart on that worker, and their records."""
        pinned = self._pinned() if self._bins_of is not None else {}
        counted = zip(as_list(load.keys), load.key_records.tolist(), strict=True) if pinned else ()
        found = [(key, records) for key, records in counted if pinned.get(key) == load.worker]
        if not found or self._bins_of is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        bins = np.asarray(self._bins_of([key for key, _ in found]), np.int64)
        return bins, np.array([records for _, records in found], np.int64)

    def _note(self, load: BinReport, *columns: NDArray[np.int64]) -> None:
        count = len(columns[0])
        interval = np.full(count, self._first + load.interval, np.int64)
        self._rows.append((interval, np.full(count, load.worker, np.int64), *columns))

    def flush(self) -> None:
        """Writes what has been noted: a file is there whole, or not at all."""
        with self._lock:
            rows, self._rows = self._rows, []
            if not rows:
                return
            columns = (np.concatenate(some) for some in zip(*rows, strict=True))
            path = self.folder / f"part-{self._files:06d}.parquet"
            aside = self.folder / f"_{path.name}"  # Spark does not read names like this
            pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), aside)
            os.replace(aside, path)
            self._files += 1


def _last_interval(path: Path) -> int:
    try:
        column = pq.read_table(path, columns=["interval"]).column("interval")
    except (pa.ArrowInvalid, KeyError) as error:
        raise BadRequest(f"{path} is no log of statistics: {error}. Move it away, or name another folder") from None
    return max(column.to_pylist(), default=-1)
