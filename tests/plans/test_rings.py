"""Rings against a plain list of rows: what is found, what is forgotten, what memory is kept."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from megaphone.plans.columns import kernels
from megaphone.plans.columns.pages import Pages
from megaphone.plans.columns.rings import Delta, Ring

BINS, SHIFT, WINDOW = 4, 62, 5


class PlainRing:
    """The oracle: rows as tuples (number, hash, time), all looked at each time."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.count = 0

    def add(self, hashes: list[int], time: int) -> None:
        for hashed in hashes:
            self.rows.append((self.count, hashed, time))
            self.count += 1

    def purge(self, before: int) -> None:
        self.rows = [row for row in self.rows if row[2] >= before]

    def forget(self, bin: int) -> None:
        self.rows = [row for row in self.rows if row[1] >> SHIFT != bin]

    def forget_key(self, hashed: int) -> None:
        self.rows = [row for row in self.rows if row[1] != hashed]

    def met(self, hashes: list[int], low: int) -> list[tuple[int, int]]:
        return sorted((i, n) for i, one in enumerate(hashes) for n, other, t in self.rows if one == other and t >= low)


def delta_of(hashes: list[int], time: int) -> Delta:
    times = np.full(len(hashes), time, np.int64)
    return Delta(np.array(hashes, np.uint64), times, times, np.zeros((len(hashes), 2), np.int64))


def in_parts(ring: Ring, asked: list[int], time: int, most: int) -> list[tuple[int, int]]:
    """What a ring finds where there is room for a few pairs at a time."""
    found: list[tuple[int, int]] = []
    delta, low, start = delta_of(asked, time), np.full(len(asked), time - WINDOW), 0
    while start < len(asked):
        pairs = ring.probe(delta, low, WINDOW, ring.end, start, most)
        assert pairs.stopped > start
        found += zip(pairs.ones.tolist(), pairs.others.tolist(), strict=True)
        start = pairs.stopped
    return sorted(found)


def check_ring(seed: int) -> Ring:
    chance = Random(seed)
    ring, plain = Ring(BINS, SHIFT, 2), PlainRing()
    low_bits = chance.choice([3, 60])  # many keys whose slots are side by side, or none
    keys = [(chance.randrange(BINS) << SHIFT) | chance.randrange(1 << low_bits) for _ in range(chance.choice([9, 900]))]
    for time in range(30):
        some = [chance.choice(keys) for _ in range(chance.choice([0, 3, 40, 3000 if seed % 5 == 0 else 40]))]
        ring.add(delta_of(some, time), time)
        plain.add(some, time)
        if chance.random() < 0.2:
            bin = chance.randrange(BINS)
            ring.forget(np.array([bin]))
            plain.forget(bin)
        if chance.random() < 0.2:
            key = chance.choice(keys)
            numbers = np.array([n for n, hashed, _ in plain.rows if hashed == key], np.int64)
            ring.forget_key(key, numbers)
            plain.forget_key(key)
        if chance.random() < 0.7:
            ring.purge(time - WINDOW)
            plain.purge(time - WINDOW)
        asked = [chance.choice(keys) for _ in range(150 if len(plain.rows) < 300 else 20)]
        pairs = ring.probe(delta_of(asked, time), np.full(len(asked), time - WINDOW), WINDOW, ring.end)
        assert sorted(zip(pairs.ones.tolist(), pairs.others.tolist(), strict=True)) == plain.met(asked, time - WINDOW)
        if time % 7 == 6:
            assert in_parts(ring, asked, time, chance.choice([1, 7, 60, 500])) == plain.met(asked, time - WINDOW)
        assert ring.live == len(plain.rows)
        assert ring.numbers(np.ones(BINS, np.bool_), 0).tolist() == [n for n, _, _ in plain.rows]
    return ring


def test_what_is_found() -> None:
    for seed in range(150):
        check_ring(seed)


def test_a_key_without_rows_loses_its_slot() -> None:
    """So a table does not fill up with keys that came once, and is not made anew for them. It may keep its slot for as
    long again as its rows were there."""
    ring = Ring(BINS, SHIFT, 2)
    for time in range(100):
        ring.add(delta_of([time * 64 + i for i in range(64)], time), time)
        ring.purge(time - 1)
        assert 64 * min(time + 1, 2) <= ring._tally[kernels.USED] <= 64 * 5
    assert len(ring._slots.table) <= 1024
    ring.purge(100)
    assert ring._tally[kernels.USED] == 0


def test_a_key_has_its_slot_until_its_last_row_is_forgotten() -> None:
    """Also where that row comes right behind one that is forgotten: the case that random keys hardly ever have."""
    for before in range(1, 8):
        ring = Ring(BINS, SHIFT, 2)
        for time in range(9):
            ring.add(delta_of([time // 2], time), time)  # each key twice, one row right behind the other
        ring.purge(before)
        for asked in range(5):
            pairs = ring.probe(delta_of([asked], 8), np.zeros(1, np.int64), 8, ring.end)
            assert sorted(pairs.others.tolist()) == [n for n in range(before, 9) if n // 2 == asked]
        assert len({n // 2 for n in range(before, 9)}) <= ring._tally[kernels.USED] <= 5
        ring.purge(9)
        assert ring._tally[kernels.USED] == 0


def test_a_page_stays_until_its_last_row_is_forgotten() -> None:
    """A page that is used again too early has other rows in the place of those that count."""
    size = 1 << kernels.PAGE
    for base in (size - 1, size, size + 1):
        pages = Pages(6)
        pages.reach(2 * size)
        numbers = np.arange(base, 2 * size)
        pages.rows[pages.places(numbers), 0] = numbers
        pages.pass_by(base)
        pages.reach(6 * size)
        pages.rows[pages.places(np.arange(2 * size, 6 * size)), 0] = -1
        assert pages.rows[pages.places(numbers), 0].tolist() == numbers.tolist()
        assert pages._fresh == (6 if base < size else 5)  # the first page is used again once all of it is forgotten


def test_memory_is_used_again() -> None:
    ring = Ring(BINS, SHIFT, 2)
    most = 0
    for time in range(400):
        ring.add(delta_of([*range(1000)], time), time)
        ring.purge(time - 9)
        most = max(most, ring.touched)
    assert ring.end == 400_000 and most < 2 * (10_000 + 3 * 2048) * 8 * 7


@pytest.mark.parametrize("held", [False, True])
def test_pages_that_move(held: bool) -> None:
    """More room for pages that lie elsewhere then: moved by the system, or copied if somebody looks at them."""
    pages = Pages(6)
    for number in range(0, 40 << kernels.PAGE, 1 << kernels.PAGE):
        looking = pages.rows if held else None
        pages.reach(number + 1)
        pages.rows[pages.places(np.array([number])), 0] = number
        del looking
    numbers = np.arange(0, 40 << kernels.PAGE, 1 << kernels.PAGE)
    assert pages.rows[pages.places(numbers), 0].tolist() == numbers.tolist()
