"""Memory that bins left behind: who gets it, how much is kept, and that it is let go."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns.batch import Array
from dataflow.state.memory import allocation, reuse
from dataflow.state.memory.reuse import FreePlace, FreePlaces
from dataflow.state.memory.segments import Segments
from dataflow.state.tables.table import Dense, DenseTable, Table, make_table
from tests.columns.mapped import resident_of


class Owner:
    """Of places: notes what is let go."""

    def __init__(self) -> None:
        self.gone: list[FreePlace] = []
        self.settled = 0
        self.some = threading.Event()

    def let_go(self, place: FreePlace) -> None:
        self.gone.append(place)
        self.some.set()

    def settle(self) -> None:
        self.settled += 1


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "memory kept"}


def test_places_are_taken_as_a_slow_list_would_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "MOST", 100)
    monkeypatch.setattr(reuse, "SECONDS", 3600.0)
    for seed in range(200):
        chance, owner = Random(seed), Owner()
        places, kept = FreePlaces(owner.let_go, owner.settle), list[FreePlace]()
        for first in range(60):
            if chance.random() < 0.5:
                room = chance.choice([4, 8])
                place = FreePlace(first, room, 2 * room, chance.choice([None, first]))
                expected = sum(p.size for p in kept) + place.size <= 100
                assert places.keep(place) == expected
                kept += [place] * expected
            else:
                room, bin = chance.choice([4, 8]), chance.choice([p.bin or 0 for p in kept] + [1000])
                own = [p for p in kept if p.bin == bin]
                fits = [p for p in kept if p.bin is None and p.room == room]
                found = own[0] if own else fits[-1] if fits else None
                assert places.take(room, bin) == (None if found is None else found.first)
                kept = [p for p in kept if p != found]
            if kept and chance.random() < 0.1:
                again = chance.choice(kept)
                assert places.keep(again)
                kept = [*(p for p in kept if p != again), again]
        assert owner.gone == []
        places.clear()
        assert owner.gone == kept, "the oldest first"
        assert owner.settled == 1
        assert places.take(4, 1000) is None


def test_what_nobody_takes_is_let_go_by_a_thread_that_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "SECONDS", 0.0)
    owner, others = Owner(), threads()
    places = FreePlaces(owner.let_go, owner.settle)
    for first in range(3):  # and another thread begins
        assert places.keep(FreePlace(first, 4, 8, None))
        assert owner.some.wait(60)
        owner.some.clear()
        for thread in threads() - others:
            thread.join(60)
        assert owner.gone == [FreePlace(n, 4, 8, None) for n in range(first + 1)]
        assert owner.settled == first + 1


def test_nobody_is_kept_alive_by_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "SECONDS", 3600.0)
    segments, others = Segments(2, 1), threads()
    segments.make(0, 1 << 16, 1 << 16)
    segments.clear(0)
    (thread,) = threads() - others
    there = weakref.ref(segments)
    del segments
    gc.collect()
    assert there() is None
    thread.join(60)
    assert not thread.is_alive()


def test_a_bin_that_comes_back_gets_its_home_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "SECONDS", 3600.0)
    rows = 1 << 14
    table = DenseTable(4, {"n": "i8"}, 4 * rows)
    keys = np.arange(4 * rows, dtype=np.uint64)
    table["n"][table.rows(keys)] = keys
    homes = table.meta[:, allocation.FIRST].tolist()
    left = table.segments.contents(1).copy()
    for bin in (1, 2):
        table.segments.clear(bin)
        table.departed(bin)
    for bin in (2, 1):
        assert table.install(bin, (rows, rows, 0, 0), left)
        table.arrived(bin)
    assert table.meta[:, allocation.FIRST].tolist() == homes
    assert (table["n"][table.rows(keys[keys % 4 == 1])] == keys[keys % 4 == 1]).all()
    table.segments.clear(1)
    table.departed(1)
    table.segments.let_go()
    assert table.install(1, (rows, rows, 0, 0), left)
    table.arrived(1)
    assert int(table.meta[1, allocation.FIRST]) not in homes, "its pages went back: there are others that were touched"
    assert (table["n"][table.rows(keys[keys % 4 == 1])] == keys[keys % 4 == 1]).all()


def fill(table: Table, keys: Array) -> None:
    rows = table.rows(keys)
    table["n"][rows] += keys.astype(np.int64)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("bins", [8, 1 << 16])
@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back with madvise")
def test_a_table_that_every_bin_has_left_has_no_memory_and_can_be_used_again(bins: int, dense: bool) -> None:
    """Not even that of segments that were outgrown: there are 32 MiB of dense rows, 64 MiB of hashed ones with five
    times the room. With 2^16 bins hashed ones share segments."""
    count = 1 << 22
    table = make_table(bins, {"n": "i8"}, Dense(count) if dense else None)
    keys = np.arange(count, dtype=np.uint64)
    words = table.segments.words
    for round in range(3):
        for part in np.array_split(keys, 16):  # it grows
            fill(table, part)
        given = int(table.ctl[allocation.GIVEN]) * table.stride
        assert resident_of(words, given) >= (32 << 20 if dense else 64 << 20)
        if round == 2:  # one bin stays, and so does what it has
            stays = table.bins_of(keys[:1])[0]
        for bin in range(bins):
            if round < 2 or bin != stays:
                for _ in table.leave(bin, 1 << 17):
                    pass
                table.departed(bin)
        table.segments.let_go()
        assert resident_of(words, given) == 0 or round == 2
    found, rows = table.scan()
    mine = keys[table.bins_of(keys) == stays]
    assert np.array_equal(np.sort(found), mine)
    assert np.array_equal(np.sort(table["n"][rows]), mine.astype(np.int64))


def test_a_bin_that_is_being_made_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread asks at the worst moment: between finding a place and saying whose it is."""
    segments = Segments(4, 1)
    segments.make(0, 1 << 18, 1 << 18)
    segments.clear(0)
    asked: list[threading.Thread] = []

    def and_then(*args: Any) -> int:
        first = int(original(*args))
        asked.append(threading.Thread(target=segments.let_go))
        asked[0].start()
        asked[0].join(0.05)  # it waits for us
        assert asked[0].is_alive()
        return first

    original = allocation.allocate_rows
    monkeypatch.setattr(allocation, "allocate_rows", and_then)
    segments.make(1, 1 << 19, 1 << 19)
    segments.contents(1)[:] = 5
    asked[0].join(60)
    monkeypatch.setattr(allocation, "allocate_rows", original)
    segments.make(2, 1 << 19, 1 << 19)
    segments.contents(2)[:] = 6
    assert (segments.contents(1) == 5).all()
