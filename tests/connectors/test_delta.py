"""Delta tables: what the library of others reads of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
import trio

from dataflow import sinks
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from tests.connectors.places import place

deltalake = pytest.importorskip("deltalake")


def write(sink: sinks.Sink, *batches: Any) -> None:
    async def main() -> None:
        writer = sink.open(place())
        try:
            for time, batch in enumerate(batches):
                await writer.write(time, batch)
            token = await writer.prepare(len(batches))
            if token is not None:
                await writer.commit(token)
        finally:
            writer.close()

    trio.run(main)


def test_a_table_in_a_bucket(s3_bucket: str, s3_server: dict[str, str]) -> None:
    table = f"s3://{s3_bucket}/{uuid4().hex}"
    for rows in ([("a", 1), ("b", 2)], [("c", 3)]):
        write(sinks.delta(table, columns=["word", "total"]), rows)
    found = deltalake.DeltaTable(table, storage_options={"allow_http": "true"})
    assert sorted(pa.table(found.to_pyarrow_table()).to_pylist(), key=str) == [
        {"word": "a", "total": 1},
        {"word": "b", "total": 2},
        {"word": "c", "total": 3},
    ]
    assert found.version() == 2, "made, and two commits"


def test_what_others_do_to_the_table_stays(tmp_path: Path) -> None:
    """Compacted and vacuumed by others between two commits: nothing is lost, and nothing comes back."""
    sink = sinks.delta(tmp_path / "t", columns=["word", "total"])
    write(sink, [("a", 1)])
    write(sink, [("b", 2)])
    table = deltalake.DeltaTable(tmp_path / "t")
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    write(sink, Columns({"word": ["c"], "total": [3]}))
    rows = pa.table(deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table()).to_pylist()
    assert sorted(row["total"] for row in rows) == [1, 2, 3]


def test_rows_that_do_not_fit_the_table_are_refused(tmp_path: Path) -> None:
    write(sinks.delta(tmp_path / "t", columns=["word", "total"]), [("a", 1)])
    with pytest.raises(sinks.SinkError, match="do not fit together"):
        write(sinks.delta(tmp_path / "t", columns=["word", "total"]), [("a", "many")])
    schema = pa.schema([("word", pa.string()), ("total", pa.float64())])
    with pytest.raises(sinks.SinkError, match=r"has the columns word .*, total int64, and rows came with .* double"):
        write(sinks.delta(tmp_path / "t", schema=schema), [("a", 1.5)])
    with pytest.raises(ConstructionError, match="a Delta table needs a folder"):
        sinks.delta("")
    with pytest.raises(ConstructionError, match="credentials belong into the environment"):
        sinks.delta("s3://key:s3cret@bucket/x")
