"""Strings on the wire: what is sent arrives, and what a stranger makes up is a FrameError."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.columns import Columns
from dataflow.comm import codec
from dataflow.comm.columns import decode_columns, encode_columns
from dataflow.comm.frames import Frame, FrameError
from dataflow.comm.messages import Data
from dataflow.comm.wire import decode_messages, encode_messages
from tests.columns.sampling import repeatable

KINDS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
}
texts = st.lists(st.text(max_size=6) | st.none(), max_size=12)


def over(batch: Columns) -> Columns:
    """The batch on the other side, from bytes that nobody else looks at."""
    header, pieces = encode_messages([Data(0, 1, 2, 3, batch, len(batch))])
    body = memoryview(bytearray(b"".join(bytes(piece) for piece in pieces)))
    (message,) = decode_messages(Frame(header, body), 0)
    assert isinstance(message, Data) and isinstance(message.batch, Columns)
    return message.batch


@pytest.mark.parametrize("kind", KINDS)
@repeatable
@given(before=texts, values=texts, after=texts)
def test_slices_of_strings_arrive(kind: str, before: list[Any], values: list[Any], after: list[Any]) -> None:
    def encoded(text: str | None) -> Any:
        return text.encode() if text is not None and "binary" in kind else text

    whole = pa.array([encoded(text) for text in before + values + after], KINDS[kind])
    part = whole.slice(len(before), len(values))
    numbers = np.arange(len(values))
    arrived = over(Columns({"n": numbers, "text": part, "m": numbers.astype(np.int8)}))
    assert arrived.rows() == [(n, encoded(text), n) for n, text in enumerate(values)]
    assert str(arrived["text"].type) == kind


def test_several_columns_of_strings_with_and_without_missing_ones() -> None:
    batch = Columns(
        {
            "a": ["x", "y"],
            "b": [None, "grün"],
            "c": [1, 2],
            "d": [None, "z"],
            "e": ["", ""],
        }
    )
    assert over(batch) == batch and over(over(batch)) == batch
    assert over(batch.slice(1, 2)).rows() == [("y", "grün", 2, "z", "")]
    nothing = over(batch.slice(2, 2))
    assert nothing.names == batch.names and len(nothing) == 0 and Columns.concat([nothing, batch]) == batch


def test_a_small_part_of_a_large_column_is_sent_alone() -> None:
    whole = Columns({"text": ["some text or other"] * 100_000})
    for part in (whole.slice(0, 10), whole.slice(50_000, 50_010)):
        buffers: list[Any] = []
        encode_columns(part, buffers)
        assert sum(map(len, buffers)) < 1000
        assert over(part) == part


def test_arrived_columns_can_be_used_and_sent_on() -> None:
    batch = over(Columns({"k": [3, 1, 2], "word": ["c", None, "a"]}))
    assert batch.take(np.array([2, 0])).rows() == [(2, "a"), (3, "c")]
    assert over(batch.filter(batch["k"] > 1)).rows() == [(3, "c"), (2, "a")]
    assert batch.to_arrow().to_pydict() == {"k": [3, 1, 2], "word": ["c", None, "a"]}


# Strangers. The buffers of ["ab", "c"] are: nothing (no value is missing), offsets 0 2 3, and "abc".

OFFSETS = np.array([0, 2, 3], np.int32).tobytes()
GOOD = [2, ["text", "string", [False, True, True]]]


def frame(shapes: Any, *buffers: bytes, first: Any = 0) -> Frame:
    body = b"".join(buffer + bytes(-len(buffer) % 16) for buffer in buffers)
    header = codec.encode([[len(buffer) for buffer in buffers], [[2, 1, 2, 3, 2, first, 1, shapes]]])
    return Frame(header, memoryview(bytearray(body)))


def test_the_good_one_is_good() -> None:
    (message,) = decode_messages(frame(GOOD, OFFSETS, b"abc"), 0)
    assert isinstance(message, Data) and list(message.batch) == [("ab",), ("c",)]


def offsets(*numbers: int, kind: Any = np.int32) -> bytes:
    return np.array(numbers, kind).tobytes()


HOSTILE: dict[str, Frame] = {
    "offsets beyond the bytes": frame(GOOD, offsets(0, 2, 4), b"abc"),
    "offsets far beyond the bytes": frame(GOOD, offsets(0, 2, 2**31 - 1), b"abc"),
    "negative offsets": frame(GOOD, offsets(-5, 2, 3), b"abc"),
    "offsets backwards": frame(GOOD, offsets(0, 3, 1), b"abc"),
    "too few offsets": frame(GOOD, offsets(0, 2), b"abc"),
    "no offsets": frame(GOOD, b"", b"abc"),
    "offsets left out": frame([2, ["text", "string", [False, False, True]]], b"abc"),
    "bytes left out": frame([2, ["text", "string", [False, True, False]]], OFFSETS),
    "everything left out": frame([2, ["text", "string", [False, False, False]]]),
    "text that is none": frame(GOOD, OFFSETS, b"\xff\xfe\xfd"),
    "half a character": frame(GOOD, offsets(0, 1, 2), "ä".encode()),
    "wide offsets in a narrow buffer": frame([2, ["text", "large_string", [False, True, True]]], OFFSETS, b"abc"),
    "a mask that is too short": frame([2, ["text", "string", [True, True, True]]], b"", OFFSETS, b"abc"),
    "more rows than there are": frame([3, *GOOD[1:]], OFFSETS, b"abc"),
    "very many rows": frame([2**62, *GOOD[1:]], OFFSETS, b"abc"),
    "too many rows for anybody": frame([2**64 - 1, *GOOD[1:]], OFFSETS, b"abc"),
    "a negative number of rows": frame([-1, *GOOD[1:]], OFFSETS, b"abc"),
    "no number of rows": frame([None, *GOOD[1:]], OFFSETS, b"abc"),
    "rows that are true": frame([True, *GOOD[1:]], OFFSETS, b"abc"),
    "a type of another kind": frame([2, ["text", "int64", [False, True, True]]], OFFSETS, b"abc"),
    "a type that Arrow knows": frame([2, ["text", "string_view", [False, True, True]]], OFFSETS, b"abc"),
    "a type that is none": frame([2, ["text", ["string"], [False, True, True]]], OFFSETS, b"abc"),
    "two buffers": frame([2, ["text", "string", [True, True]]], OFFSETS, b"abc"),
    "four buffers": frame([2, ["text", "string", [False, True, True, True]]], OFFSETS, b"abc", b"d"),
    "a layout of numbers": frame([2, ["text", "string", [9, 9, 9]]], OFFSETS, b"abc"),
    "a layout that is one number": frame([2, ["text", "string", 3]], OFFSETS, b"abc"),
    "a buffer that is not there": frame([2, ["text", "string", [True, True, True]]], OFFSETS, b"abc"),
    "buffers of others": frame(GOOD, OFFSETS, b"abc", first=7),
    "a name that is a list": frame([2, [["text"], "string", [False, True, True]]], OFFSETS, b"abc"),
    "numbers of another length": frame([2, ["n", "<i8", 1]], bytes(24)),
    "shapes that are none": frame(None),
    "shapes of nothing": frame([]),
    "a column of nothing": frame([2, []], OFFSETS, b"abc"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_stranger_makes_up_is_a_frame_error(name: str) -> None:
    with pytest.raises(FrameError, match="worker 5 sent a frame that makes no sense"):
        decode_messages(HOSTILE[name], 5)


def test_random_damage_is_an_error_or_strings() -> None:
    """Whatever offsets and bytes say: an exception, or an array whose every value can be looked at."""
    outcomes = set()
    for seed in range(1500):
        chance = Random(seed)
        values = [chance.choice(["", "ab", "grün", None]) for _ in range(chance.randint(0, 6))]
        kind = chance.choice(list(KINDS.values())[:2])
        buffers: list[Any] = []
        shapes = encode_columns(Columns({"a": pa.array(values, kind)}), buffers)
        damaged = [bytearray(bytes(buffer)) for buffer in buffers]
        for _ in range(chance.randint(1, 3)):
            target = chance.choice(damaged) if damaged else bytearray()
            if target and chance.random() < 0.8:
                target[chance.randrange(len(target))] = chance.randrange(256)
            elif target:
                del target[chance.randrange(len(target)) :]
            else:
                shapes[0] = chance.randint(0, 9)
        try:
            got = decode_columns(shapes, map(memoryview, damaged))
        except Exception as error:
            outcomes.add(type(error).__name__)
            continue
        assert all(value is None or isinstance(value, str) for (value,) in got.rows())
        outcomes.add("strings")
    assert "strings" in outcomes and len(outcomes) > 1
