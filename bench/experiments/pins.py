"""What key-level routing costs F, and what watching for heavy keys costs S: each against the same without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import megaphone
from bench.registry import benchmark
from bench.run import Run
from bench.timing import best_of
from dataflow.columns import Columns
from dataflow.columns.fold import Fold
from dataflow.columns.hashing import route_apart, route_hashed, split
from dataflow.columns.keyed import Keyed, Side
from megaphone.apart import mark
from megaphone.heavy import HeavyKeys
from megaphone.pins import Overrides
from planners.workloads import sample, zipf

PEERS, BINS, SHIFT, KEYS, BATCH = 2, 4096, 52, 1_000_000, 1 << 16


@benchmark("pins", "routing a record with no, 100 and 3,000 pinned keys; watching for heavy keys")
def pins(run: Run) -> None:
    rounds = 20 if run.quick else 200
    rng = np.random.default_rng(1)
    owners = (np.arange(BINS) % PEERS).astype(np.uint16)
    for z in run.each("skew", [0.0, 0.85]):
        keys = sample(zipf(KEYS, z), BATCH, rng).astype(np.int64)
        batch = Columns({"key": keys, "value": keys})
        plain = _nanoseconds(rounds, partial(_plain, batch, owners))
        run.report(f"z = {z}: no pinned keys", plain, "ns/record")
        for count in (100, 3_000):
            table = Overrides(np.arange(count, dtype=np.uint64), rng.integers(0, PEERS, count))
            each = _nanoseconds(rounds, partial(_pinned, batch, owners, table))
            run.report(f"z = {z}: {count:,} pinned keys, the heaviest", each, "ns/record", baseline=plain)
        store = Keyed("count", [Side("key", "value", count_fold())], None, BINS, None)
        fold = _nanoseconds(rounds, partial(store.run, 0, [[batch]]))
        run.report(f"z = {z}: folding a record, without watching", fold, "ns/record")
        heavy = HeavyKeys(["key"])
        watch = _nanoseconds(rounds, partial(heavy.watch, [[batch]]))
        run.report(f"z = {z}: watching for heavy keys, against folding", watch, "ns/record", baseline=fold)


def _nanoseconds(rounds: int, body: Callable[[], object]) -> float:
    return best_of(rounds, body) / BATCH * 1e9


def _plain(batch: Columns, owners: Any) -> None:
    order, ends = np.empty(len(batch), np.int64), np.zeros(PEERS, np.int64)
    route_hashed(batch["key"].view(np.uint64), SHIFT, owners, order, ends)
    split(batch, order, ends)


def _pinned(batch: Columns, owners: Any, table: Overrides) -> None:
    order, ends = np.empty(len(batch), np.int64), np.zeros(2 * PEERS, np.int64)
    words = batch["key"].view(np.uint64)
    route_apart(words, False, SHIFT, owners, table.slots, table.owners, PEERS, order, ends)
    for part in split(batch, order, ends)[PEERS:]:
        mark(part)


def count_fold() -> Fold:
    """A sum by key."""
    return megaphone.fold(_count, state={"total": "i8"})


def _count(key, value, state):  # type: ignore[no-untyped-def]
    state.total += value
