"""Plain data comes back as what it was; bytes that are none are refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.comm.codec import decode, encode
from tests.engine.harness import repeatable

keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = keys | st.tuples(keys) | st.tuples(keys, keys) | st.frozensets(keys, max_size=3)
plain = st.recursive(
    keys,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with its types, all the way down: 1, 1.0 and True are equal, and not the same."""
    if isinstance(value, list | tuple):
        return type(value), [shape(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(shape(item)) for item in value)
    if isinstance(value, dict):
        return dict, [(shape(k), shape(v)) for k, v in value.items()]
    return type(value), repr(value)


@repeatable
@given(plain)
def test_round_trip(value: Any) -> None:
    assert shape(decode(encode(value))) == shape(value)


@pytest.mark.parametrize(
    "value",
    [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**100, -(10**100), float("inf"), -0.0, "\x00", b"\xff" * 300,
     (), set(), frozenset(), {}, [], ((),), {(1, 2): {3: (4,)}}, [None] * 20, "x" * 70_000],
    ids=lambda v: repr(v)[:20],
)  # fmt: skip
def test_edges(value: Any) -> None:
    assert shape(decode(encode(value))) == shape(value)


def test_nan() -> None:
    assert repr(decode(encode(float("nan")))) == "nan"


class Opaque:
    pass


@pytest.mark.parametrize("value", [Opaque(), object(), print, lambda: 0, [1, (2, {3: Opaque()})], iter([]), range(3)])
def test_what_is_no_plain_data_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=r"(Opaque|object|function|builtin|iterator|range)"):
        encode(value)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x92\x01", b"\x01\x02", b"\xc7\x01\x7f\x00", b"\xd9\x05ab", b"\xa1\xff"]
)
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode(data)


@repeatable
@given(st.binary(max_size=60))
def test_garbage_is_a_value_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        decode(data)


@repeatable
@given(plain, st.data())
def test_a_damaged_byte_is_a_value_or_a_value_error(value: Any, data: Any) -> None:
    packed = bytearray(encode(value))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        decode(bytes(packed))


@pytest.mark.parametrize("code", range(1, 40))
@pytest.mark.parametrize("inner", [5, [[1]], "text", None, [1, 2, 3, 4], b"bytes", {}], ids=repr)
def test_an_extension_with_the_wrong_content_is_a_value_or_a_value_error(code: int, inner: Any) -> None:
    with suppress(ValueError):
        decode(msgpack.packb(msgpack.ExtType(code, msgpack.packb(inner))))


ROUND_TRIP = """
from dataflow.comm.codec import decode, encode
value = ()
for _ in range({depth}):
    value = (value,)
try:
    assert decode(encode(value)) == value
except (TypeError, ValueError, RecursionError):
    pass
"""


@pytest.mark.parametrize(
    "depth",
    [
        100,
        250,
        10_000,
    ],
)
def test_deep_nesting_comes_back_or_is_refused_and_kills_nobody(depth: int) -> None:
    code = ROUND_TRIP.format(depth=depth)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_string_that_is_no_unicode_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        encode("\ud800")
