"""The folds that tests share, each with its oracle: compiling one takes seconds, so there are few.

An oracle is a function of the records of one time, [(key, value columns...)], and of its own state, a dictionary; it
returns the rows that come out. It is written with Python's numbers and shares nothing with the fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import c_float
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from dataflow.state.folds.fold import Fold, fold
from dataflow.state.tables.table import Dense

FACTOR = 3
INFINITY = float("inf")
_TOP = 7  # names like these are used by the loop around the fold, too
_FIRST = np.int32(2)
WEIGHTS = (1, 10, 100)
State = dict[Any, Any]


def clamp(x, low=-FACTOR * 10, high=INFINITY):
    return min(max(x, low), high)


def double(x):
    return clamp(x * 2)


@fold(
    state={"total": "i8", "small": "i4", "tiny": "u1", "most": "f8", "slots": ("i4", 4), "seen": "b1"},
    output={"key": "i8", "wide": "i8", "most": "f4", "first": "b1", "slots": "i4", "narrow": "i2"},
    values={"price": "f8"},
)
def several(key, value, state):
    """Rows: two value columns, narrow and wide state, an array, constants and functions from outside."""
    first = not state.seen
    state.seen = True
    state.total += value.amount * FACTOR + _TOP
    state.small += 700_000_000 + _FIRST
    state.tiny += 1
    state.most = max(state.most, double(value.price))
    state.slots[value.amount % 4] += WEIGHTS[value.amount % 3]
    parts = sum([state.slots[i] * WEIGHTS[1] for i in range(len(state.slots))])
    return key, state.small * 1000 + state.tiny, state.most, first, parts, state.total * 1000


def single(number: float) -> float:
    """What is left of a float in 32 bits."""
    return c_float(number).value


def wrap(number: int, bits: int, signed: bool = True) -> int:
    """What is left of an integer in so many bits."""
    number %= 1 << bits
    return number - (1 << bits) if signed and number >= 1 << (bits - 1) else number


def several_oracle(records: list[Any], state: State) -> list[Any]:
    out = []
    for key, amount, price in records:
        first = key not in state
        s = state.setdefault(key, {"total": 0, "small": 0, "tiny": 0, "most": 0.0, "slots": [0] * 4})
        s["total"] = s["total"] + amount * 3 + 7
        s["small"] = wrap(s["small"] + 700_000_002, 32)
        s["tiny"] = wrap(s["tiny"] + 1, 8, signed=False)
        s["most"] = max(s["most"], price * 2, -30)
        s["slots"][amount % 4] += [1, 10, 100][amount % 3]
        narrow = single(s["most"])
        row = (key, s["small"] * 1000 + s["tiny"], narrow, first, sum(s["slots"]) * 10, wrap(s["total"] * 1000, 16))
        out.append(row)
    return out


@fold(state={"n": "i8", "last": "f4"}, output={"n": "i8"})
def crossing(key, value, state, time):
    """One value or none: when a multiple of ten is crossed."""
    before = state.n // 10
    state.n += value
    state.last = state.n / 7
    if state.n // 10 != before:
        return state.n * 1000 + time
    return None


def crossing_oracle(time: int, records: list[Any], state: State) -> list[Any]:
    out = []
    for key, value in records:
        before = state.get(key, 0)
        state[key] = before + value
        if state[key] // 10 != before // 10:
            out.append((state[key] * 1000 + time,))
    return out


@fold(
    state={"sum": "f8", "left": "u2", "over": "b1"},
    output={"key": "u8", "part": "f4", "up": "b1", "left": "u2"},
    values="f8",
    pending={"part": "f8", "left": "i4"},
)
def split(time, key, value, state, emit, later):
    """Several rows for a record, or none; and as many records for later."""
    state.sum += value
    for i in range(int(abs(value)) % 4):
        emit.row(key, value / (i + 1), value > 0, state.left - 1)
        later.at(time + 1 + i, value / (i + 1), i - 1)
    state.left += 1


@fold(state={"sum": "f8", "left": "u2", "over": "b1"}, output={"key": "u8", "part": "f4", "up": "b1", "left": "u2"},
      pending={"part": "f8", "left": "i4"}, forget="over")  # fmt: skip
def gather(time, key, value, state, emit):
    """What `split` put off: two columns, of the types that were post-dated. Keys are forgotten in the end."""
    state.sum -= value.part
    if value.left >= 1:
        emit.row(key, value.part, False, 100 + time)
    state.over = (key % 3 + time) % 3 == 0  # whichever of its records comes last


def split_oracle(time: int, records: list[Any], state: State, later: list[Any]) -> list[Any]:
    out = []
    for key, value in records:
        total, left = state.get(key, (0.0, 0))
        total += value
        for i in range(int(abs(value)) % 4):
            out.append((key % 2**64, single(value / (i + 1)), value > 0, wrap(left - 1, 16, signed=False)))
            later.append((time + 1 + i, key, value / (i + 1), i - 1))
        state[key] = (total, wrap(left + 1, 16, signed=False))
    return out


def gather_oracle(time: int, records: list[Any], state: State) -> list[Any]:
    out = []
    for key, part, left in records:
        total, count = state.get(key, (0.0, 0))
        state[key] = (total - part, count)
        if left >= 1:
            out.append((key % 2**64, single(part), False, wrap(100 + time, 16, signed=False)))
        if (key % 3 + time) % 3 == 0:
            del state[key]
    return out


@fold(state={"most": "u8", "n": "u4"}, output={"most": "u8", "n": "u8"}, values={"u": "u8"})
def unsigned(k, v, s):
    """Values from 2^63 on; the three parameters under names of their own; rows from both branches."""
    s.n += 1
    if v.u > s.most:
        s.most = v.u
        return v.u, s.n
    else:
        return s.most, s.n


def unsigned_oracle(records: list[Any], state: State) -> list[Any]:
    out = []
    for key, u in records:
        most, n = state.get(key, (0, 0))
        state[key] = (max(most, u), n + 1)
        out.append(state[key])
    return out


def counting(step: int) -> Fold:
    """A fold that closes over a number, over dense keys or any."""

    @fold(state={"n": "i8"}, output={"key": "i8", "n": "i8"})
    def count(key, state):
        state.n += step
        return (key, state.n)

    return count


TWO = counting(2)


def counting_oracle(records: list[Any], state: State) -> list[Any]:
    out = []
    for (key,) in records:
        state[key] = state.get(key, 0) + 2
        out.append((key, state[key]))
    return out


@dataclass(frozen=True)
class Case:
    """A fold, what it gets, and its oracle: (time, records, state, later) -> rows."""

    fold: Fold
    columns: dict[str, Callable[[Random], Any]]
    oracle: Callable[[int, list[Any], State, list[Any]], list[Any]]
    kinds: dict[str, str]
    alone: bool = False
    due: Fold | None = None
    due_oracle: Callable[[int, list[Any], State], list[Any]] | None = None
    dense: Dense | None = None


def _amount(chance: Random) -> int:
    return chance.randint(-20, 20)


def _price(chance: Random) -> float:
    return chance.choice([0.0, -1e9, 0.1, 1e300, math.pi, chance.uniform(-5, 5)])


def _unsigned(chance: Random) -> int:
    return chance.choice([0, 1, 2**63, 2**63 + 1, 2**64 - 1])


CASES: dict[str, Case] = {
    "several": Case(
        several, {"amount": _amount, "price": _price}, lambda t, r, s, p: several_oracle(r, s), {"price": "f8"}
    ),
    "crossing": Case(crossing, {"v": _amount}, lambda t, r, s, p: crossing_oracle(t, r, s), {}, alone=True),
    "split": Case(split, {"v": _price}, split_oracle, {"v": "f8"}, True, gather, gather_oracle),
    "unsigned": Case(unsigned, {"u": _unsigned}, lambda t, r, s, p: unsigned_oracle(r, s), {"u": "u8"}),
    "counting": Case(TWO, {}, lambda t, r, s, p: counting_oracle(r, s), {}),
    "counting dense": Case(TWO, {}, lambda t, r, s, p: counting_oracle(r, s), {}, dense=Dense(40)),
}
