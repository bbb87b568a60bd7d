"""What every store promises, with few and very many bins: in one place, on the move, exported and imported again."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.state.pieces import Piece, join, pack, unpack
from dataflow.state.store import Store
from tests.state.kinds import KEYS, KINDS, PINNING, InRows, JoinsInColumns, Kind, Record

BINS = [2, 1 << 8, 1 << 15]
TIMES = 12

every_store = pytest.mark.parametrize("kind", KINDS, ids=repr)
any_bins = pytest.mark.parametrize("bins", BINS, ids=["2 bins", "2^8 bins", "2^15 bins"])


def some_records(chance: Random, inputs: int) -> list[list[Record]]:
    """Few keys, so that they meet; values from 1 on."""
    return [
        [(chance.randrange(KEYS), chance.randrange(1, 6)) for _ in range(chance.choice([0, 1, 5, 12]))]
        for _ in range(inputs)
    ]


def run(kind: Kind, store: Store[Any], time: int, records: list[list[Record]]) -> Counter[Any]:
    """Applies everything at a time, in batches of at most four records."""
    batches = [
        [store.accept(kind.batch(store, port, part[i : i + 4])) for i in range(0, len(part), 4)]
        for port, part in enumerate(records)
    ]
    least = store.least_pending
    if not any(batches) and (least is None or least > time):
        return Counter()
    return kind.rows(store.run(time, batches))


def held(stores: list[Store[Any]]) -> tuple[dict[int, Any], Counter[Any]]:
    """By key its state, and (time, key) of what was post-dated, in all bins of all stores."""
    entries: dict[int, Any] = {}
    pending: Counter[Any] = Counter()
    for store in stores:
        for bin in store.occupied().tolist():
            view = store.view(bin)
            assert view.bin == bin and view.bytes == store.sizes(bin, bin + 1)[0] > 0
            assert not entries.keys() & view.entries.keys(), "a key is in one place"
            entries.update(view.entries)
            assert [time for time, _ in view.pending] == sorted(time for time, _ in view.pending)
            pending.update((time, r["key"] if isinstance(r, dict) else r[0]) for time, r in view.pending)
    return entries, pending


def written(entries: dict[int, Any]) -> dict[int, Any]:
    """Without what is as if nobody had written to it: a dense bin has all of its keys."""
    return {key: state for key, state in entries.items() if state != {"total": 0} and state != 0}


def check(kind: Kind, model: Any, stores: list[Store[Any]]) -> None:
    entries, pending = held(stores)
    assert written(entries) == written(model.state())
    assert pending == model.pending()
    least = [store.least_pending for store in stores if store.least_pending is not None]
    assert min(least, default=None) == min((time for time, _ in pending), default=None)


def move(bin: int, here: Store[Any], there: Store[Any], chance: Random, limit: int) -> list[Piece]:
    """Takes a bin from one store to another, in messages, in any order."""
    messages = [pack(piece) for piece in here.take_bin(bin, limit)]
    pieces = [piece for message in messages for piece in unpack(message)]
    for piece in chance.sample(pieces, len(pieces)):
        there.put(piece)
    assert all(len(piece.words) <= limit for piece in pieces)
    return pieces


@every_store
@any_bins
def test_in_one_place(kind: Kind, bins: int) -> None:
    for seed in range(3):
        chance, store, model = Random(seed), kind.make(bins), kind.model()
        for time in range(TIMES):
            records = some_records(chance, kind.inputs)
            assert run(kind, store, time, records) == model.run(time, records)
        check(kind, model, [store])
        assert set(store.occupied().tolist()) <= set(kind.bins_of(store, list(range(KEYS))))


@every_store
@any_bins
@pytest.mark.parametrize("limit", [8, 1 << 17])
def test_on_the_move(kind: Kind, bins: int, limit: int) -> None:
    """Bins go to and fro between two stores, between times; results are as if they stayed."""
    for seed in range(4):
        chance, stores, model = Random(seed), [kind.make(bins), kind.make(bins)], kind.model()
        numbers = kind.bins_of(stores[0], list(range(KEYS)))
        owner = {bin: chance.randrange(2) for bin in numbers}
        for time in range(TIMES):
            for bin in chance.sample(sorted(owner), chance.randrange(len(owner))):
                move(bin, stores[owner[bin]], stores[1 - owner[bin]], chance, limit)
                owner[bin] = 1 - owner[bin]
            records = some_records(chance, kind.inputs)
            out: Counter[Any] = Counter()
            for number, store in enumerate(stores):
                mine = [[record for record in part if owner[numbers[record[0]]] == number] for part in records]
                out += run(kind, store, time, mine)
            assert out == model.run(time, records)
        check(kind, model, stores)


@every_store
@any_bins
def test_exported_and_imported_again(kind: Kind, bins: int) -> None:
    """All bins go through one message into a fresh store, which goes on as the old one would; copies change nothing."""
    chance, store, model = Random(5), kind.make(bins), kind.model()
    for time in range(TIMES):
        records = some_records(chance, kind.inputs)
        run(kind, store, time, records)
        model.run(time, records)
    copies = [pack(piece) for bin in store.occupied().tolist() for piece in store.copy_bin(bin, 64)]
    check(kind, model, [store])
    copied, moved = kind.make(bins), kind.make(bins)
    for piece in unpack(join(copies)):
        copied.put(piece)
    check(kind, model, [copied])
    for bin in store.occupied().tolist():
        move(bin, store, moved, chance, 64)
    assert not len(store.occupied()) and store.least_pending is None and not store.sizes(0, bins).any()
    for time in range(TIMES, TIMES + 8):
        records = some_records(chance, kind.inputs)
        expected = model.run(time, records)
        assert run(kind, copied, time, records) == run(kind, moved, time, records) == expected


@every_store
@any_bins
def test_marks_of_what_has_changed(kind: Kind, bins: int) -> None:
    """Just the bins whose keys had records, or something due; and those that left and arrived."""
    chance, store, other = Random(6), kind.make(bins), kind.make(bins)
    numbers = kind.bins_of(store, list(range(KEYS)))
    run(kind, store, 0, [[(key, 2) for key in range(9)]] * kind.inputs)
    store.track_changes()
    assert set(store.take_changed().tolist()) == set(store.occupied().tolist()), "at first, all that is here"
    assert not len(store.take_changed())
    for time in range(1, TIMES):
        due = {r["key"] if isinstance(r, dict) else r[0]
               for bin in store.occupied().tolist() for t, r in store.view(bin).pending if t <= time}  # fmt: skip
        records = some_records(chance, kind.inputs)
        run(kind, store, time, records)
        keys = due | {key for part in records for key, _ in part}
        changed = set(store.take_changed().tolist())
        assert changed == {numbers[key] for key in keys} or (kind.restless and changed > {numbers[key] for key in keys})
        assert not len(store.take_changed())
    bin = int(store.occupied()[0])
    move(bin, store, other, chance, 64)
    assert store.take_changed().tolist() == [bin]
    move(bin, other, store, chance, 64)
    assert store.take_changed().tolist() == [bin]
    list(store.copy_bin(bin, 64))
    store.view(bin)
    assert not len(store.take_changed()), "looking and copying change nothing"


@pytest.mark.parametrize("kind", PINNING, ids=repr)
@any_bins
def test_single_keys_apart_and_back(kind: Kind, bins: int) -> None:
    """Keys leave their bins for a place of their own, there and elsewhere, and go back; copies of them are as good."""
    for seed in range(4):
        chance, stores, model = Random(seed), [kind.make(bins), kind.make(bins)], kind.model()
        apart: dict[int, int] = {}  # by key that lives apart, the store; bins are all in the first
        for time in range(TIMES):
            for key in chance.sample(range(KEYS), 5):
                was, will = key in apart, chance.random() < 0.7
                here = stores[apart.get(key, 0)]
                to = chance.randrange(2) if will else 0
                word: Any = key if kind is PINNING[0] else np.uint64(key)
                pieces = [p for m in [pack(p) for p in here.take_key(word, was, will, 8)] for p in unpack(m)]
                assert all(piece.is_key and piece.returns != will for piece in pieces)
                for piece in chance.sample(pieces, len(pieces)):
                    stores[to].put(piece)
                apart.pop(key, None)
                if will:
                    apart[key] = to
            records = some_records(chance, kind.inputs)
            out: Counter[Any] = Counter()
            for number, store in enumerate(stores):
                out += run_apart(kind, store, time, records, number, apart)
            assert out == model.run(time, records)
        fresh = kind.make(bins)
        for store in stores:
            for piece in [p for m in [pack(p) for p in store.copy_apart(8)] for p in unpack(m)]:
                fresh.put(piece)
        states = [{**held([stores[0]])[0], **stores[0].view_apart(), **stores[1].view_apart()}]
        assert written(states[0]) == written(model.state())
        assert fresh.view_apart() == {**stores[0].view_apart(), **stores[1].view_apart()}
        for time in range(TIMES, TIMES + 6):  # what was post-dated to keys that live apart was copied, too
            due = model.run(time, [[] for _ in range(kind.inputs)])
            assert run(kind, fresh, time, []) == Counter({row: n for row, n in due.items() if row[0] in apart})


def run_apart(
    kind: Kind, store: Store[Any], time: int, records: list[list[Record]], number: int, apart: dict[int, int]
) -> Counter[Any]:
    batches: list[list[Any]] = []
    for port, part in enumerate(records):
        home = [record for record in part if number == 0 and record[0] not in apart]
        pinned = [record for record in part if apart.get(record[0]) == number]
        some = [kind.batch(store, port, home)] * bool(home) + [kind.batch(store, port, pinned, True)] * bool(pinned)
        batches.append([store.accept(batch) for batch in some])
    least = store.least_pending
    if not any(batches) and (least is None or least > time):
        return Counter()
    return kind.rows(store.run(time, batches))


@every_store
@any_bins
def test_what_is_known_of_bins(kind: Kind, bins: int) -> None:
    """Who is here, how many records each bin has had, how many keys there are, and about how long pieces would be."""
    store, model = kind.make(bins), kind.model()
    numbers = kind.bins_of(store, list(range(KEYS)))
    records = [[(key, 2) for key in range(0, KEYS, 3)] * 2 for _ in range(kind.inputs)]  # none is due at once
    run(kind, store, 0, records)
    model.run(0, records)
    had = Counter(numbers[key] for part in records for key, _ in part)
    here = np.isin(np.arange(bins), store.occupied())
    assert set(np.flatnonzero(here).tolist()) == set(had)
    assert store.has(np.arange(bins)).tolist() == here.tolist()
    if kind.name != "batches that only post-date":  # where nobody asks for rows
        assert {bin: int(store.records[bin]) for bin in np.flatnonzero(store.records).tolist()} == had
    if kind.name != "dense folds":  # where bins are made whole
        assert store.key_count == len(model.state())
    sizes = store.sizes(0, bins)
    assert store.byte_count == sizes.sum() and store.sizes(1, bins).tolist() == sizes[1:].tolist()
    long = {bin: sum(8 * len(piece.words) for piece in store.copy_bin(bin, 1 << 17)) for bin in had}
    for bin, length in long.items():
        about = isinstance(kind, InRows | JoinsInColumns) and 0.3 * length < sizes[bin] < 3 * length
        assert length == sizes[bin] or about


@every_store
@any_bins
def test_several_times_together(kind: Kind, bins: int) -> None:
    """A host may hand over several times where the store says so: each comes out at its own time all the same."""
    for seed in range(2):
        chance, store, model = Random(seed), kind.make(bins), kind.model()
        expected: Counter[Any] = Counter()
        waiting: dict[int, list[list[Record]]] = {}
        for time in range(TIMES):
            waiting[time] = some_records(chance, kind.inputs) if chance.random() < 0.6 else [[]] * kind.inputs
        for time in range(TIMES + 6):
            out = model.run(time, waiting.get(time, [[]] * kind.inputs))
            expected.update({(time, row): count for row, count in out.items()})
        assert handed_over(kind, store, {time: parts for time, parts in waiting.items() if any(parts)}) == expected


def handed_over(kind: Kind, store: Store[Any], waiting: dict[int, list[list[Record]]]) -> Counter[Any]:
    """What comes out at each time, where as many times as the store allows are handed over together."""
    out: Counter[Any] = Counter()

    def note(time: int, results: Any) -> None:
        out.update({(time, row): count for row, count in kind.rows(results).items()})

    batches = {
        time: [[store.accept(kind.batch(store, port, part))] if part else [] for port, part in enumerate(parts)]
        for time, parts in waiting.items()
    }
    if store.takes_together and batches and store.can_take_together([parts[0] for parts in batches.values()]):
        for time, results in zip(batches, store.run_all([*batches], [p[0] for p in batches.values()]), strict=True):
            note(time, results)
        batches = {}
    while batches or store.least_pending is not None:
        due, first = store.least_pending, min(batches, default=None)
        if store.fires_together and due is not None and (first is None or due < first):
            until = TIMES + 6 if first is None else first - 1
            for time, results in store.fire(until):
                assert time <= until, "what is due later waits for the records of its time"
                note(time, results)
        elif store.fires_together and first is not None:
            note(first, store.receive(first, batches.pop(first)))
        else:
            time = min(t for t in (due, first) if t is not None)
            note(time, store.run(time, batches.pop(time, [])))
    return out


@every_store
@pytest.mark.parametrize("bins", BINS[:2])  # with more, a bin is one row, and so one piece
def test_a_piece_comes_once(kind: Kind, bins: int) -> None:
    store = kind.make(bins)
    run(kind, store, 0, [[(key, 1 + key % 4) for key in range(KEYS)] * 3] * kind.inputs)
    pieces = [*store.copy_bin(int(store.occupied()[0]), 1)]
    assert len(pieces) > 1
    fresh = kind.make(bins)
    fresh.put(pieces[0])
    with pytest.raises(ValueError, match="second time"):
        fresh.put(pieces[0])
    with pytest.raises(AssertionError, match="here already"):
        store.put(pieces[0])


@every_store
def test_pieces_that_cannot_be_right_are_refused(kind: Kind) -> None:
    store = kind.make(4)
    run(kind, store, 0, [[(key, 1) for key in range(KEYS)]] * kind.inputs)
    piece = next(iter(store.copy_bin(1, 1 << 17)))
    fresh = kind.make(4)
    first, second, third = piece.head
    heads = [(77, 1 << 40, 3), (first, second + 1000, third)]  # of a size that is none; of more than there is room for
    for broken in (piece._replace(bin=4), piece._replace(part=9), *(piece._replace(head=head) for head in heads)):
        with pytest.raises(ValueError, match=r"."):
            fresh.put(broken)
    assert not len(fresh.occupied()), "nothing is half-installed"
