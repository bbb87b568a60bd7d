"""What is columns where records are expected, and what is not: one rule for `send`, for sources and for outputs.

A *frame* is anything with columns that speaks Arrow (`__arrow_c_stream__`): Arrow tables and batches, pandas and polars
frames, `Columns` themselves. Where several records are expected, a frame or a mapping of names to columns is a batch of
columns. Where one record is expected (an item of an iterable), a frame is a batch of columns, and a mapping is a
record: rows are often dictionaries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from dataflow.columns.batch import Columns


def is_frame(value: object) -> bool:
    """Whether a value is a frame. Arrow also streams single columns (a Series): these are iterables of records."""
    kind: type = type(value)
    return _is_frame(kind)


@functools.lru_cache(1024)  # asked for every item of a source
def _is_frame(kind: type) -> bool:
    return (
        hasattr(kind, "__arrow_c_stream__")
        and not hasattr(kind, "dtype")  # the Series of pandas and polars
        and kind.__name__ != "ChunkedArray"  # Arrow's
    )


def as_columns(records: object) -> Columns | None:
    """The batch of columns that is meant, where several records are expected; None if it is something else."""
    if isinstance(records, Columns):
        return records
    return Columns(records) if isinstance(records, Mapping) or is_frame(records) else None


def pieces(frame: object, size: int | None) -> Iterator[Columns]:
    """A frame as batches of at most `size` rows; in one if that is None."""
    batch = Columns(frame)
    step = size or len(batch)
    for start in range(0, len(batch), step or 1):
        yield batch.slice(start, start + step)
