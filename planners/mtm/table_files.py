"""The Parquet files of a table of projected costs: how they are written, known to be whole, and read.

A `Seal`, which is kept beside the files, has the length of a file and the digest of its footer. A footer with the right
digest says where everything is, how many rows there are and the least cost of each row group, and no row need be read.
Each page has a checksum of its own, which is verified when the page is read. Rows are checked for sense besides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from planners import decoding
from planners.errors import BadRequest
from planners.intervals.partitionings import Cuts

ADVICE = "the tables are damaged: copy or make them anew"
MAGIC = b"PAR1"
END = 8  # bytes: the length of the footer, and the magic


@dataclass(frozen=True)
class Seal:
    """How long a file is, and the digest of its footer."""

    size: int
    digest: str

    def as_json(self) -> dict[str, int | str]:
        return {"bytes": self.size, "footer": self.digest}

    @classmethod
    def of_json(cls, found: Mapping[str, object]) -> Seal:
        return cls(decoding.whole(found, "bytes"), decoding.string(found, "footer"))


def footer_start(size: int, end: bytes) -> int:
    """Where the footer of a file begins, from its last bytes."""
    length = int.from_bytes(end[:4], "little") + END
    if len(end) != END or end[4:] != MAGIC or length + len(MAGIC) > size:
        raise BadRequest("it does not end as a Parquet file does")
    return size - length


def seal(size: int, footer: bytes) -> Seal:
    """The seal of a file with this footer, its last bytes included."""
    return Seal(size, hashlib.sha256(footer).hexdigest())


def seal_of(path: Path) -> Seal:
    """The seal of a local file. O(footer)."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END))
        file.seek(footer_start(size, file.read(END)))
        return seal(size, file.read())


def write(path: Path, table: pa.Table, row_group: int) -> None:
    pq.write_table(table, path, row_group_size=row_group, write_page_checksum=True)


def arrow(cuts: Cuts, costs: NDArray[np.float64]) -> pa.Table:
    """Rows as they are stored. Never unsigned: Spark would read decimals."""
    offsets = np.arange(len(cuts) + 1, dtype=np.int32) * cuts.shape[1]
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(cuts).ravel()))
    return pa.table({"cuts": lists, "cost": pa.array(costs)})


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Some rows of a file, which are read when asked for."""

    path: Path
    file: pq.ParquetFile
    number: int
    rows: int
    least: float
    nodes: int
    tasks: int

    def read(self) -> tuple[Cuts, NDArray[np.float64]]:
        """Cuts and costs, checked: cuts ascend from 0 to the number of tasks, and costs are finite."""
        with decoding.parquet(self.path, ADVICE):
            table = self.file.read_row_group(self.number, columns=["cuts", "cost"])
            table.validate(full=True)
            lists, costs = table["cuts"].combine_chunks(), table["cost"].to_numpy()
            lengths, values = pc.list_value_length(lists).to_numpy(zero_copy_only=False), lists.flatten()
        width = self.nodes + 1
        if table["cost"].null_count or lists.null_count or values.null_count or (lengths != width).any():
            raise BadRequest(f"{self.path} has rows without a cost, or without {width} cuts: {ADVICE}")
        cuts: Cuts = values.to_numpy().reshape(-1, width)
        if len(cuts) != self.rows or not (np.isfinite(costs).all() and self._ascend(cuts)):
            raise BadRequest(f"{self.path} has rows that cannot be: {ADVICE}")
        return cuts, costs

    def _ascend(self, cuts: Cuts) -> bool:
        ends = (cuts[:, 0] == 0).all() and (cuts[:, -1] == self.tasks).all()
        return bool(ends and (cuts[:, 1:] >= cuts[:, :-1]).all())


def groups(path: Path, sealed: Seal, nodes: int, tasks: int) -> Iterator[RowGroup]:
    """The row groups of a file, which must be as it was sealed. O(footer)."""
    with decoding.parquet(path, ADVICE), decoding.naming(path, ADVICE):
        if seal_of(path) != sealed:
            raise BadRequest("it is not the file that was written, or not all of it")
    with decoding.parquet(path, ADVICE):
        file = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
        schema, metadata = file.schema_arrow, file.metadata
    _check_columns(path, schema)
    leaf = next(i for i in range(len(file.schema)) if file.schema.column(i).path == "cost")
    for number in range(file.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(leaf).statistics
        known = statistics is not None and statistics.has_min_max
        least = float(statistics.min) if known else 0.0  # no cost is below 0
        if not np.isfinite(least):
            raise BadRequest(f"{path} has rows that cannot be: {ADVICE}")
        yield RowGroup(path, file, number, group.num_rows, least, nodes, tasks)


def _check_columns(path: Path, schema: pa.Schema) -> None:
    there = {name: schema.field(name).type for name in ("cuts", "cost") if schema.names.count(name) == 1}
    cuts, cost = there.get("cuts"), there.get("cost")
    if cuts is None or not pa.types.is_list(cuts) or cuts.value_type != pa.int16() or cost != pa.float64():
        raise BadRequest(f"{path} is not a table of projected costs: it has {', '.join(map(str, schema))}: {ADVICE}")
