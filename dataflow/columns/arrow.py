"""Columns and Arrow: strings are Arrow arrays, and whatever speaks Arrow comes in and goes out.

Arrow is imported when it is first needed: programs without strings do not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from types import ModuleType
from typing import NoReturn

import numpy as np

from dataflow.columns.column import (
    Array,
    ArrowArray,
    ArrowDictionary,
    ArrowTable,
    ArrowType,
    Column,
    DType,
    Mask,
)
from dataflow.columns.instants import finest, to_kind
from dataflow.columns.zones import Zoned, checked_zone, plain, to_datetimes, with_zone, zone_of
from dataflow.values import Value

_KINDS = "iufcbmM"  # numpy's numbers, booleans, time spans and dates
_EXACT = 1 << 53  # integers up to here are floats of 64 bits
_ARROWS = (str, bytes, date, timedelta)  # Python values that Arrow knows better than numpy


def _pyarrow() -> ModuleType:
    import pyarrow

    module: ModuleType = pyarrow
    return module


def from_frame(data: Value) -> dict[str, object]:
    """The columns of a table, batch or frame: anything with `__arrow_c_stream__`."""
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(
            f"columns are made from a mapping of names to arrays, or from anything with __arrow_c_stream__ (Arrow, "
            f"pandas, polars), not from {type(data).__name__}"
        )
    if _is_pandas(data):  # column by column: pandas gives Arrow its not-a-numbers as missing values
        names = list(data.columns)
        columns = [data.iloc[:, i] for i in range(len(names))]
        rows = len(data)
    else:
        table = _pyarrow().table(data)
        names, columns = table.column_names, table.columns
        rows = table.num_rows
    if rows and not names:
        raise ValueError(f"a frame of {rows:,} rows has no column, and so nothing to send: give it one")
    if len(set(names)) != len(names):
        raise ValueError(f"columns must have different names: {names}")
    return dict(zip(names, columns, strict=True))


def _is_pandas(data: object) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def to_column(name: object, values: Value) -> Column:
    """A numpy array for numbers and dates, an Arrow array for anything of variable length."""
    if isinstance(values, np.ndarray):
        return _from_numpy(name, values)
    if _is_pandas(values) and isinstance(values.dtype, np.dtype) and values.dtype.kind in _KINDS:
        numbers: Array = values.to_numpy()
        return numbers
    if _is_pandas(values) and hasattr(values.dtype, "tz"):  # not by way of Arrow, where not-a-time is a missing value
        zone = _pyarrow().array(values[:0]).type.tz
        moments = values.dt if hasattr(values, "dt") else values  # an index has no `dt`
        return with_zone(moments.tz_convert(None).to_numpy(), checked_zone(zone))
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return _from_arrow(name, values)
    if hasattr(values, "__array__"):
        return _from_numpy(name, np.asarray(values))
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"column {name!r} is {values!r}; a column is an array or a list of one length with the others")
    return _from_list(name, values)


def _from_list(name: object, values: Sequence[Value]) -> Column:
    if not values:
        return np.empty(0, np.float64)
    if any(value is np.ma.masked for value in values):
        raise TypeError(f"column {name!r} has masked values, and a column has none: fill them in, or leave them out")
    pa = _pyarrow() if isinstance(values[0], _ARROWS) or any(value is None for value in values) else None
    if pa is not None:
        _require_one_kind_of_moment(name, values)
    try:
        array = np.asarray(values) if pa is None else pa.array(values, _finer_than_python(pa, values))
    except ValueError as error:  # Arrow's errors are ValueErrors or TypeErrors, numpy's ValueErrors
        raise ValueError(f"column {name!r} cannot be made from such a list: {error}") from error
    except TypeError as error:
        raise TypeError(f"column {name!r} cannot be made from such a list: {error}") from error
    if pa is not None:
        return _from_arrow(name, array)
    if array.dtype.kind in "US":
        raise TypeError(f"column {name!r} has strings and other things: a column holds values of one type")
    if array.dtype.kind == "f" and all(isinstance(value, int | np.integer) for value in values):  # some from 2^63 on
        if min(map(int, values)) >= 0:
            return np.array(values, np.uint64)
        raise TypeError(f"column {name!r} has integers below 0 and from 2^63 on: no type of 64 bits holds both")
    if array.dtype.kind in "fc" and array.ndim == 1:
        _require_no_rounding(name, values, array)
    return _from_numpy(name, array)


def _require_no_rounding(name: object, values: Sequence[Value], made: Array) -> None:
    """ValueError if an integer of a list became a float that is another number: numpy says nothing of that."""
    for at in np.flatnonzero(abs(made) >= _EXACT).tolist():
        if isinstance(values[at], int | np.integer) and int(made[at].real) != int(values[at]):
            raise ValueError(
                f"column {name!r} has floats, and the integer {values[at]}, which no float of 64 bits is: make all of "
                "them integers, or round it yourself: float(...)"
            )


def _require_one_kind_of_moment(name: object, values: Sequence[object]) -> None:
    """TypeError where Arrow would cut moments off to dates, or take those without a time zone for ones in UTC."""
    kinds = {
        (isinstance(value, datetime), isinstance(value, datetime) and value.tzinfo is not None)
        for value in values
        if isinstance(value, date)
    }
    if len(kinds) > 1:
        names = {(False, False): "dates", (True, False): "datetimes without a time zone", (True, True): "with one"}
        found = " and ".join(names[kind] for kind in sorted(kinds))
        raise TypeError(f"column {name!r} has {found}: a column holds values of one type")


def _finer_than_python(pa: ModuleType, values: Sequence[object]) -> ArrowType | None:
    """Arrow's type for moments and spans of pandas that have nanoseconds: by itself Arrow would cut these off, since
    Python's own have microseconds."""
    first = next((value for value in values if value is not None), None)
    if not any(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values):
        return None
    spans = isinstance(first, timedelta)
    kind: ArrowType = pa.duration("ns") if spans else pa.timestamp("ns", pa.scalar(first).type.tz)
    return kind


def _from_numpy(name: object, given: Array) -> Column:
    values = _plain_array(name, given)
    if values.dtype.kind in _KINDS:
        return values
    if values.dtype.kind in "UTS" or (values.dtype.hasobject and all(isinstance(v, str | None) for v in values)):
        pa = _pyarrow()
        strings: ArrowArray = pa.array(values.tolist(), pa.binary() if values.dtype.kind == "S" else pa.string())
        return strings
    if values.dtype.hasobject and values.ndim == 1:
        _refuse_objects(name, values)
    _refuse(name, values.dtype)


def _refuse_objects(name: object, values: Array) -> NoReturn:
    wide = [value for value in values if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64]
    if wide:
        raise TypeError(
            f"column {name!r} has the integer {_shortened(wide[0])}, and integers of columns have 64 bits: make all of "
            "them floats or strings, or use rows"
        )
    kinds = sorted({type(value).__name__ for value in values})
    raise TypeError(
        f"column {name!r} holds objects of Python ({', '.join(kinds[:4])}); a column holds numbers, booleans, dates, "
        "time spans or strings, all of one type"
    )


def _shortened(number: int) -> str:
    return str(number) if number.bit_length() < 200 else f"of {number.bit_length():,} bits"


def _plain_array(name: object, values: Array) -> Array:
    """The array, if its class adds nothing to an array. TypeError if it does: a mask, for instance, would be lost."""
    if type(values) is np.ndarray:
        return values
    if type(values) is Zoned:
        return values if zone_of(values) is not None else plain(values)
    if isinstance(values, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(values).sum())
        if masked:
            raise TypeError(
                f"column {name!r} has {masked} masked values, and a column has none: fill them in "
                "(`array.filled(...)`), or leave those rows out, first"
            )
        return values.data
    if isinstance(values, Zoned):
        return values if zone_of(values) is not None else plain(values)
    if type(values) is np.memmap:
        return values.view(np.ndarray)
    raise TypeError(
        f"column {name!r} is a {type(values).__module__}.{type(values).__qualname__}, and what that adds to an array "
        "would be lost: give `numpy.asarray(array)`"
    )


def _from_arrow(name: object, values: Value) -> Column:
    array, types = _one_array(values), _pyarrow().types
    kind = array.type
    if any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)):
        return array
    known = (types.is_integer, types.is_floating, types.is_boolean)
    timely = (types.is_timestamp, types.is_duration, types.is_date)
    if not any(test(kind) for test in (*known, *timely)):
        _refuse(name, kind)
    if array.null_count:
        raise TypeError(
            f"column {name!r} has {array.null_count} missing values, and a column of {kind} has none: "
            "fill them in, or leave those rows out, first (missing= at the source)"
        )
    numbers = array.to_numpy(zero_copy_only=False)
    if types.is_date(kind):
        return to_kind(numbers, np.dtype("M8[D]"), f"column {name!r}")
    zoned = types.is_timestamp(kind) and kind.tz is not None
    return with_zone(numbers, checked_zone(kind.tz)) if zoned else numbers


def _one_array(values: Value) -> ArrowArray:
    """One array of Arrow's, of whatever speaks Arrow: neither in chunks nor with a dictionary."""
    pa = _pyarrow()
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
    if not isinstance(values, pa.ChunkedArray):
        return _plain(values)
    chunks = [_plain(chunk) for chunk in values.chunks] or [_plain(pa.array([], values.type))]
    return chunks[0] if len(chunks) == 1 else _concatenated(chunks)


def _plain(array: ArrowArray | ArrowDictionary) -> ArrowArray:
    """The array itself; its values, if it holds places in a dictionary, or views."""
    pa = _pyarrow()
    if isinstance(array, pa.DictionaryArray):
        return _plain(array.dictionary).take(array.indices)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _concatenated(arrays: list[ArrowArray]) -> ArrowArray:
    joined: ArrowArray = _pyarrow().concat_arrays(arrays)
    return joined


def _refuse(name: object, kind: DType | ArrowType) -> NoReturn:
    hint = ". Times of day are no column: make them time spans since midnight" if str(kind).startswith("time") else ""
    if str(kind).startswith("decimal"):
        hint = f". Say how many digits of decimals are kept, as integers: decimals={{{name!r}: 2}} at the source"
    raise TypeError(
        f"column {name!r} holds {kind}; a column holds numbers, booleans, dates, time spans or strings{hint}"
    )


def to_table(columns: Mapping[str, Column]) -> ArrowTable:
    """A pyarrow.Table of the columns."""
    table: ArrowTable = _pyarrow().table({name: to_arrow(name, column) for name, column in columns.items()})
    return table


def to_arrow(name: str, column: Column) -> ArrowArray:
    """A column as Arrow has it; numbers are not copied."""
    pa = _pyarrow()
    if not isinstance(column, np.ndarray):
        return column
    zone = zone_of(column)
    kind = None if zone is None else pa.timestamp(np.datetime_data(column.dtype)[0], zone)
    try:
        made: ArrowArray = pa.array(plain(column).astype(column.dtype.newbyteorder("="), copy=False), kind)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"column {name!r} holds {column.dtype}, which Arrow does not know: {error}") from error
    return made


def part(column: Column, start: int, length: int) -> Column:
    """Rows of a column, without copying."""
    return column[start : start + length] if isinstance(column, np.ndarray) else column.slice(start, length)


def join(name: str, columns: list[Column]) -> Column:
    """One column after the other."""
    columns = [column for column in columns if len(column)] or columns[:1]  # the type of an empty column means nothing
    if len(columns) == 1:
        return columns[0]
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns):
        return _join_numbers(name, arrays)
    if arrays:
        raise _different(name, columns)
    return _join_strings(name, [column for column in columns if not isinstance(column, np.ndarray)])


def _join_strings(name: str, columns: list[ArrowArray]) -> ArrowArray:
    pa = _pyarrow()
    kinds = {str(column.type) for column in columns}
    if len(kinds) > 1:  # small and large strings are one thing to everybody but Arrow
        if not (kinds <= {"string", "large_string"} or kinds <= {"binary", "large_binary"}):
            raise _different(name, columns)
        widest = pa.large_string() if kinds <= {"string", "large_string"} else pa.large_binary()
        columns = [column.cast(widest) for column in columns]
    return _concatenated(columns)


def _join_numbers(name: str, columns: list[Array]) -> Array:
    if any(column.dtype.kind in "mM" for column in columns):
        return _join_times(name, columns)
    try:
        joined = np.concatenate(columns)
    except TypeError:
        raise _different(name, columns) from None
    if joined.dtype.kind in "fc":  # numpy would make floats of int64 and uint64, which hold neither
        whole = [column for column in columns if column.dtype.kind in "iub"]
        if len(whole) == len(columns) or any(_is_rounded(column) for column in whole):
            raise _different(name, columns)
    return joined


def _is_rounded(column: Array) -> bool:
    """Whether integers become other numbers as floats of 64 bits."""
    if column.dtype.itemsize < 8 or not (column.max() > _EXACT or column.min() < -_EXACT):
        return False
    return any(int(float(value)) != value for value in column.tolist())


def _join_times(name: str, columns: list[Array]) -> Array:
    """Arrays of different units get the finest. numpy would do the same, and wrap around."""
    kinds = {(column.dtype.kind, zone_of(column)) for column in columns}
    if len(kinds) > 1:
        raise _different(name, columns)
    try:
        kind = finest([column.dtype for column in columns])
    except TypeError:  # time spans of years and of days
        raise _different(name, columns) from None
    parts = [plain(to_kind(column, kind, f"column {name!r}")) for column in columns]
    return with_zone(np.concatenate(parts), zone_of(columns[0]))


def _different(name: str, columns: Sequence[Column]) -> TypeError:
    kinds = " and ".join(dict.fromkeys(type_name(column) for column in columns))
    return TypeError(f"column {name!r} holds {kinds} in different batches: make them one type first")


def to_list(column: Column) -> list[Value]:
    """Plain Python values. Nanoseconds stay numpy's: Python has none, and `tolist` would give bare integers."""
    if not isinstance(column, np.ndarray):
        return column.to_pylist()
    zone = zone_of(column)
    if zone is not None:
        return to_datetimes(column, zone)
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] == "ns":
        return [None if np.isnat(value) else value for value in plain(column)]
    return column.tolist()  # type: ignore[no-any-return]


def as_mask(mask: Value, length: int) -> Mask:
    """A numpy array of booleans from a mask, which may be Arrow's."""
    if isinstance(mask, np.ma.MaskedArray) and np.ma.is_masked(mask):
        raise TypeError("a mask of rows has masked values itself: fill them in (`mask.filled(False)`) first")
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (length,):
        raise TypeError(f"a mask has one boolean per row, {length} here, not {array.dtype} of shape {array.shape}")
    return array


def type_name(column: Column) -> str:
    """What a column holds."""
    if not isinstance(column, np.ndarray):
        return str(column.type)
    zone = zone_of(column)
    return str(column.dtype) if zone is None else f"datetime64[{np.datetime_data(column.dtype)[0]}, {zone}]"
