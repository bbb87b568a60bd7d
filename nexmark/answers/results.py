"""The rows of a run as one Parquet file, from the parts that workers wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nexmark.answers.oracle import COLUMNS
from nexmark.events.generator import ENCODED
from nexmark.events.vocabulary import dictionary
from nexmark.runs.running import part_of


def put_together(path: Path, query: str, workers: int) -> None:
    """Makes the file, its columns in the order of the query's and its codes as words, and removes the parts."""
    words = pa.dictionary(pa.int32(), pa.utf8())
    schema = pa.schema([(name, words if name in ENCODED else pa.int64()) for name in COLUMNS[query]])
    parts = [part_of(path, worker) for worker in range(workers)]
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for part in parts:
                if part.stat().st_size:
                    for batch in pq.ParquetFile(part).iter_batches():
                        writer.write_table(_worded(batch, schema))
        unfinished.replace(path)
    finally:
        for file in (*parts, unfinished):
            file.unlink(missing_ok=True)


def _worded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    arrays = []
    for field in schema:
        column = batch.column(field.name)
        if field.name in ENCODED:
            words = pa.array(dictionary(field.name), pa.utf8())
            column = pa.DictionaryArray.from_arrays(column.cast(pa.int32()), words)
        arrays.append(column.cast(field.type))
    return pa.table(arrays, schema=schema)
