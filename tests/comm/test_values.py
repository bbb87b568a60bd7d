"""Values that travel arrive alike, or are refused by name: between workers, to the caller and with a bin."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.comm import codec
from dataflow.comm.rows import decode_rows, encode_rows
from dataflow.state.stores.portions import Address, Arriving, depart
from tests.comm.alike import alike
from tests.comm.family import ALIKE, BERLIN, REFUSED, Box, Computed, Frozen, Holder, Plain, Slots
from tests.comm.test_rows import repeatable


def by_codec(value: Any) -> Any:
    return codec.decode(codec.encode(value))


def by_rows(value: Any) -> Any:
    return decode_rows(encode_rows([value] * 3))[1]


def by_tuples(value: Any) -> Any:
    return decode_rows(encode_rows([(1, value), (2, value)]))[0][1]


def by_records(value: Any) -> Any:
    return decode_rows(encode_rows([Slots(1, value), Slots(2, value)]))[1].b


def by_mixture(value: Any) -> Any:
    return decode_rows(encode_rows([None, [value], {"k": value}]))[2]["k"]


def by_bin(value: Any) -> Any:
    """As the state of a key in a bin that moves, in pieces."""
    arriving = Arriving()
    for piece in depart(Address(3), {"key": value}, {5: [(0, value)]}, limit=100):
        arriving.add(piece)
    assert alike(arriving.pending, [(5, [(0, value)])])
    return arriving.state["key"]


WAYS = [by_codec, by_rows, by_tuples, by_records, by_mixture, by_bin]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_values_arrive_alike(way: Any) -> None:
    different = [value for value in ALIKE if not alike(way(value), value)]
    assert different == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_cannot_travel_is_refused_by_its_name_and_with_advice(way: Any) -> None:
    for value, name in REFUSED:
        with pytest.raises(TypeError, match=name) as caught:
            way(value)
        message = str(caught.value)
        assert "sent" in message and len(message) < 1000
        assert re.search(r"(?i)send|use |define|have ", message), message


def test_the_judge_sees_every_difference() -> None:
    """No two values of the family are alike."""
    pairs = [(a, b) for i, a in enumerate(ALIKE) for b in ALIKE[:i] if alike(a, b)]
    assert pairs == []
    assert not alike(np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2]))
    moment = datetime.datetime(2026, 3, 1, tzinfo=BERLIN)
    assert not alike(moment, moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    assert not alike(moment.replace(fold=1), moment)
    changed = Computed(2.5)
    changed.cents = 1
    assert not alike(changed, Computed(2.5)) and alike(Computed(2.5), Computed(2.5))
    assert not alike(np.longlong(1), np.int64(1)) and not alike(np.zeros(1, ">i4"), np.zeros(1, "<i4"))
    assert not alike(np.zeros((2, 1)), np.zeros((1, 2))) and not alike(bytearray(b"x"), b"x") and not alike(1, True)


family = [*ALIKE, *(value for value, _ in REFUSED)]
members = st.integers(0, len(family) - 1).map(lambda number: family[number])
nested = st.recursive(
    members,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2)
        | st.builds(Plain, inner, inner)
        | st.builds(Slots, inner, inner)
        | st.builds(Frozen, inner)
        | st.builds(Box, inner)
    ),
    max_leaves=4,
)


@settings(repeatable, max_examples=300)
@given(st.lists(nested, max_size=3))
def test_alike_or_refused_however_they_are_nested(rows: list[Any]) -> None:
    try:
        packed = encode_rows(rows), codec.encode(rows)
    except TypeError as error:
        if not any(re.search(name, str(error)) for _, name in REFUSED):
            raise
        return
    assert alike(decode_rows(packed[0]), rows) and alike(codec.decode(packed[1]), rows)


def test_a_refusal_says_which_attribute_it_was() -> None:
    with pytest.raises(TypeError, match=r"It is the attribute 'lock' of a Holder\."):
        codec.encode({"x": [Holder(1)]})


def test_cycles_are_refused() -> None:
    ring: list[Any] = []
    ring += [ring, ring]
    loop = Plain(1)
    loop.b = loop  # type: ignore[assignment]
    for value in (ring, {"k": ring}, (ring,), loop):
        with pytest.raises(TypeError, match="cannot be sent"):
            encode_rows([value])


def test_zones_that_are_none_are_refused_where_they_arrive() -> None:
    data = codec.encode(BERLIN)
    for key in (b"../../../../x", b"Nowhere/Town1", b"Europe.Berlin"):
        bad = data.replace(b"Europe/Berlin", key.ljust(13, b"x")[:13])
        with pytest.raises(ValueError, match="zone"):
            codec.decode(bad)


def test_a_time_of_day_stays_two_days_later_in_its_zone() -> None:
    """What the issue saw: over the change of the clocks a fixed offset is an hour off."""
    moment = datetime.datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    arrived = by_tuples(moment) + datetime.timedelta(days=2)
    assert arrived.utcoffset() == datetime.timedelta(hours=2) and arrived.tzinfo is BERLIN
