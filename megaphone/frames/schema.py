"""Which columns a frame has, and of which types, as far as that is known before it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow.columns import Columns
from dataflow.columns.repairs import Repairs
from megaphone.frames.expressions import Aggregation
from megaphone.frames.running import Keeping, Making, Stateless, run

Types: TypeAlias = Mapping[str, pa.DataType | None]
"""By column its type, or None if nobody knows before there are records."""

_WHOLE = ("count", "distinct", "approximate_distinct")
_FRACTIONS = ("mean", "variance", "quantile")


def of_table(table: Columns, repairs: Repairs) -> Types:
    """Those of columns in memory."""
    return _repaired(table.slice(0, 0).to_arrow().schema, repairs)


def of_files(path: str | os.PathLike[str], repairs: Repairs) -> Types | None:
    """Those of a Parquet file, or of the first one of a folder; None if it is elsewhere."""
    place = Path(path)
    files = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        return None
    return _repaired(Repairs(decimals=repairs.decimals).columns(pq.read_schema(files[0]).empty_table()), repairs)


def _repaired(known: pa.Schema | Columns, repairs: Repairs) -> Types:
    schema = known.to_arrow().schema if isinstance(known, Columns) else known
    floats = repairs.missing == "nan"  # integers, if any is missing: as floats they are right in any case
    return {field.name: pa.float64() if floats and pa.types.is_integer(field.type) else field.type for field in schema}


def behind_steps(steps: Sequence[Stateless], before: Types | None) -> Types | None:
    """Behind steps without state."""
    if before is not None and None not in before.values():
        empty = pa.schema(list(before.items())).empty_table()
        return {field.name: field.type for field in run(steps, None, Columns(empty)).to_arrow().schema}
    names = before
    for step in steps:
        if isinstance(step, Keeping):
            continue
        if not step.adds:
            names = _made(step, names)
        elif names is not None:
            names = {**names, **_made(step, names)}
    return names


def _made(step: Making, before: Types | None) -> Types:
    """Columns that are taken as they are keep their type."""
    known = before or {}
    return {name: known.get(next(iter(each.needs))) if each.is_column else None for name, each in step.columns.items()}


def of_times(moments: bool | str) -> pa.DataType:
    """That of a time of the dataflow; moments, perhaps of a zone, in whatever unit can be nanoseconds."""
    return pa.timestamp("ns", moments if isinstance(moments, str) else None) if moments else pa.int64()


def behind_window(
    by: Sequence[str], aggregations: Sequence[Aggregation], prepared: Types, moments: bool | str
) -> Types:
    """Behind windows."""
    types: dict[str, pa.DataType | None] = {name: prepared.get(name) for name in by}
    types |= {"window_start": of_times(moments), "window_end": of_times(moments)}
    for each in aggregations:
        of = prepared.get(f"{each.name} of")
        if each.what[0] in _WHOLE:
            types[each.name] = pa.int64()
        elif each.what[0] in _FRACTIONS:
            types[each.name] = pa.float64()
        else:
            types[each.name] = pa.int64() if of is not None and pa.types.is_integer(of) else of
    return types
