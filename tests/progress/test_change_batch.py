"""A ChangeBatch is a multiset of differences from which what cancels is gone."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.progress.change_batch import ChangeBatch

laws = settings(deadline=None, derandomize=True)
changes = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-2, 2)), max_size=30)


def sums(updates: list[tuple[str, int]]) -> dict[str, int]:
    counter: Counter[str] = Counter()
    for key, diff in updates:
        counter[key] += diff
    return {key: count for key, count in counter.items() if count}


@laws
@given(changes)
def test_it_holds_what_does_not_cancel(updates: list[tuple[str, int]]) -> None:
    batch = ChangeBatch(updates)
    batch._check()
    assert batch.counts == sums(updates)
    assert len(batch) == len(sums(updates))
    assert bool(batch) == bool(sums(updates))


@laws
@given(changes, changes)
def test_drain_gives_everything_once(first: list[tuple[str, int]], second: list[tuple[str, int]]) -> None:
    batch = ChangeBatch(first)
    assert dict(batch.drain()) == sums(first)
    assert not batch
    assert batch.drain() == []
    for key, diff in second:
        batch.update(key, diff)
        batch._check()
    assert dict(batch.drain()) == sums(second)


@laws
@given(changes)
def test_a_batch_and_its_opposite_cancel(updates: list[tuple[str, int]]) -> None:
    assert not ChangeBatch(updates + [(key, -diff) for key, diff in updates])


def test_a_drained_list_is_not_the_batch_itself() -> None:
    batch = ChangeBatch([("a", 1)])
    drained = batch.drain()
    batch.update("b", 1)
    assert drained == [("a", 1)]
    assert repr(batch) == "ChangeBatch([('b', 1)])"
