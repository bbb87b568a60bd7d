"""`Columns` does to columns what a list of tuples does to rows; every error says what was done."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.columns import Columns
from tests.columns.sampling import repeatable

words = st.text(max_size=4) | st.none()
rows_of_three = st.lists(st.tuples(st.integers(-9, 9), words, st.floats(allow_nan=False)), max_size=12)
NAMES = ("n", "word", "x")


def columns(rows: list[tuple[Any, ...]]) -> Columns:
    """Three columns of rows: numbers, strings with some missing, floats."""
    return Columns(
        {
            "n": np.array([row[0] for row in rows], np.int64),
            "word": pa.array([row[1] for row in rows], pa.string()),
            "x": np.array([row[2] for row in rows], np.float64),
        }
    )


@repeatable
@given(rows_of_three, st.data())
def test_parts_are_parts_of_the_list(rows: list[Any], data: st.DataObject) -> None:
    batch = columns(rows)
    assert batch.rows() == rows == list(batch) and len(batch) == len(rows) and batch.names == NAMES
    start, end = data.draw(st.integers(-15, 15)), data.draw(st.integers(-15, 15))
    assert batch.slice(start, end).rows() == rows[start:end]
    numbers = data.draw(st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=9)) if rows else []
    assert batch.take(numbers).rows() == [rows[n] for n in numbers]
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    assert batch.filter(np.array(mask, bool)).rows() == [row for row, keep in zip(rows, mask, strict=True) if keep]
    assert batch.select(["x", "n"]).rows() == [(x, n) for n, _, x in rows]
    assert batch.with_columns({"n": batch["n"] + 1, "y": batch["x"]}).rows() == [(n + 1, w, x, x) for n, w, x in rows]


@repeatable
@given(st.lists(rows_of_three, max_size=5))
def test_concat_is_one_list_after_the_other(parts: list[list[Any]]) -> None:
    joined = Columns.concat([columns(part) for part in parts])
    assert joined.rows() == [row for part in parts for row in part]


@repeatable
@given(rows_of_three, rows_of_three, st.integers(0, 20))
def test_equal_batches_have_equal_rows(left: list[Any], right: list[Any], at: int) -> None:
    assert (columns(left) == columns(right)) == (left == right)
    around = columns(left[:at] + right + left[at:]).slice(min(at, len(left)), min(at, len(left)) + len(right))
    assert around == columns(right)  # a slice of something larger is as good as another


def test_equality_looks_at_names_order_and_values() -> None:
    batch = Columns({"a": [1, 2], "b": ["x", None]})
    assert batch == Columns({"a": [1, 2], "b": ["x", None]})
    assert batch != Columns({"b": ["x", None], "a": [1, 2]})
    assert batch != Columns({"a": [1, 2]}) and batch != Columns({"a": [1, 3], "b": ["x", None]})
    assert batch != Columns({"a": [1], "b": ["x"]}) and batch != 5
    assert Columns({"a": [1]}) == Columns({"a": [1.0]}) and Columns({"a": [1]}) != Columns({"a": ["1"]})
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)


@pytest.mark.parametrize(
    "nothing", [np.array([np.nan]), np.array([complex(0, np.nan)]), np.array(["NaT"], "M8[s]"), np.array(["NaT"], "m8")]
)
def test_what_is_no_number_and_no_time_equals_itself(nothing: Any) -> None:
    assert Columns({"a": nothing}) == Columns({"a": nothing.copy()})
    assert Columns({"a": nothing}) != Columns({"a": np.zeros(1, nothing.dtype)})


def test_small_things() -> None:
    batch = Columns({"key": [1, 2, 3], "word": ["a", "b", "ä"]})
    assert "key" in batch and "other" not in batch
    assert repr(batch) == "<3 rows of key: int64, word: string>"
    assert batch.nbytes >= 24 + 4
    assert batch.columns is not batch.columns and batch.to_dict().keys() == {"key", "word"}
    assert batch.filter([True, True, True]) is batch
    assert len(Columns({})) == 0 and Columns({}).rows() == [] and Columns.concat([]) == Columns({})
    assert Columns.trusted({}, 2).rows() == [(), ()]
    assert Columns({3: [1]}).names == ("3",)
    assert Columns(batch) == batch


def test_slices_and_numbers_are_not_copied() -> None:
    numbers = np.arange(10)
    batch = Columns({"n": numbers})
    assert np.shares_memory(batch["n"], numbers) and np.shares_memory(batch.slice(2, 5)["n"], numbers)
    table = pa.table({"n": numbers})
    assert np.shares_memory(Columns(table)["n"], numbers)


def test_concat_keeps_the_order_of_the_first_and_wants_the_same_columns() -> None:
    first, second = Columns({"a": [1], "b": ["x"]}), Columns({"b": ["y"], "a": [2]})
    assert Columns.concat([first, second]).rows() == [(1, "x"), (2, "y")]
    with pytest.raises(ValueError, match=re.escape("batches have different columns: ('a', 'b') and ('a',)")):
        Columns.concat([first, Columns({"a": [1]})])


def test_empty_parts_have_no_say_in_the_type() -> None:
    nothing = Columns({"a": [], "b": []})
    some = Columns({"a": [1], "b": ["x"]})
    for parts in ([nothing, some], [some, nothing], [nothing, some, nothing]):
        joined = Columns.concat(parts)
        assert joined.rows() == [(1, "x")] and joined["a"].dtype == np.int64
    assert len(Columns.concat([nothing, nothing])) == 0


@pytest.mark.parametrize(
    ("left", "right", "kinds"),
    [
        ([1], ["x"], "int64 and string"),
        (["x"], [b"x"], "string and binary"),
        (np.array([2**63], np.uint64), [-1], "uint64 and int64"),
        (np.array([1], "M8[s]"), [1], "datetime64[s] and int64"),
    ],
)
def test_concat_of_unlike_columns_is_refused(left: Any, right: Any, kinds: str) -> None:
    message = f"column 'a' holds {kinds} in different batches: make them one type first"
    with pytest.raises(TypeError, match=re.escape(message)):
        Columns.concat([Columns({"a": left}), Columns({"a": right})])


def test_concat_of_like_columns_finds_the_type_for_both() -> None:
    strings = Columns.concat([Columns({"a": pa.array(["x"], kind)}) for kind in (pa.string(), pa.large_string())])
    assert strings.rows() == [("x",), ("x",)]
    binary = Columns.concat([Columns({"a": pa.array([b"x"], kind)}) for kind in (pa.large_binary(), pa.binary())])
    assert binary.rows() == [(b"x",), (b"x",)]
    numbers = Columns.concat([Columns({"a": np.array([1], kind)}) for kind in ("i1", "u4", "i8")])
    assert numbers["a"].dtype == np.int64 and numbers.rows() == [(1,)] * 3


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"a": [1], "b": [1, 2]}, ValueError, "columns must have one length: {'a': 1, 'b': 2}"),
        (iter([1]), TypeError, "not from list_iterator"),
        (5, TypeError, "columns are made from a mapping of names to arrays, or from anything with __arrow_c_stream__"),
        ({"a": 5}, TypeError, "column 'a' is 5; a column is an array or a list"),
        ({"a": "abc"}, TypeError, "column 'a' is 'abc'; a column is an array or a list"),
        ({"a": {1, 2}}, TypeError, "column 'a' is {1, 2}; a column is an array or a list"),
        ({"a": np.zeros((2, 2))}, ValueError, "column 'a' has 2 dimensions; a column has one"),
        ({"a": np.int64(1)}, ValueError, "column 'a' has 0 dimensions; a column has one"),
        ({"a": [[1, 2], [3, 4]]}, ValueError, "column 'a' has 2 dimensions; a column has one"),
        ({"a": [[0.5, 2.0**60]]}, ValueError, "column 'a' has 2 dimensions; a column has one"),
        ({"a": [[1], [1, 2]]}, ValueError, "column 'a' cannot be made from such a list"),
        ({"a": np.zeros(1, "i4,i4")}, TypeError, "column 'a' holds [('f0', '<i4'), ('f1', '<i4')]; a column holds"),
        ({"a": np.array([object()])}, TypeError, "column 'a' holds objects of Python (object); a column holds"),
        ({"a": [1, "x"]}, TypeError, "column 'a' has strings and other things"),
        ({"a": ["x", 1]}, TypeError, "column 'a' cannot be made from such a list"),
        ({"a": [2**63, -1]}, TypeError, "column 'a' has integers below 0 and from 2^63 on"),
        ({"a": [2**70]}, TypeError, "column 'a' has the integer 1180591620717411303424, and integers of columns have"),
        ({"a": [0.5, -(2**300)]}, TypeError, "column 'a' has the integer of 301 bits, and integers of columns"),
        ({"a": np.array([1, 2**64])}, TypeError, "column 'a' has the integer 18446744073709551616, and"),
        ({"a": [2**60 + 1, 0.5]}, ValueError, "floats, and the integer 1152921504606846977, which no float of 64"),
        ({"a": [0.5, np.int64(-(2**53) - 1)]}, ValueError, "the integer -9007199254740993, which no float"),
        ({"a": [1j, 2**53 + 1]}, ValueError, "the integer 9007199254740993, which no float of 64 bits is"),
        ({"a": [np.uint64(2**63), np.int64(-1)]}, TypeError, "integers below 0 and from 2^63 on"),
        ({"a": [1, None]}, TypeError, "column 'a' has 1 missing values, and a column of int64 has none: fill them in"),
        ({"a": [{}]}, TypeError, "column 'a' holds objects of Python (dict)"),
    ],
    ids=str,
)
def test_what_cannot_be_columns(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Columns(data)


def test_numbers_are_kept_where_a_float_holds_them() -> None:
    exact = [2.0**60, 0.5, -(2.0**53), float("inf")]
    assert Columns({"a": [2**60, 0.5, -(2**53), float("inf")]})["a"].tolist() == exact
    assert Columns({"a": [np.uint64(2**63 + 1), np.int64(1), True]})["a"].tolist() == [2**63 + 1, 1, 1]
    halves = Columns({"a": [0.5]})
    assert Columns.concat([Columns({"a": [2**60]}), halves])["a"].tolist() == [2.0**60, 0.5]
    for large in (2**53 + 1, -(2**60) - 1, 2**63 + 1):
        with pytest.raises(TypeError, match=r"column 'a' holds u?int64 and float64 in different batches: make them"):
            Columns.concat([Columns({"a": [large]}), halves])


def test_errors_of_a_batch() -> None:
    batch = Columns({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(KeyError, match="there is no column 'c'; there are a, b"):
        batch["c"]
    with pytest.raises(KeyError, match="there is no column 'c'"):
        batch.select(["a", "c"])
    for mask in ([True], [1, 0], pa.array([True, None]), np.ones((2, 1), bool)):
        with pytest.raises(TypeError, match="a mask has one boolean per row, 2 here, not "):
            batch.filter(mask)
    with pytest.raises(ValueError, match="columns must have one length"):
        batch.with_columns({"c": [1]})
    with pytest.raises(TypeError, match="column 'c' is 7"):
        batch.with_columns({"c": 7})


def test_rows_without_columns_are_refused() -> None:
    """They would vanish: a batch of no columns has no rows."""
    table = pa.table({"a": [1, 2]}).select([])
    for frame in (pd.DataFrame(index=range(5)), table):
        with pytest.raises(ValueError, match="rows has no column"):
            Columns(frame)
    assert len(Columns(pd.DataFrame())) == 0
