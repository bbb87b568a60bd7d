"""Types of columns and of state, as people write them: {"count": "i8", "price": "f8"}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from dataflow.columns.column import DType
from dataflow.columns.zones import checked_zone
from dataflow.time.durations import NANOSECONDS
from dataflow.values import Value

Schema: TypeAlias = Mapping[str, object]
"""Names and numpy types; in state also (type, length) for a fixed array."""

_WORD = np.dtype(np.uint64)
_KINDS = "iufb"
_TIMED = ("values", "output")  # where dates, moments and time spans can be declared: to a fold they are integers
_ZONED = re.compile(r"(?:M8|datetime64)\[(\w+), ?([^\]]+)\]")  # "M8[us, Europe/Berlin]"


def wide(schema: Schema | None, what: str) -> dict[str, DType]:
    """The columns of a schema, each of 64 bits as compiled code handles them: int64, uint64 or float64."""
    return {name: widest(kind) for name, kind in declared(schema, what).items()}


def widest(kind: DType) -> DType:
    """The 64-bit type that holds values of a type."""
    wide_types = {"i": np.int64, "b": np.int64, "u": np.uint64, "f": np.float64, "m": np.int64, "M": np.int64}
    return np.dtype(wide_types[kind.kind])


def stored(kind: DType) -> DType:
    """The type as which compiled code writes values of a type: moments are counts."""
    return np.dtype(np.int64) if kind.kind in "mM" else kind


def units(schema: Schema | None) -> dict[str, str]:
    """The units of columns that are declared to be dates, moments or time spans."""
    kinds = declared(schema, "values")
    return {name: np.datetime_data(kind)[0] for name, kind in kinds.items() if kind.kind in "mM"}


def zones(schema: Schema | None) -> dict[str, str]:
    """The time zones of columns that are declared to have one: "M8[us, Europe/Berlin]"."""
    found = {name: _ZONED.fullmatch(kind) for name, kind in (schema or {}).items() if isinstance(kind, str)}
    return {name: checked_zone(zone[2]) for name, zone in found.items() if zone is not None}


def declared(schema: Schema | None, what: str) -> dict[str, DType]:
    """The columns of a schema as declared; TypeError says what is wrong."""
    return {name: _scalar(name, kind, what) for name, kind in _items(schema, what)}


def state_dtype(schema: Schema | None, tagged: bool) -> DType:
    """How a row of state lies in memory: the tag of its key, if it has one, and the declared fields, aligned."""
    fields: list[tuple[str, DType] | tuple[str, DType, tuple[int]]] = [("_tag", _WORD)] if tagged else []
    for name, kind in _items(schema, "state"):
        if isinstance(kind, tuple):
            if len(kind) != 2 or not isinstance(kind[1], int) or kind[1] < 1:
                raise TypeError(f"state {name!r}: an array in state is written (type, length), not {kind!r}")
            fields.append((name, _scalar(name, kind[0], "state"), (kind[1],)))
        else:
            fields.append((name, _scalar(name, kind, "state")))
    if not fields:
        fields = [("_nothing", _WORD)]
    dtype = np.dtype(fields, align=True)
    if dtype.itemsize % 8:
        padding = 8 - dtype.itemsize % 8
        dtype = np.dtype([*fields, ("_padding", np.dtype(np.uint8), (padding,))], align=True)
    return dtype


def _items(schema: Schema | None, what: str) -> list[tuple[str, object]]:
    if schema is None:
        return []
    if not isinstance(schema, Mapping):
        raise TypeError(f"{what} is a mapping of names to types such as {{'count': 'i8'}}, not {schema!r}")
    for name in schema:
        if not str(name).isidentifier() or str(name).startswith("_"):
            raise TypeError(f"{what}: {name!r} cannot be a name: it must be one in Python, and not begin with _")
    return list(schema.items())


def _scalar(name: str, kind: Value, what: str) -> DType:
    zoned = _ZONED.fullmatch(kind) if isinstance(kind, str) else None
    try:
        kind = kind if zoned is None else f"M8[{zoned[1]}]"
        dtype: DType = np.dtype(kind)
    except TypeError:
        raise TypeError(
            f"{what} {name!r}: {kind!r} is not a type of numbers, such as 'i8', 'f8', 'u4' or 'b1'"
        ) from None
    if dtype == np.float16:
        raise TypeError(f"{what} {name!r} is float16, with which nothing can be computed: say 'f4'")
    if dtype.kind in "mM" and what in _TIMED:
        return _timed(name, dtype, what)
    if dtype.kind not in _KINDS or dtype.itemsize > 8:
        raise TypeError(f"{what} {name!r} is {dtype}: only integers, floats and booleans of up to 64 bits can be used")
    return dtype


def _timed(name: str, dtype: DType, what: str) -> DType:
    unit, multiple = np.datetime_data(dtype)
    if unit not in NANOSECONDS or multiple != 1:
        raise TypeError(f"{what} {name!r} is {dtype}: say its unit, one of {', '.join(NANOSECONDS)}, as in 'M8[ms]'")
    return dtype
