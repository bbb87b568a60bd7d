"""Events in Parquet files: person.parquet, auction.parquet and bid.parquet in a folder. Those that Spark wrote are
folders of parts, in the order of their names (see `on_spark`).

Times are int64 nanoseconds and ids int64, which every reader takes as they are; words are dictionary-encoded strings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nexmark.events import payload
from nexmark.events.generator import COLUMNS, ENCODED, Events, Generator, Table
from nexmark.events.kernels import Column
from nexmark.events.vocabulary import dictionary

KINDS = tuple(COLUMNS)


def paths(directory: Path) -> dict[str, Path]:
    """By kind, the file."""
    return {kind: directory / f"{kind}.parquet" for kind in KINDS}


def schema(kind: str, columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a kind's columns."""
    return pa.schema([(name, _type(kind, name)) for name in columns])


def write(
    directory: Path,
    generator: Generator,
    events: int,
    slice_of: int = 500_000,
    advance: Callable[[int], object] = lambda done: None,
) -> dict[str, int]:
    """Write the first so many events, a slice at a time; returns the rows of each kind.

    `advance` is called after each slice with the number of its events. All files appear together, when everything is
    written; a run that is stopped leaves none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(generator.columns, 0)
    with _writers(directory, generator, events) as writers:
        for start in range(0, events, slice_of):
            stop = min(start + slice_of, events)
            for kind, table in generator.events(range(start, stop)).items():
                batch = arrow(kind, table)
                writers[kind].write_table(batch)
                counts[kind] += len(batch)
            advance(stop - start)
    return counts


@contextlib.contextmanager
def _writers(directory: Path, generator: Generator, events: int) -> Iterator[dict[str, pq.ParquetWriter]]:
    about = json.dumps(dataclasses.asdict(generator.config) | {"events": events})
    unfinished = {kind: directory / f".{kind}.parquet.unfinished" for kind in generator.columns}
    try:
        with contextlib.ExitStack() as stack:
            writers = {}
            for kind, path in unfinished.items():
                described = schema(kind, columns_of(generator)[kind]).with_metadata({"nexmark": about})
                writers[kind] = stack.enter_context(_writer(path, described))
            yield writers
        for kind, path in unfinished.items():
            path.replace(paths(directory)[kind])
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)


def _writer(path: Path, described: pa.Schema) -> pq.ParquetWriter:
    """Each page gets a checksum, so that a reader notices damage instead of taking it for events."""
    return pq.ParquetWriter(path, described, compression="zstd", write_page_checksum=True)


def read(directory: Path, columns: Mapping[str, Sequence[str]] = COLUMNS) -> Events:
    """The columns wanted of each kind, as the generator gives them: words as codes."""
    found = {kind: paths(directory)[kind] for kind in columns}
    if missing := [path.name for path in found.values() if not parts(path)]:
        raise FileNotFoundError(
            f"{directory} has no {' and no '.join(missing)}; make them by: "
            f"python -m nexmark generate --events N --out {directory}"
        )
    return {kind: _columns(found[kind], kind, list(columns[kind])) for kind in columns}


def count(directory: Path) -> int:
    """How many events there are, of all kinds."""
    total = 0
    for path in paths(directory).values():
        for part in parts(path):
            with _damaged(part):
                total += pq.read_metadata(part).num_rows
    return total


def parts(path: Path) -> list[Path]:
    """The file itself, or the files in a folder that Spark wrote; none if there is neither."""
    return sorted(path.glob("part-*.parquet")) if path.is_dir() else [path] if path.is_file() else []


def columns_of(generator: Generator) -> dict[str, list[str]]:
    """By kind, the columns that are written."""
    full = generator.payload == "full"
    return {kind: [*plain, *(payload.COLUMNS[kind] if full else ())] for kind, plain in generator.columns.items()}


def words_of(kind: str) -> set[str]:
    """The columns of a kind that are strings."""
    return {*ENCODED, *payload.COLUMNS[kind]}


@contextlib.contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Turns the many errors that reading a damaged Parquet file can raise into one that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, OverflowError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} cannot be read as Parquet ({told}): copy or make it anew") from None


def _columns(path: Path, kind: str, names: list[str]) -> Table:
    """Of all parts, in their order."""
    tables = [_columns_of_part(part, names) for part in parts(path)]
    if len(tables) == 1:
        return tables[0]
    return {name: _joined([table[name] for table in tables]) for name in names}


def _joined(columns: Sequence[Column | pa.Array]) -> Column | pa.Array:
    return pa.concat_arrays(columns) if isinstance(columns[0], pa.Array) else np.concatenate(columns)


def _columns_of_part(path: Path, names: list[str]) -> Table:
    with _damaged(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        present = file.schema_arrow.names
    if absent := [name for name in names if name not in present]:
        raise ValueError(f"{path} has no column {absent[0]!r}; it has {', '.join(present)}")
    with _damaged(path):
        table = file.read(columns=names)
        table.validate(full=True)
    return {name: _array(path, name, table[name]) for name in names}


def _array(path: Path, name: str, column: pa.ChunkedArray) -> Column | pa.Array:
    words = pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)
    if column.null_count or not (words or pa.types.is_integer(column.type)):
        raise ValueError(f"column {name!r} of {path} has empty places, or holds {column.type}: make it anew")
    if name not in ENCODED:
        return column.combine_chunks() if pa.types.is_string(column.type) else column.to_numpy()
    codes = pc.index_in(column.cast(pa.utf8()), value_set=pa.array(dictionary(name), pa.utf8()))
    if codes.null_count:
        raise ValueError(f"{path} has words in column {name!r} that the generator does not use; they have no codes")
    return codes.to_numpy().astype(np.int32, copy=False)


def arrow(kind: str, table: Table) -> pa.Table:
    """A table of the generator's as an Arrow table, its codes as dictionary-encoded words."""
    arrays = [
        pa.DictionaryArray.from_arrays(column, pa.array(dictionary(name), pa.utf8())) if name in ENCODED else column
        for name, column in table.items()
    ]
    return pa.table(arrays, schema=schema(kind, list(table)))


def plain_arrow(kind: str, table: Table) -> pa.Table:
    """The same with words as plain strings."""
    made = arrow(kind, table)
    encoded = [pa.dictionary(pa.int32(), pa.utf8()) == field.type for field in made.schema]
    columns = [column.cast(pa.utf8()) if coded else column for column, coded in zip(made.columns, encoded, strict=True)]
    return pa.table(columns, names=made.column_names)


def _type(kind: str, name: str) -> pa.DataType:
    if name in ENCODED:
        return pa.dictionary(pa.int32(), pa.utf8())
    return pa.utf8() if name in payload.COLUMNS[kind] else pa.int64()
