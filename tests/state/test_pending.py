"""Post-dated records against a list that is sorted: what is due comes out, once, in the order of times."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import HashTable

KINDS = {"n": np.dtype(np.int64), "x": np.dtype(np.float64), "u": np.dtype(np.uint64)}
Record = tuple[int, int, int, float, int]  # time, key, values


def words_of(records: list[Record]) -> Any:
    rows = np.empty((len(records), 5), np.uint64)
    for i, (time, key, n, x, u) in enumerate(records):
        rows[i] = [np.int64(time).view(np.uint64), key, np.int64(n).view(np.uint64), np.float64(x).view(np.uint64), u]
    return rows.reshape(-1)


def taken(pending: Pending, time: int) -> list[tuple[Any, ...]]:
    keys, values = pending.due(time)
    assert [column.dtype for column in values] == list(KINDS.values())
    return list(zip(keys.tolist(), *(column.tolist() for column in values), strict=True))


@pytest.mark.parametrize("bins", [2, 16, 1 << 12, 1 << 20])
def test_what_is_due_comes_out_in_the_order_of_times(bins: int) -> None:
    table = HashTable(bins, {})
    for seed in range(2 if bins > 10_000 else 6):
        chance = Random(seed)
        pending, truth, now = Pending(bins, KINDS), list[Record](), -50
        for _ in range(30):
            keys = [chance.choice([chance.randrange(5), chance.getrandbits(64), 2**64 - 1]) for _ in range(40)]
            some = [
                (now + chance.choice([1, 2, 9, 2**40]), key, -chance.randrange(9), chance.random(), 2**64 - 1)
                for key in keys[: chance.randrange(40)]
            ]
            if some:
                pending.add(words_of(some), table.bins_of(np.array([record[1] for record in some], np.uint64)))
            truth += some
            assert pending.least == min((record[0] for record in truth), default=None) and len(pending) == len(truth)
            now += chance.choice([0, 1, 3])
            due = sorted(record for record in truth if record[0] <= now)
            truth = [record for record in truth if record[0] > now]
            got = taken(pending, now)
            assert sorted(got) == sorted(record[1:] for record in due)
            times = {record[1:]: record[0] for record in due}  # values are random: they tell records apart
            assert [times[record] for record in got] == [record[0] for record in due]
        assert len(taken(pending, 2**62)) == len(truth) and pending.least is None and taken(pending, 2**62) == []


def test_more_than_one_chunk_at_once() -> None:
    pending = Pending(4, KINDS)
    records = [(5 - n % 3, n, n, 0.5, n) for n in range(10_000)]
    pending.add(words_of(records), np.arange(10_000) % 4)
    for time in (3, 5):
        expected = [record for record in records if time - 2 < record[0] <= time]
        got = taken(pending, time)
        assert sorted(got) == sorted(record[1:] for record in expected)
        assert [5 - key % 3 for key, *_ in got] == sorted(record[0] for record in expected)
    assert pending.least is None and len(pending) == 0


def test_records_without_values() -> None:
    pending = Pending(2, {})
    pending.add(np.array([7, 1, 3, 2], np.uint64), np.array([0, 1]))
    keys, values = pending.due(10)
    assert keys.tolist() == [2, 1] and values == []


def test_bins_leave_with_their_records_and_come_with_them() -> None:
    for seed in range(10):
        chance = Random(seed)
        here, there = Pending(8, KINDS), Pending(8, KINDS)
        records = [(chance.randint(1, 9), n, n, 0.0, 0) for n in range(chance.choice([0, 1, 30]))]
        bins = [chance.randrange(8) for _ in records]
        if records:
            here.add(words_of(records), np.array(bins))
        moved = set(chance.sample(range(8), 4))
        for bin in moved:
            rows, (_, room, used, _) = here.segments.contents(bin).copy(), here.segments.meta[bin].tolist()
            here.segments.clear(bin)
            here.departed(bin)
            if used:
                there.segments.make(bin, room, used)
                there.segments.contents(bin)[:] = rows
                there.arrived(bin)
        for pending, mine in ((here, False), (there, True)):
            expected = sorted(r for r, bin in zip(records, bins, strict=True) if (bin in moved) == mine)
            assert pending.least == (expected[0][0] if expected else None)
            assert sorted(taken(pending, 4)) == sorted(r[1:] for r in expected if r[0] <= 4)
            assert sorted(taken(pending, 9)) == sorted(r[1:] for r in expected if r[0] > 4)
