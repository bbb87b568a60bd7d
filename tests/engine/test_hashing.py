"""stable_hash: alike in every process, and alike for equal keys."""

from __future__ import annotations

import datetime
import enum
import os
import subprocess
import sys
import uuid
from collections import Counter, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import UnstableKey
from dataflow.lowlevel import stable_hash
from tests.engine.harness import repeatable


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Word(enum.StrEnum):
    FOX = "fox"


Point = namedtuple("Point", ["x", "y"])
UTC = datetime.UTC
PARIS = datetime.timezone(datetime.timedelta(hours=1))
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12)

KEYS: list[Any] = [
    0, 1, -1, 2**63, -(2**70), 1.5, -0.25, True, None, "", "fox", "naïve", "\ud800", b"", b"fox",
    (), (1,), ("fox", (2, None)), frozenset(), frozenset({1, "a"}), Colour.RED, Level.HIGH, Flag.A | Flag.B, Word.FOX,
    Point(1, 2), Decimal("1.5"), Fraction(1, 3), 1 + 2j, DAY, NOON, NOON.replace(tzinfo=UTC), uuid.UUID(int=7),
    float("inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    "keys",
    [
        [1, 1.0, True, Decimal(1), Fraction(1), Level.LOW, Flag.A, 1 + 0j],
        [0, 0.0, -0.0, False, Decimal(0)],
        [2**70, float(2**70), Decimal(2**70)],
        [-1, -1.0, Decimal(-1), Fraction(-1)],
        [float("inf"), Decimal("inf")],
        [0.5, Fraction(1, 2), Decimal("0.5")],
        ["fox", Word.FOX],
        [(1, 2), (1.0, True + 1), Point(1, 2)],
        [(Level.LOW, "fox"), (1, Word.FOX)],
        [frozenset({1, 2, 3}), frozenset({3.0, 2, True})],
        [NOON.replace(tzinfo=UTC), NOON.replace(hour=13, tzinfo=PARIS)],
    ],
    ids=repr,
)
def test_equal_keys_hash_alike(keys: list[Any]) -> None:
    assert all(key == keys[0] for key in keys), "the test itself"
    assert len({stable_hash(key) for key in keys}) == 1


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_hash_is_an_integer(key: Any) -> None:
    assert type(stable_hash(key)) is int


def test_integers_are_their_own_hash() -> None:
    assert [stable_hash(n) for n in (0, 1, -7, 2**80)] == [0, 1, -7, 2**80]


def test_hashes_are_alike_in_every_process() -> None:
    code = "from tests.engine.test_hashing import *\nprint([stable_hash(key) for key in KEYS])"
    for salt in ("0", "1", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": salt}
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert out.stdout.strip() == repr([stable_hash(key) for key in KEYS])


def test_these_never_change() -> None:
    """Keys are routed by these on every host, and stored by them: a change loses state."""
    assert [stable_hash(key) for key in ("fox", b"fox", -1, None, 0.5)] == [262201574, 262201574, -1, 0, 2**60]


class Opaque:
    """What has only Python's own hash."""


@pytest.mark.parametrize(
    "key", [Opaque(), Opaque, len, [1], {1}, {1: 2}, (1, [2]), frozenset({Opaque()}), datetime.timedelta(1), object()]
)
def test_other_keys_are_refused_with_advice(key: Any) -> None:
    with pytest.raises(UnstableKey, match=r"no hash that is alike in every process.*Use numbers, strings") as failure:
        stable_hash(key)
    assert isinstance(failure.value, TypeError)


def test_nan_hashes_alike_though_it_is_not_equal_to_itself() -> None:
    assert stable_hash(float("nan")) == stable_hash(float("nan")) == stable_hash(Decimal("nan"))


@pytest.mark.parametrize("number", [-1, 2**70])
def test_complex_numbers_hash_like_the_integers_that_they_equal(number: int) -> None:
    assert complex(number) == number and stable_hash(complex(number)) == stable_hash(number)


def test_an_enum_that_is_a_date_hashes_like_the_date() -> None:
    class Holiday(datetime.date, enum.Enum):
        LEAP = 2024, 2, 29

    assert Holiday.LEAP == DAY and stable_hash(Holiday.LEAP) == stable_hash(DAY)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.dates(),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)


@repeatable
@given(plain, plain)
def test_equality_implies_equal_hashes(one: Any, other: Any) -> None:
    assert stable_hash(one) == stable_hash(one)
    if one == other:
        assert stable_hash(one) == stable_hash(other)


@pytest.mark.parametrize("peers", [2, 3, 8])
@pytest.mark.parametrize("make", [str, lambda n: (n, n), lambda n: (0, str(n)), lambda n: f"user-{n:05}"])
def test_keys_are_spread_over_the_workers(make: Any, peers: int) -> None:
    shares = Counter(stable_hash(make(n)) % peers for n in range(4000))
    assert min(shares[p] for p in range(peers)) > 0.8 * 4000 / peers
