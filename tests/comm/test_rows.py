"""Rows and plain data as bytes: properties."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow.channels.binned import Binned
from dataflow.comm import codec
from dataflow.comm.rows import decode_rows, encode_rows
from tests.comm.values import Access, Bid, Checked, Color, Empty, Frozen, Kind, Level, Pair, Planet, same

repeatable = settings(
    derandomize=True, deadline=None, database=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)

numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=True) | st.booleans() | st.none()
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.binary(max_size=8)
dates = st.dates() | st.datetimes(timezones=st.none() | st.just(datetime.UTC)) | st.timedeltas()
others = st.decimals(allow_nan=False) | st.fractions() | st.uuids() | st.complex_numbers(allow_nan=False)
enums = st.sampled_from([*Color, *Level, *Kind, *Planet, *Access, Access.READ | Access.WRITE, Access(0)])
scalars = (
    st.builds(np.int32, st.integers(-(2**31), 2**31 - 1))
    | st.builds(np.uint64, st.integers(0, 2**64 - 1))
    | st.builds(np.float32, st.floats(width=32))
    | st.builds(np.bool_, st.booleans())
    | st.builds(np.str_, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5))
    | st.builds(lambda n: np.datetime64(n, "us"), st.integers(-(2**62), 2**62))
)
leaves = numbers | text | dates | others | enums | scalars
hashable = st.recursive(numbers | text | dates, lambda inner: st.tuples(inner, inner), max_leaves=4)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.builds(Bid, inner, inner, inner)
        | st.builds(Frozen, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Empty)
        | st.builds(Checked, st.integers(0, 5))
    )


values = st.recursive(leaves, _containers, max_leaves=8)


@st.composite
def batches_of_one_shape(draw: st.DrawFn) -> list[Any]:
    """What batches mostly are: rows of one shape."""
    columns = draw(st.lists(st.sampled_from([numbers, text, dates, enums, scalars, hashable]), min_size=1, max_size=3))
    wraps = [lambda *parts: parts, lambda *parts: Bid(parts, 1.0), lambda *parts: Pair(*parts[:1])]
    wrap = draw(st.sampled_from(wraps))
    return draw(st.lists(st.builds(wrap, *columns), max_size=5))


@repeatable
@given(values)
def test_a_value_comes_back_with_its_types(value: Any) -> None:
    assert same(codec.decode(codec.encode(value)), value)


@repeatable
@given(st.lists(values, max_size=5))
def test_rows_come_back_with_their_types(rows: list[Any]) -> None:
    assert same(decode_rows(encode_rows(rows)), rows)


@repeatable
@given(batches_of_one_shape())
def test_rows_of_one_shape_come_back_with_their_types(rows: list[Any]) -> None:
    assert same(decode_rows(encode_rows(rows)), rows)


@repeatable
@given(st.lists(values, max_size=3), st.data())
def test_a_damaged_batch_is_rows_or_a_value_error(rows: list[Any], data: st.DataObject) -> None:
    packed = bytearray(encode_rows(rows))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_rows(bytes(packed))
    except ValueError:
        return
    assert isinstance(decoded, list)


@settings(repeatable, max_examples=40)
@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.tuples(*[leaves] * n), min_size=1, max_size=3)))
def test_tuples_of_any_width(rows: list[Any]) -> None:
    assert same(decode_rows(encode_rows(rows)), rows)


@pytest.mark.parametrize("depth", [50, 1000])
def test_deep_rows_come_back_or_are_refused(depth: int) -> None:
    row: Any = 1
    for _ in range(depth):
        row = (row,)
    try:
        packed = encode_rows([row])
    except TypeError:
        assert depth > 50
        return
    assert decode_rows(packed) == [row]


def test_records_sorted_by_bins_come_back_with_them() -> None:
    for records in ([], ["a", "b", "c"], [("a", 1), ("b", 2), ("c", [3])], [(n, 1) for n in range(100)]):
        for ends in ([len(records)], [1, len(records)]) if records else ([],):
            back = decode_rows(encode_rows(Binned(records, [3, 5][: len(ends)], ends)))
            assert isinstance(back, Binned)
            assert (list(back), back.bins, back.ends) == (records, [3, 5][: len(ends)], ends)


@pytest.mark.parametrize(
    ("bins", "ends"),
    [
        ([1], []),
        ([], []),
        ([1, 2], [2, 2]),
        ([1, 2], [2, 1]),
        ([1, 2], [0, 3]),
        ([1, 2], [1, 4]),
        ([1, 2], [1, 2]),
        ([-1, 2], [1, 3]),
        ([True, 2], [1, 3]),
        ([1, 2], [1.0, 3]),
        (7, [3]),
        ([7], "x"),
        (["7"], [3]),
    ],
)
def test_bins_that_cannot_be_are_refused(bins: Any, ends: Any) -> None:
    with pytest.raises(ValueError, match=r"damaged rows: .*bin"):
        decode_rows(encode_rows(Binned(["a", "b", "c"], bins, ends)))


def test_a_refusal_names_the_value_and_is_not_a_book() -> None:
    with pytest.raises(TypeError, match="function") as caught:
        encode_rows([(1, {"k": test_tuples_of_any_width})])
    assert len(str(caught.value)) < 1000
    with pytest.raises(TypeError, match="cannot be sent"):
        encode_rows([range(2**20000)])  # whose representation is itself an error
    with pytest.raises(TypeError, match="cannot be sent") as caught:
        encode_rows([type("Long", (), {"__repr__": lambda _: "x" * 10_000})()])
    assert len(str(caught.value)) < 1000


def test_the_judge_tells_sets_and_dictionaries_apart() -> None:
    nan = float("nan")
    assert same({nan: 1}, {float("nan"): 1}) and same({nan, 1}, {1, float("nan")})
    assert not same({nan: 1}, {nan: 2}) and not same({1: 2, 3: 4}, {3: 4, 1: 2})
    assert not same({nan, 1}, {nan}) and not same({1}, {1.0}) and not same({nan, 1}, {nan, 2})
