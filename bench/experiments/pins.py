"""What key-level routing costs F, and what watching for heavy keys costs S: each against the same without.

Many batches take turns: if one batch came again and again, the processor would learn which of its keys are pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

import megaphone
from bench.registry import benchmark
from bench.run import Run
from bench.skew import sample, zipf
from bench.timing import best_of
from dataflow.columns import Columns
from dataflow.columns.hashing import Owners, route_apart, route_hashed
from dataflow.columns.scatter import split
from dataflow.state.binning import Binning
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.row_store import Rows
from megaphone.keys.keyspace import WordOverrides
from megaphone.keys.pinning import mark
from megaphone.load.heavy import HeavyKeys
from megaphone.load.tally import HeavyRows
from megaphone.router.rows import place, place_apart

T = TypeVar("T")
PEERS, BINS, SHIFT, KEYS, BATCH, BATCHES = 2, 4096, 52, 1_000_000, 1 << 14, 64


@benchmark("pins", "routing a record with no, 100 and 3,000 pinned keys, columns and rows; watching for heavy keys")
def pins(run: Run) -> None:
    rounds = 2 if run.quick else 8
    rng = np.random.default_rng(1)
    homes = (np.arange(BINS) % PEERS).astype(np.uint16)
    owners = Owners(homes, PEERS)
    fold = megaphone.fold(_count, state={"total": "i8"})
    for z in run.each("skew", [0.0, 0.85]):
        parts = [sample(zipf(KEYS, z), BATCH, rng).astype(np.int64) for _ in range(BATCHES)]
        batches = [Columns({"key": keys, "value": keys}) for keys in parts]
        each = partial(_nanoseconds, rounds, batches)
        plain = each(partial(_plain, owners))
        run.report(f"z = {z}: no pinned keys", plain, "ns/record")
        for count in (100, 3_000):
            table = WordOverrides(np.arange(count, dtype=np.uint64), rng.integers(0, PEERS, count))
            pinned = each(partial(_pinned, owners, table))
            run.report(f"z = {z}: {count:,} pinned keys, the heaviest", pinned, "ns/record", baseline=plain)
        store = FoldStore("count", [Side("key", "value", fold)], None, BINS, None)
        folding = each(partial(_fold, store))
        run.report(f"z = {z}: folding a record, without watching", folding, "ns/record")
        heavy = HeavyKeys(["key"])
        watching = each(partial(_watch, heavy))
        run.report(f"z = {z}: watching for heavy keys, against folding", watching, "ns/record", baseline=folding)
        rows(run, z, rounds, [keys.tolist() for keys in parts[:4]], homes.tolist())


def rows(run: Run, z: float, rounds: int, batches: list[list[int]], owners: list[int]) -> None:
    """The same for rows; a record is its own key."""
    each = partial(_nanoseconds, rounds, batches)
    plain = each(partial(_plain_rows, owners))
    run.report(f"z = {z}: rows, no pinned keys", plain, "ns/record")
    for count in (100, 3_000):
        workers = {key: key % PEERS for key in range(count)}
        pinned = each(partial(_pinned_rows, owners, workers))
        run.report(f"z = {z}: rows, {count:,} pinned keys, the heaviest", pinned, "ns/record", baseline=plain)
    heavy = HeavyRows([int])
    placed: list[Rows] = [[(0, key) for key in batch] for batch in batches]
    watching = _nanoseconds(rounds, placed, lambda batch: heavy.watch([[batch]]))
    run.report(f"z = {z}: rows, watching for heavy keys, against routing", watching, "ns/record", baseline=plain)


def _nanoseconds(rounds: int, batches: Sequence[T], body: Callable[[T], object]) -> float:
    def all_of_them() -> None:
        for batch in batches:
            body(batch)

    return best_of(rounds, all_of_them) / (BATCH * len(batches)) * 1e9


def _fold(store: FoldStore, batch: Columns) -> None:
    store.run(0, [[batch]])


def _watch(heavy: HeavyKeys, batch: Columns) -> None:
    heavy.watch([[batch]])


def _plain_rows(owners: list[int], batch: list[int]) -> None:
    place(batch, Binning(_same, SHIFT), owners, [[] for _ in range(PEERS)])


def _pinned_rows(owners: list[int], workers: dict[int, int], batch: list[int]) -> None:
    parts: list[Rows] = [[] for _ in range(PEERS)]
    place(place_apart(batch, _same, workers, parts), Binning(_same, SHIFT), owners, parts)


def _same(key: int) -> int:
    return key


def _plain(owners: Owners, batch: Columns) -> None:
    to = np.empty(len(batch), np.uint16)
    route_hashed(batch["key"].view(np.uint64), SHIFT, owners.words, owners.width, to)
    split(batch, to, PEERS)


def _pinned(owners: Owners, table: WordOverrides, batch: Columns) -> None:
    to = np.empty(len(batch), np.uint16)
    words = batch["key"].view(np.uint64)
    route_apart(words, False, SHIFT, owners.words, owners.width, table.slots, table.owners, PEERS, to)
    for part in split(batch, to, 2 * PEERS)[PEERS:]:
        mark(part)


def _count(key, value, state):  # type: ignore[no-untyped-def]
    state.total += value
