"""Columns from whatever has columns, and back: values survive every way round."""

from __future__ import annotations

import datetime
import re
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dataflow.columns import Columns

UTC, BERLIN = datetime.UTC, ZoneInfo("Europe/Berlin")
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
TIMES = ["M8[D]", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ms]", "m8[us]", "m8[ns]"]
KINDS = [*NUMBERS, *TIMES]
FOREIGN = ["c8", "c16", "g", "M8[h]", "M8[Y]", "m8[D]"]  # numpy's, and nobody else's


def sample(kind: str) -> Any:
    """Values of a type, with its extremes."""
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([0, 1, 7, limits.min, limits.max], dtype)
    if dtype.kind == "f":
        return np.array([0.0, -0.0, 1.5, np.inf, -np.inf], dtype)
    return np.array([0, 1, 0, 1, 1]).astype(dtype)


class Stream:
    """Something that has only `__arrow_c_stream__`."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


WAYS: dict[str, Any] = {
    "dict": lambda batch: Columns(batch.to_dict()),
    "lists": lambda batch: Columns({name: column.tolist() for name, column in batch.columns.items()}),
    "Columns": lambda batch: Columns(batch),
    "Arrow": lambda batch: Columns(batch.to_arrow()),
    "batch": lambda batch: Columns(batch.to_arrow().to_batches()[0]),
    "reader": lambda batch: Columns(batch.to_arrow().to_reader()),
    "stream": lambda batch: Columns(Stream(batch.to_arrow())),
    "own stream": lambda batch: Columns(pa.table(batch)),
    "pandas": lambda batch: Columns(batch.to_pandas()),
    "series": lambda batch: Columns(dict(batch.to_pandas().items())),
    "polars": lambda batch: Columns(batch.to_polars()),
    "polars series": lambda batch: Columns({series.name: series for series in batch.to_polars()}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: str, way: str) -> None:
    batch = Columns({"a": sample(kind)})
    back = WAYS[way](batch)
    if kind == "f2" and way.startswith("polars"):
        return  # polars has no half floats of its own in all versions: what it makes of them is its business
    assert back.names == ("a",)
    if way != "lists":  # Python's own numbers and dates have fewer types
        expected = np.dtype(kind)
        exact = not (way.startswith(("pandas", "series", "polars")) and expected.kind in "mM")
        assert back["a"].dtype == expected if exact else back["a"].dtype.kind == expected.kind
    if way != "lists" or not kind.endswith("[ns]"):  # numpy gives nanoseconds as plain integers
        assert np.array_equal(back["a"], batch["a"]), back["a"]


@pytest.mark.parametrize("kind", [*KINDS, *FOREIGN, ">i4", ">f8", ">M8[s]"])
def test_any_stride_and_byte_order(kind: str) -> None:
    values = np.arange(12).astype(kind)
    for part in (values[::2], values[::-1], values[:0], np.broadcast_to(values[3], 4)):
        batch = Columns({"a": part})
        assert batch["a"] is part
        own = list(part) if kind.endswith("[ns]") else part.tolist()  # Python has no nanoseconds: numpy's own
        assert batch.rows() == [(value,) for value in own]
        if kind not in FOREIGN:
            assert batch.to_arrow().column("a").to_numpy().tolist() == part.tolist()


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_arrow_does_not_know_is_said(kind: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"column 'a' holds {np.dtype(kind)}, which Arrow does not know")):
        Columns({"a": np.zeros(2, kind)}).to_arrow()


STRINGS = ["", "a", "grün", "\U0001f600" * 3, None, "x" * 40, "\0"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(STRINGS),
        pa.array(STRINGS, pa.large_string()),
        pa.array(STRINGS, pa.string_view()),
        pa.array(STRINGS).dictionary_encode(),
        pa.array(["y", *STRINGS, "z"]).slice(1, len(STRINGS)),
        pa.array(["y", *STRINGS], pa.string_view()).slice(1),
        pa.array(["y", *STRINGS]).dictionary_encode().slice(1),
        pa.chunked_array([STRINGS[:3], [], STRINGS[3:]]),
        pa.chunked_array([pa.array(STRINGS[:3]).dictionary_encode(), pa.array(STRINGS[3:]).dictionary_encode()]),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3, None, 4, 5], pa.int8()),
            pa.array([text for text in STRINGS if text is not None], pa.string_view()),
        ),
        np.array(STRINGS, object),
        list(STRINGS),
        pd.Series(STRINGS),
        pd.Series(STRINGS, dtype="category"),
        pd.Series(STRINGS, dtype=object),
        pl.Series(STRINGS),
        pl.Series(STRINGS, dtype=pl.Categorical),
    ],
    ids=lambda array: f"{type(array).__module__}.{type(array).__name__}",
)
def test_strings_from_anywhere(array: Any) -> None:
    batch = Columns({"a": array})
    assert batch.rows() == [(text,) for text in STRINGS]
    assert str(batch["a"].type) in ("string", "large_string")
    assert Columns(batch.to_pandas()) == Columns(batch.to_polars()) == Columns(batch.to_arrow()) == batch


@pytest.mark.parametrize(
    "empty", [pa.chunked_array([], pa.string()), pl.Series([], dtype=pl.String), pa.array([], "string")]
)
def test_no_strings_from_anywhere(empty: Any) -> None:
    assert Columns({"a": empty}).rows() == [] and not isinstance(Columns({"a": empty})["a"], np.ndarray)


def test_strings_and_bytes_of_numpy() -> None:
    assert Columns({"a": np.array(["x", "grün"])}).rows() == [("x",), ("grün",)]
    assert Columns({"a": np.array(["x", "y"], np.dtypes.StringDType())}).rows() == [("x",), ("y",)]
    assert Columns({"a": np.array([b"x", b"\xff"])}).rows() == [(b"x",), (b"\xff",)]
    assert Columns({"a": [b"x", None]}).rows() == [(b"x",), (None,)]
    assert Columns({"a": pa.array([b"x"], pa.binary_view())}).rows() == [(b"x",)]


def test_arrow_numbers_in_pieces() -> None:
    assert Columns({"a": pa.chunked_array([[1, 2], [], [3]])}).rows() == [(1,), (2,), (3,)]
    assert Columns({"a": pa.array([9, 1, 2, 3]).slice(1, 2)}).rows() == [(1,), (2,)]
    assert Columns({"a": pa.array([5, 6, 5]).dictionary_encode()}).rows() == [(5,), (6,), (5,)]
    assert Columns({"a": pa.array([True, False, True]).slice(1)}).rows() == [(False,), (True,)]
    assert Columns({"a": pa.chunked_array([], pa.int16())})["a"].dtype == np.int16


def test_dates_of_all_kinds() -> None:
    day = datetime.date(2026, 3, 1)
    for dates in ([day], pa.array([day]), pa.array([day], pa.date64()), pl.Series([day])):
        assert Columns({"a": dates}).rows() == [(day,)]
    moment = datetime.datetime(2026, 3, 1, 12)
    aware = pa.array([moment], pa.timestamp("us", "Europe/Berlin"))
    assert Columns({"a": aware}).rows() == [(moment.replace(tzinfo=UTC).astimezone(BERLIN),)]
    assert Columns({"a": [moment]}).rows() == [(moment,)]
    assert Columns({"a": [datetime.timedelta(seconds=5)]}).rows() == [(datetime.timedelta(seconds=5),)]


def test_not_a_number_is_a_number_and_missing_is_not() -> None:
    values = np.array([1.0, np.nan])
    for frame in (pd.DataFrame({"a": values}), pl.DataFrame({"a": values}), pa.table({"a": values})):
        assert np.array_equal(Columns(frame)["a"], values, equal_nan=True)
    assert np.array_equal(Columns({"a": pd.Series(values)})["a"], values, equal_nan=True)
    missing = "column 'a' has 1 missing values, and a column of double has none"
    for column in (pa.array([1.0, None]), pl.Series([1.0, None]), pd.Series([1.0, None], dtype="Float64")):
        with pytest.raises(TypeError, match=missing):
            Columns({"a": column})


def test_pandas_frames_as_they_come() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "word": ["x", "y", None], 7: [True, False, True]})
    assert Columns(frame[frame["a"] > 1]).rows() == [(2, "y", False), (3, None, True)]  # without its index
    assert Columns(frame).names == ("a", "word", "7")
    with pytest.raises(ValueError, match=re.escape("columns must have different names: ['a', 'a']")):
        Columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert Columns({"n": [1]}).to_pandas().equals(pd.DataFrame({"n": [1]}))
    assert Columns({"n": [1]}).to_polars().equals(pl.DataFrame({"n": [1]}))


@pytest.mark.parametrize(
    "mask", [[True, False], pa.array([True, False]), pa.chunked_array([[True], [False]]), pd.Series([True, False])]
)
def test_masks_from_anywhere(mask: Any) -> None:
    assert Columns({"a": [1, 2]}).filter(mask).rows() == [(1,)]
    assert Columns({"a": [1, 2]}).filter(pl.Series([False, True])).rows() == [(2,)]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.time32("s")), "time32[s]"),
        (pa.array([1], pa.decimal128(5, 2)), "decimal128(5, 2)"),
        (pa.array([[1]]), "list<item: int64>"),
        (pa.array([{"x": 1}]), "struct<x: int64>"),
        (pa.array([None]), "null"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "month_day_nano_interval"),
        (pa.array([b"abc"], pa.binary(3)), "fixed_size_binary[3]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrow_types_that_are_no_columns(array: Any, kind: str) -> None:
    message = f"column 'a' holds {kind}; a column holds numbers, booleans, dates, time spans or strings"
    with pytest.raises(TypeError, match=re.escape(message)):
        Columns({"a": array})


def test_arrow_tables_with_a_name_twice() -> None:
    with pytest.raises(ValueError, match="columns must have different names"):
        Columns(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
