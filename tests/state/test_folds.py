"""Folds: compiled, uncompiled and the oracle give the same rows in the same order, and the same state."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from dataflow.state.stores.fold_store import FoldStore, Side
from tests.columns.folds import CASES, Case, counting
from tests.engine.harness import notes

KEYS = [0, 1, 2, 3, -1, 2**40, -(2**63), 2**63 - 1]


def keyed(case: Case, compiled: bool, bins: int) -> FoldStore:
    value: Any = next(iter(case.columns)) if case.alone else tuple(case.columns) or None
    used, due = case.fold, case.due
    if not compiled:
        used, due = used.without_compiling(), due and due.without_compiling()
    return FoldStore("the operator", [Side("k", value, used)], due, bins, case.dense)


def inputs(case: Case, chance: Random, times: int) -> list[list[tuple[Any, ...]]]:
    keys = range(40) if case.dense else KEYS
    return [
        [
            (chance.choice(keys), *(make(chance) for make in case.columns.values()))
            for _ in range(chance.choice([0, 1, 5, 70]))
        ]
        for _ in range(times)
    ]


def batch_of(case: Case, records: list[tuple[Any, ...]]) -> Columns:
    names = ("k", *case.columns)
    kinds = {"k": "i8"} | dict.fromkeys(case.columns, "i8") | case.kinds
    columns = {name: np.array([record[i] for record in records], kinds[name]) for i, name in enumerate(names)}
    if records and case.columns:
        columns["unused"] = np.zeros(len(records))
    return Columns(columns)


def through(operator: FoldStore, case: Case, epochs: list[list[Any]]) -> tuple[list[Any], dict[int, Any]]:
    """Everything that comes out, time by time, until nothing is pending; and the state in the end."""
    out: list[Any] = []
    todo = dict(enumerate(epochs))
    while todo or operator.least_pending is not None:
        time = min([*todo, *([] if operator.least_pending is None else [operator.least_pending])])
        batch = batch_of(case, todo.pop(time, []))
        for result in operator.run(time, [[batch.slice(0, 3), batch.slice(3, len(batch))]]):
            assert [kind for _, kind in case.fold.output.items()] == [c.dtype for c in result.columns.values()]
            out += [(time, *row) for row in result.rows()]
    state = operator.table.read()
    return out, {key: row for key, *row in state.rows() if case.dense is None or any(row)}


def expected(case: Case, epochs: list[list[Any]]) -> tuple[list[Any], dict[Any, Any]]:
    """The same from the oracle. What is due at one time is in no order: sorted."""
    state: dict[Any, Any] = {}
    out, later = [], list[Any]()
    todo = dict(enumerate(epochs))
    while todo or later:
        time = min([*todo, *(record[0] for record in later)])
        out += [(time, *row) for row in case.oracle(time, todo.pop(time, []), state, later)]
        due = [record[1:] for record in later if record[0] == time]
        later = [record for record in later if record[0] != time]
        if due:
            assert case.due_oracle is not None
            out += [(time, *row) for row in case.due_oracle(time, due, state)]
    return out, state


@pytest.mark.parametrize("name", CASES)
def test_compiled_uncompiled_and_the_oracle_agree(name: str) -> None:
    case = CASES[name]
    for seed in range(15):
        chance = Random(seed)
        epochs = inputs(case, chance, 4)
        bins = 1 << chance.randint(1, 12)
        compiled = through(keyed(case, True, bins), case, epochs)
        plain = through(keyed(case, False, bins), case, epochs)
        assert compiled == plain
        rows, state = expected(case, epochs)
        assert sorted(compiled[0]) == sorted(rows) if case.due else compiled[0] == rows
        assert set(compiled[1]) == set(state)
        if name == "split":  # the sums depend on the order of what is due at one time, which is none
            assert {key: row[1] for key, row in compiled[1].items()} == {key: left for key, (_, left) in state.items()}


def test_the_cases_have_something_in_them() -> None:
    for case in CASES.values():
        rows, _ = expected(case, inputs(case, Random(1), 6))
        assert len(rows) > 20
    late = expected(CASES["split"], inputs(CASES["split"], Random(1), 3))
    assert max(time for time, *_ in late[0]) > 2


@pytest.mark.parametrize("bins", [2, 64, 1 << 16])
def test_many_keys_at_once_while_their_bins_grow(bins: int) -> None:
    operator = keyed(CASES["counting"], True, bins)
    chance, truth = Random(bins), dict[int, int]()
    for time in range(6):
        keys = [chance.choice([chance.randrange(3000), chance.getrandbits(63)]) for _ in range(3000)]
        (out,) = operator.run(time, [[Columns({"k": keys})]])
        expected_rows = []
        for key in keys:
            truth[key] = truth.get(key, 0) + 2
            expected_rows.append((key, truth[key]))
        assert out.rows() == expected_rows
    assert dict(operator.table.read().rows()) == truth


def test_a_closure_is_compiled_with_what_it_closes_over() -> None:
    case, other = CASES["counting"], counting(5)
    epochs = [[(1,), (2,), (1,)]]
    assert through(keyed(case, True, 4), case, epochs)[0] == [(0, 1, 2), (0, 2, 2), (0, 1, 4)]
    fives = FoldStore("fives", [Side("k", None, other)], None, 4, None)
    assert through(fives, case, epochs)[0] == [(0, 1, 5), (0, 2, 5), (0, 1, 10)]


NARROW = {"a": "f4", "b": "f4", "c": "f4", "d": "f4", "u": "u1", "h": "i2", "n": "i4", "flag": "b1", "x": "f8",
          "many": ("f4", 3)}  # fmt: skip


def mixed(key, value, state):
    """Floats of 32 bits with each other, with small and large integers, with constants and values."""
    state.flag = not state.flag
    state.u += 3
    state.h -= 7
    state.n += 5
    state.a = state.a * state.b + state.c
    state.b = state.b * 0.1 + value
    state.c = (state.a - state.b) / (abs(state.c) + state.u) * state.h / state.n
    state.d += state.a * state.n - state.flag * state.b
    state.x += -state.a * state.b * state.c + state.d / 3 + 7 * state.u * state.d
    state.many[key % 3] += value * state.many[(key + 1) % 3] + state.d * state.many[0]
    state.a = max(state.a, state.d) % (state.b * state.b + state.u) - state.many[1] // (state.u * state.a + 1000)
    state.b -= state.d / 100 - state.c / state.n - value % 7
    state.d = state.d / (abs(state.d) + state.n)
    return state.a, state.b, state.c, state.d, state.x


def test_floats_of_32_bits_are_the_same_compiled_and_not() -> None:
    kinds = {"a": "f8", "b": "f8", "c": "f8", "d": "f8", "x": "f8"}
    chance = np.random.default_rng(5)
    batch = Columns({"k": chance.integers(0, 99, 400), "v": chance.normal(0, 1, 400)})
    rows = []
    for compiled in (True, False):
        used = fold(mixed, state=NARROW, values="f8", output=kinds, compiled=compiled)
        operator = FoldStore("mixed", [Side("k", "v", used)], None, 4, None)
        rows.append([row for out in operator.run(0, [[batch]]) for row in out.rows()])
    assert len(set(rows[1])) > 350 and all(map(math.isfinite, rows[1][-1]))
    assert rows[0] == rows[1]


def add_value(key, value, state):
    state.n += value


@pytest.mark.parametrize("compiled", [True, False])
def test_one_function_with_different_types_of_state(compiled: bool) -> None:
    """What is compiled for one is not taken for the other."""
    for kind, value in (("i8", "i8"), ("f8", "f8"), ("i8", "i8")):
        used = fold(add_value, state={"n": kind}, values=value, compiled=compiled)
        operator = FoldStore("add", [Side("k", "v", used)], None, 4, None)
        operator.run(0, [[Columns({"k": [1, 1], "v": np.array([1.5, 2.25]).astype(value)})]])
        assert operator.table.read().rows() == [(1, 3.75 if kind == "f8" else 3)]


@pytest.mark.parametrize("kind", ["i1", "u4", "i8", ">i8", "?", "M8[s]"])
def test_columns_of_any_integers_are_keys_and_values(kind: str) -> None:
    for compiled in (True, False):
        used = fold(add_value, state={"n": "i8"}, values="i8", compiled=compiled)
        operator = FoldStore("add", [Side("k", "v", used)], None, 4, None)
        ones = np.array([1, 0, 1, 0, 1]).astype(kind)
        ones.flags.writeable = False
        operator.run(0, [[Columns({"k": ones, "v": ones}), Columns({"k": ones[::-1], "v": ones[::2].repeat(5)[:5]})]])
        one = 10**9 if kind == "M8[s]" else 1  # dates are counts of nanoseconds
        assert sorted(operator.table.read().rows()) == [(0, 2 * one), (one, 6 * one)]


def test_the_order_of_records_at_a_time() -> None:
    @fold(state={"n": "i8"}, output={"n": "i8"}, compiled=False)
    def decimal(value, state):
        state.n = state.n * 10 + value.digit
        return state.n

    operator = FoldStore("digits", [Side("k", ("digit", "second"), decimal, ("second", "digit"))], None, 4, None)
    batches = [
        Columns({"k": [1, 1], "digit": [3, 1], "second": [0, 0]}),
        Columns({"k": [1], "digit": [2], "second": [-1]}),
    ]
    assert [row for out in operator.run(0, [batches]) for row in out.rows()] == [(2,), (21,), (213,)]


class TestWhatGoesWrong:
    """Both ways alike: the error, and a note that names the operator, the key, the bin and the time."""

    @pytest.mark.parametrize("compiled", [True, False])
    def test_dividing_by_zero(self, compiled: bool) -> None:
        used = DIVIDE if compiled else DIVIDE.without_compiling()
        operator = FoldStore("the operator", [Side("k", ("a", "b"), used)], None, 2, None)
        assert [out.rows() for out in operator.run(3, [[Columns({"k": [5], "a": [7], "b": [2]})]])] == [[(3, 1, 3.5)]]
        for a in (7, 0):  # 0/0 is not a number to numpy
            with pytest.raises(ZeroDivisionError) as caught:
                operator.run(4, [[Columns({"k": [5, -6], "a": [a, a], "b": [1, 0]})]])
            bin = int(operator.table.bins_of(np.array([2**64 - 6], np.uint64))[0])
            assert f"in the operator, for the key -6, in bin {bin} at 4" in notes(caught.value)
        assert dict(operator.table.read().rows()) == {5: 3 + 7 + 0, -6: 0}  # what came before it was applied

    @pytest.mark.parametrize("compiled", [True, False])
    def test_putting_off_until_now(self, compiled: bool) -> None:
        case = CASES["split"]
        operator = keyed(case, compiled, 2)
        operator.run(2**63 - 3, [[Columns({"k": [1], "v": [1.0]})]])
        with pytest.raises(
            ValueError, match="split post-dates a record to -9223372036854775808 at 9223372036854775807"
        ):
            operator.run(2**63 - 1, [[Columns({"k": [1], "v": [1.0]})]])

    @pytest.mark.parametrize("compiled", [True, False])
    def test_columns_of_the_wrong_type(self, compiled: bool) -> None:
        operator = FoldStore(
            "add", [Side("k", "v", fold(add_value, state={"n": "i8"}, values="i8", compiled=compiled))], None, 2, None
        )
        for column, message in (
            ([1.5], "add: column 'v' is float64, and the fold takes int64: say values={'v': 'f8'} in fold"),
            (["x"], "add: column 'v' holds strings, which a fold cannot use: encode it as integers"),
            ([1j], "add: column 'v' is complex128, and the fold takes int64: make it a number"),
        ):
            with pytest.raises(TypeError) as caught:
                operator.run(0, [[Columns({"k": [1], "v": column})]])
            assert message in str(caught.value)
        with pytest.raises(TypeError, match="column 'k' cannot be a key: it holds string"):
            operator.run(0, [[Columns({"k": ["x"], "v": [1]})]])
        with pytest.raises(KeyError, match="there is no column 'v'; there are k"):
            operator.run(0, [[Columns({"k": [1]})]])
        assert len(operator.table.read()) == 0

    def test_keys_outside_of_a_dense_domain(self) -> None:
        operator = keyed(CASES["counting dense"], True, 4)
        negative = r"-1 \(18446744073709551615 if the column has no sign\)"
        for key, told in ((40, "40"), (-1, negative), (2**40, f"{2**40}")):
            with pytest.raises(ValueError, match=rf"^the key {told} is outside of dense\(40\): keys are 0 to 39"):
                operator.run(0, [[Columns({"k": [0, key]})]])


@fold(state={"n": "i8"}, output={"whole": "i8", "rest": "i8", "ratio": "f8"})
def divide(value, state):
    state.n += value.a // value.b
    return value.a // value.b, value.a % value.b, value.a / value.b


DIVIDE = divide
