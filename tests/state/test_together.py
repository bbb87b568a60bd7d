"""Several times that are applied together, against the same times applied one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.state.folds.fold import Fold, fold
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.tables.pending import Pending
from tests.engine.harness import notes
from tests.state.test_pending import KINDS, words_of

STATE = {"n": "i8", "over": "b1"}


@fold(state=STATE, output={"key": "i8", "n": "i8"}, compiled=False)
def decimal(key: Any, value: Any, state: Any) -> Any:
    state.n = state.n * 10 + value // (1 if value else 0)
    return key, state.n


@fold(state=STATE, output={"key": "i8", "n": "i8"}, compiled=False)
def large_ones(key: Any, value: Any, state: Any) -> Any:
    state.n = state.n * 10 + value
    return (key, state.n) if state.n > 50 else None


@fold(state=STATE, output={"key": "i8", "n": "i8"}, compiled=False)
def put_off(key: Any, value: Any, state: Any, later: Any, emit: Any) -> Any:
    state.n += 1
    later.at(value)


@fold(state=STATE, output={"key": "i8", "n": "i8"}, compiled=False, create=False, forget="over")
def come_back(key: Any, state: Any) -> Any:
    state.n -= 1
    state.over = state.n == 0
    return (key, state.n) if key % 3 else None


def rows(results: list[Columns]) -> list[Any]:
    return [row for out in results for row in out.rows()]


def cut(batch: Columns, lengths: list[int]) -> list[list[Columns]]:
    """One batch for each length."""
    ends = np.cumsum(lengths).tolist()
    return [[batch.slice(end - length, end)] for end, length in zip(ends, lengths, strict=True)]


@pytest.mark.parametrize("used", [decimal, large_ones])
@pytest.mark.parametrize("order", [(), ("second", "v")])
def test_records_of_several_times(used: Fold, order: tuple[str, ...]) -> None:
    chance = Random(1)
    together, apart = (FoldStore("it", [Side("k", "v", used, order)], None, 4, None) for _ in range(2))
    assert together.takes_together and not together.fires_together
    times, lengths = [3, 4, 9, 10], [5, 1, 8, 2]
    columns = {name: [chance.randrange(1, 5) for _ in range(sum(lengths))] for name in ("k", "v", "second")}
    batches = cut(Columns(columns), lengths)
    expected = [rows(apart.run(time, [parts])) for time, parts in zip(times, batches, strict=True)]
    assert together.can_take_together(batches)
    assert [rows(results) for results in together.run_all(times, batches)] == expected
    assert sorted(together.table.read().rows()) == sorted(apart.table.read().rows())


def test_a_record_that_fails_is_named_with_its_own_time() -> None:
    operator = FoldStore("it", [Side("k", "v", decimal)], None, 4, None)
    for failing, time in enumerate([3, 3, 7, 8, 8]):
        values = [0 if i == failing else 1 for i in range(5)]
        with pytest.raises(ZeroDivisionError) as caught:
            operator.run_all([3, 7, 8], cut(Columns({"k": [0, 1, 2, 3, 4], "v": values}), [2, 1, 2]))
        assert f"for the key {failing}," in "".join(notes(caught.value))
        assert f"at {time}" in "".join(notes(caught.value))


@pytest.mark.parametrize("counts_once", [False, True])
def test_what_was_post_dated_to_several_times(counts_once: bool) -> None:
    together, apart = (FoldStore("it", [Side("k", "v", put_off)], come_back, 4, None) for _ in range(2))
    chance = Random(2)
    batch = Columns({"k": [chance.randrange(9) for _ in range(60)], "v": [chance.randrange(1, 8) for _ in range(60)]})
    for operator in (together, apart):
        operator.counts_once = counts_once
        operator.receive(0, [[batch]])
    assert together.fires_together and not together.takes_together
    for until in (0, 4, 5, 9):
        due = sorted({time for time in batch["v"].tolist() if time <= until})
        expected = [(time, rows(apart.run(time, []))) for time in due if (apart.least_pending or 99) <= time]
        fired = together.fire(until) if (together.least_pending or 99) <= until else []
        assert [(time, rows(results)) for time, results in fired] == expected
        assert (together.table.meta == apart.table.meta).all()
    assert together.least_pending is None and len(together.table.read()) == 0


def test_due_records_that_post_date_more_are_fired_time_by_time() -> None:
    assert not FoldStore("it", [Side("k", "v", put_off)], put_off_again, 4, None).fires_together


@fold(state=STATE, output={"key": "i8", "n": "i8"}, compiled=False)
def put_off_again(time: Any, state: Any, later: Any, emit: Any) -> Any:
    later.at(time + 1)


def test_many_are_taken_out_some_times_at_once_and_each_time_whole() -> None:
    pending = Pending(4, KINDS)
    records = [(n % 10, n, n, 0.5, n) for n in range(30_000)]  # 3,000 at each time
    pending.add(words_of(records), np.arange(30_000) % 4)
    seen = []
    while pending.least is not None and pending.least <= 7:
        times, keys, _ = pending.due_first(7)
        assert np.bincount(times)[np.unique(times)].tolist() == [3000] * len(np.unique(times))
        assert (times[1:] >= times[:-1]).all() and (keys % 10 == times.view(np.uint64)).all()
        seen += np.unique(times).tolist()
    assert seen == list(range(8)) and pending.least == 8


def test_batches_are_alike_if_they_have_the_same_columns_of_numbers() -> None:
    one = Columns({"k": [1], "v": [2]})
    assert Columns.alike([]) and Columns.alike([one]) and Columns.alike([one, Columns({"k": [3, 4], "v": [5, 6]})])
    assert not Columns.alike([one, Columns({"k": [1]})])
    assert not Columns.alike([one, Columns({"v": [2], "k": [1]})])
    assert not Columns.alike([one, Columns({"k": [1], "v": [2.5]})])
    assert not Columns.alike([Columns({"word": ["a"]})])
