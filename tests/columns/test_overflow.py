"""Integers never wrap around in silence: sums are right or an error, columns enter folds as they are or not at all."""

from __future__ import annotations

import re
from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import pytest

import dataflow
from dataflow.columns import Columns
from dataflow.columns.arithmetic import add, fits, multiply, subtract
from dataflow.columns.conversions import as_kind
from dataflow.columns.grouping import Aggregates
from dataflow.state.folds.fold import fold
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.tables.table import Dense
from dataflow.testing import simulate
from tests.columns.running import row, run

MOST, LEAST = 2**63 - 1, -(2**63)


def in_parts(values: Any, keys: Any, seed: int) -> Columns:
    """Sums and means by key, of partials that were dealt at random and merged in two steps."""
    plan = Aggregates(("k",), {"total": ("sum", "n"), "mean": ("mean", "n")})
    dealt = np.random.default_rng(seed).integers(0, 4, len(values))
    partials = [plan.partial(Columns({"k": keys[dealt == i], "n": values[dealt == i]})) for i in range(4)]
    return plan.finish(plan.merge([plan.merge(partials[:2]), plan.merge(partials[2:])]), "sums at 7")


@pytest.mark.parametrize("kind", ["i8", "u8", "i4", ">i8"])
def test_sums_by_group_are_right_or_an_error_whoever_had_which_rows(kind: str) -> None:
    limits = np.iinfo(np.uint64 if kind == "u8" else np.int64)
    outcomes = set()
    for seed in range(60):
        chance = Random(seed)
        own = np.iinfo(np.dtype(kind))
        near = [0, 1, own.max, own.min, own.max // 2, own.max // 3, own.min // 2]
        numbers = [chance.choice(near) for _ in range(chance.randint(1, 12))]
        keys = np.array([chance.randint(0, 1) for _ in numbers])
        totals: dict[int, int] = defaultdict(int)
        for key, number in zip(keys.tolist(), numbers, strict=True):
            totals[key] += number
        fits_in = all(limits.min <= total <= limits.max for total in totals.values())
        outcomes.add(fits_in)
        if fits_in:
            got = {k: (total, mean) for k, total, mean in in_parts(np.array(numbers, kind), keys, seed).rows()}
            counts = {k: (keys == k).sum() for k in totals}
            assert got == {k: (total, pytest.approx(total / counts[k], rel=1e-15)) for k, total in totals.items()}
        else:
            with pytest.raises(
                OverflowError, match=r"sums at 7: the sum of column 'n' for k=[01] is -?[0-9]+, which u?int"
            ):
                in_parts(np.array(numbers, kind), keys, seed)
    assert outcomes == ({True} if kind == "i4" else {True, False})


def test_a_sum_that_does_not_fit_names_operator_column_group_and_time() -> None:
    epochs = [[], [{"k": 5, "n": MOST}, {"k": 5, "n": 1}, {"k": 6, "n": 1}]]
    says = "totals at 1: the sum of column 'n' for k=5 is 9223372036854775808, which int64 cannot hold: make the column"
    with pytest.raises(OverflowError, match=re.escape(says)):
        run(1, lambda s: s.columns.aggregate("k", total=("sum", "n"), name="totals"), epochs)
    with pytest.raises(
        OverflowError, match=re.escape("tumbling at 10: the sum of column 'n' for window_end=10, k=5 is")
    ):
        run(1, lambda s: s.columns.tumbling("k", 10, "k", total=("sum", "n")), epochs)


def test_what_overflows_on_one_worker_and_not_in_all_is_right() -> None:
    epochs = [[{"k": 1, "n": n} for n in (MOST, MOST, LEAST, LEAST, 1, 1, 5)]]
    for seed in range(4):
        assert run(seed, lambda s: s.columns.aggregate("k", t=("sum", "n")), epochs) == {(0, row(k=1, t=5)): 1}


def test_columns_may_be_called_anything() -> None:
    batch = Columns({"n": [1, 2], "n upper": [5, 5], "n sum": [7, 7]})
    plan = Aggregates(("n upper",), {"n": ("sum", "n"), "n upper sum": ("sum", "n upper")})
    assert plan.finish(plan.merge([plan.partial(batch)]), "here").rows() == [(5, 3, 10)]


def test_a_mean_is_right_where_the_sum_would_not_fit() -> None:
    plan = Aggregates((), {"mean": ("mean", "n")})
    merged = plan.merge([plan.partial(Columns({"n": np.array([MOST, MOST, MOST - 3])}))])
    assert plan.finish(merged, "here").rows() == [(pytest.approx(float(MOST - 1)),)]


def test_sums_of_time_spans_do_not_wrap() -> None:
    plan = Aggregates((), {"total": ("sum", "d")})
    half = np.array([2**62, 2**62], "m8[ns]")
    with pytest.raises(OverflowError, match=re.escape("the sum of column 'd' is more than timedelta64[ns] can hold")):
        plan.partial(Columns({"d": half}))
    spans = np.array([1, "NaT", 3], "m8[s]")
    assert plan.finish(plan.partial(Columns({"d": spans})), "here")["total"].tolist() == [None]
    assert plan.finish(plan.partial(Columns({"d": spans[::2]})), "here")["total"].tolist() == [spans[0].item() * 4]
    with pytest.raises(
        TypeError, match=re.escape("column 'd' holds datetime64[s], of which there is neither a sum nor")
    ):
        plan.partial(Columns({"d": np.array([1], "M8[s]")}))


# ------------------------------------------------------------------------------------------- into folds


def keep(key: int, value: Any, state: Any) -> tuple[Any, Any]:
    """The value as the fold sees it."""
    state.n += 1
    return key, value


def entering(column: Any, kind: str, compiled: bool = False) -> list[Any]:
    """What a fold that takes `kind` gets of a column."""
    used = fold(keep, state={"n": "i8"}, output={"k": "i8", "v": kind}, values=kind, compiled=compiled)
    operator = FoldStore("keep", [Side("k", "v", used)], None, 4, None)
    batch = Columns({"k": np.zeros(len(column), np.int64), "v": column})
    return [value for out in operator.run(0, [[batch]]) for value in out["v"].tolist()]


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (
            np.array([1, 2**64 - 1], "u8"),
            "i8",
            "keep: column 'v' is uint64, and 18446744073709551615 cannot be told as",
        ),
        (np.array([2**63], "u8"), "i8", "declare it as 'u8'"),
        (np.array([2**53 + 1]), "f8", "column 'v' is int64, and 9007199254740993 cannot be told as float64"),
        (np.array([-(2**53) - 1]), "f8", "column 'v' is int64, and -9007199254740993 cannot be told as float64"),
        (np.array([2**63 - 1]), "f8", "9223372036854775807 cannot be told as float64"),
        (np.array([2**64 - 1], "u8"), "f8", "18446744073709551615 cannot be told as float64"),
        (np.array([1 + np.finfo("g").eps], "g"), "f8", "cannot be told as float64"),
        (np.array(["NaT", 1], "M8[ns]"), "i8", "has values that are not a time (NaT)"),
    ],
)
def test_values_that_would_change_are_refused(column: Any, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        entering(column, kind)


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (np.array([-1]), "u8", "keep: column 'v' is int64, and the fold takes uint64: make it unsigned"),
        (np.array([1.5]), "i8", "keep: column 'v' is float64, and the fold takes int64: say values={'v': 'f8'}"),
        (np.array([np.nan], "f4"), "i8", "keep: column 'v' is float32, and the fold takes int64"),
        (np.array([1j]), "f8", "keep: column 'v' is complex128, and the fold takes float64"),
        (np.array([1], "M8[s]"), "f8", "keep: column 'v' is datetime64[s], and the fold takes float64"),
    ],
)
def test_types_that_would_change_values_are_refused(column: Any, kind: str, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        entering(column, kind)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_stays_the_same_is_accepted(compiled: bool) -> None:
    assert entering(np.array([0, MOST], "u8"), "i8", compiled) == [0, MOST]
    assert entering(np.array([0, 2**64 - 1], "u8"), "u8", compiled) == [0, 2**64 - 1]
    assert entering(np.array([2**53, -(2**53), 2**60, LEAST]), "f8", compiled) == [
        2.0**53,
        -(2.0**53),
        2.0**60,
        -(2.0**63),
    ]
    assert entering(np.array([-3, 3], "i1"), "i8", compiled) == [-3, 3]
    assert entering(np.array([0.5, np.nan, np.inf], "f4"), "f8", compiled)[::2] == [0.5, np.inf]


@pytest.mark.parametrize("seed", range(3))
def test_integers_become_floats_exactly_or_not_at_all(seed: int) -> None:
    chance = Random(seed)
    for _ in range(300):
        kind = chance.choice(["i8", "u8"])
        limits = np.iinfo(kind)
        number = chance.choice([limits.max, limits.min, 1 << 53]) + chance.choice([0, 1, -1, chance.getrandbits(12)])
        number = min(max(number >> chance.randint(0, 4) << chance.randint(0, 4), int(limits.min)), int(limits.max))
        column = np.array([number], kind)
        if int(float(number)) == number:
            assert as_kind(column, np.dtype("f8"), "x", "v")[0] == number
        else:
            with pytest.raises(ValueError, match="cannot be told"):
                as_kind(column, np.dtype("f8"), "x", "v")


# -------------------------------------------------------------------------------------------------- keys


def count_keys(*keys: Any, dense: Dense | None = None) -> list[Any]:
    used = fold(keep, state={"n": "i8"}, output={"k": "i8", "v": "i8"}, compiled=False)
    operator = FoldStore("keep", [Side("k", "v", used)], None, 4, dense)
    for column in keys:
        operator.run(0, [[Columns({"k": column, "v": np.zeros(len(column), np.int64)})]])
    return sorted(operator.table.read().rows())


def test_minus_one_and_the_largest_unsigned_key_are_not_one_key() -> None:
    signed, unsigned = np.array([-1, 5]), np.array([2**64 - 1, 5], np.uint64)
    assert len(count_keys(signed)) == len(count_keys(unsigned)) == 2
    assert len(count_keys(signed, np.array([5, 6], np.uint64), np.array([7, 8]))) == 5
    for mixed in ((signed, unsigned), (unsigned, signed), (np.array([5]), unsigned, signed)):
        with pytest.raises(ValueError, match="keep: the key 'k' is uint64 in some batches and signed in others"):
            count_keys(*mixed)
    joining = JoinStore("join", ("k", "k"), (["x"], ["y"]), None, 4)
    joining.run(0, [[Columns({"k": signed, "x": [1, 2]})], []])
    with pytest.raises(ValueError, match="join: the key 'k' is uint64 in some batches and signed in others"):
        joining.run(1, [[], [Columns({"k": unsigned, "y": [1, 2]})]])


@pytest.mark.parametrize("bad", [np.array([8]), np.array([-1]), np.array([2**64 - 1], np.uint64)])
def test_dense_keys_outside_of_the_domain_are_refused(bad: Any) -> None:
    assert (1, 1) in [r[:2] for r in count_keys(np.array([True, False]), dense=Dense(8))]
    with pytest.raises(ValueError, match="8"):
        count_keys(bad, dense=Dense(8))


def test_keys_that_are_no_integers_are_refused() -> None:
    for column in (np.array([1.0]), np.array([np.nan]), np.array([1j])):
        with pytest.raises(TypeError, match="cannot be a key"):
            count_keys(column)


# ------------------------------------------------------------------------------- what folds can say themselves


def total(key: int, value: int, state: Any) -> int:
    """A sum that raises."""
    state.total = add(state.total, value)
    state.small = fits(state.small + 1, 8)
    return state.total


@pytest.mark.parametrize("compiled", [False, True])
def test_checked_arithmetic_in_a_fold(compiled: bool) -> None:
    used = fold(total, state={"total": "i8", "small": "i1"}, output={"total": "i8"}, compiled=compiled)
    operator = FoldStore("totals", [Side("k", "n", used)], None, 4, None)
    operator.run(3, [[Columns({"k": [1, 1], "n": [MOST - 1, 1]})]])
    with pytest.raises(OverflowError, match="a sum of integers is beyond 64 bits") as caught:
        operator.run(4, [[Columns({"k": [2, 1], "n": [1, 1]})]])
    assert any(re.fullmatch("in totals, for the key 1, in bin . at 4", note) for note in caught.value.__notes__)
    with pytest.raises(OverflowError, match="beyond the bits"):
        operator.run(5, [[Columns({"k": [9] * 200, "n": [0] * 200})]])


def test_checked_arithmetic_is_exact() -> None:
    numbers = [0, 1, -1, 2, 3, MOST, LEAST, MOST // 2, LEAST // 2, 3037000500]
    exact = {add: int.__add__, subtract: int.__sub__, multiply: int.__mul__}
    with np.errstate(over="ignore"):
        for function, right in exact.items():
            for a in numbers:
                for b in numbers:
                    if LEAST <= right(a, b) <= MOST:
                        assert function(np.int64(a), np.int64(b)) == right(a, b)
                    else:
                        with pytest.raises(OverflowError):
                            function(np.int64(a), np.int64(b))


def test_post_dated_values_that_would_change_are_refused() -> None:
    from dataflow.state import native as stateful

    def outcome(**given: Any) -> None:
        def later(time: int, batch: Columns, state: Any, notificator: Any) -> None:
            notificator.notify_at(given.get("time", time + 1), given.get("keys", [1]), n=given.get("n", [1]))

        async def main(worker: dataflow.Worker) -> None:
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                stateful.unary(stream, key="k", fold=later, state={"s": "i8"}, pending={"n": "i8"})
            handle.send({"k": [1]})

        simulate(main, workers=1)

    for given in ({"n": [1.5]}, {"n": np.array([2**63], np.uint64)}, {"keys": [0.5]}, {"time": 3.5}):
        with pytest.raises((TypeError, ValueError), match=r"post-dated|cannot be a key|put off"):
            outcome(**given)
