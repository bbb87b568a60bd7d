"""Columns and Arrow: strings are Arrow arrays, and whatever speaks Arrow comes in and goes out.

Arrow is imported when it is first needed: programs without strings do not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_KINDS = "iufcbmM"  # numpy's numbers, booleans, time spans and dates


def _pyarrow() -> Any:
    import pyarrow

    return pyarrow


def from_frame(data: Any) -> dict[str, Any]:
    """The columns of a table, batch or frame: anything with `__arrow_c_stream__`, or a pandas frame."""
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(
            f"columns are made from a mapping of names to arrays, or from anything with __arrow_c_stream__ (Arrow, "
            f"pandas, polars), not from {type(data).__name__}"
        )
    table = _pyarrow().table(data)
    if len(set(table.column_names)) != table.num_columns:
        raise ValueError(f"columns must have different names: {table.column_names}")
    return dict(zip(table.column_names, table.columns, strict=True))


def to_column(name: Any, values: Any) -> Any:
    """A numpy array for numbers and dates, an Arrow array for anything of variable length."""
    if isinstance(values, np.ndarray):
        return _from_numpy(name, values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return _from_arrow(name, values)
    if hasattr(values, "__array__"):
        return _from_numpy(name, np.asarray(values))
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"column {name!r} is {values!r}; a column is an array or a list of one length with the others")
    if not values:
        return np.empty(0, np.float64)
    if isinstance(values[0], str | bytes) or any(value is None for value in values):
        return _from_arrow(name, _pyarrow().array(values))
    return _from_numpy(name, np.asarray(values))


def _from_numpy(name: Any, values: Any) -> Any:
    if values.dtype.kind in _KINDS:
        return values
    if values.dtype.kind in "UTS" or (values.dtype.hasobject and all(isinstance(v, str | None) for v in values)):
        pa = _pyarrow()
        return pa.array(values.tolist(), pa.binary() if values.dtype.kind == "S" else pa.string())
    raise TypeError(
        f"column {name!r} holds {values.dtype}; a column holds numbers, booleans, dates, time spans or strings"
    )


def _from_arrow(name: Any, values: Any) -> Any:
    pa = _pyarrow()
    array = values
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        array = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_string_view(kind):
        array, kind = array.cast(pa.large_string()), pa.large_string()
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        return array
    if not (pa.types.is_primitive(kind) and hasattr(np.dtype(kind.to_pandas_dtype()), "kind")):
        raise TypeError(f"column {name!r} holds {kind}; a column holds numbers, booleans, dates, time spans or strings")
    if array.null_count:
        raise TypeError(
            f"column {name!r} has {array.null_count} missing values, and a column of {kind} has none: "
            "fill them in, or leave those rows out, first"
        )
    if pa.types.is_temporal(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
        return array.to_numpy(zero_copy_only=False).astype("M8[D]") if pa.types.is_date(kind) else _refuse(name, kind)
    return array.to_numpy(zero_copy_only=False)


def _refuse(name: Any, kind: Any) -> Any:
    raise TypeError(f"column {name!r} holds {kind}; a column holds numbers, booleans, dates, time spans or strings")


def to_table(columns: dict[str, Any]) -> Any:
    """A pyarrow.Table of the columns."""
    return _pyarrow().table(columns)


def part(column: Any, start: int, length: int) -> Any:
    """Rows of a column, without copying."""
    return column[start : start + length] if isinstance(column, np.ndarray) else column.slice(start, length)


def join(columns: list[Any]) -> Any:
    """One column after the other."""
    if all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    pa = _pyarrow()
    kinds = {str(column.type) for column in columns}
    if len(kinds) > 1:  # small and large strings are one thing to everybody but Arrow
        widest = pa.large_string() if kinds <= {"string", "large_string"} else pa.large_binary()
        columns = [column.cast(widest) for column in columns]
    return pa.concat_arrays(columns)


def to_list(column: Any) -> list[Any]:
    """Plain Python values."""
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()  # type: ignore[no-any-return]


def as_mask(mask: Any, length: int) -> Any:
    """A numpy array of booleans from a mask, which may be Arrow's."""
    array = np.asarray(mask) if not hasattr(mask, "to_numpy") else mask.to_numpy(zero_copy_only=False)
    if array.dtype != np.bool_ or array.shape != (length,):
        raise TypeError(f"a mask has one boolean per row, {length} here, not {array.dtype} of shape {array.shape}")
    return array


def type_name(column: Any) -> str:
    """What a column holds."""
    return str(column.dtype if isinstance(column, np.ndarray) else column.type)
