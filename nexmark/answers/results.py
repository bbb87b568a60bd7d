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
    """Makes the file, its columns in the order of the query's and its codes as words, and removes the parts. Query 10
    is about writing many files: its output is a folder, with a file for each minute (`minute=0/...`)."""
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
        if query == "q10":
            _divide(unfinished, path, "minute")
        else:
            unfinished.replace(path)
    finally:
        for file in (*parts, unfinished):
            file.unlink(missing_ok=True)


def _divide(file: Path, folder: Path, by: str) -> None:
    """The rows of a file as a folder of files, one for each value of a column; the folder appears when it is whole."""
    aside = folder.with_name(f".{folder.name}.folder")
    pq.write_to_dataset(pq.read_table(file), aside, partition_cols=[by])
    aside.mkdir(exist_ok=True)  # without rows there is nothing in it
    aside.replace(folder)


def _worded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    arrays = []
    for field in schema:
        column = batch.column(field.name)
        if field.name in ENCODED:
            words = pa.array(dictionary(field.name), pa.utf8())
            column = pa.DictionaryArray.from_arrays(column.cast(pa.int32()), words)
        arrays.append(column.cast(field.type))
    return pa.table(arrays, schema=schema)
