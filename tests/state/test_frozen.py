"""A frozen bin is copied as it was when it was frozen, whatever happened to the store since: every kind of store."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.state.folds.fold import Fold, fold
from dataflow.state.memory import allocation
from dataflow.state.pieces import pack
from dataflow.state.store import Store
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.tables import preimages
from dataflow.state.tables.table import Dense
from tests.state.kinds import KINDS, Kind
from tests.state.test_conformance import BINS, run, some_records

LIMIT = 64  # words


class Frozen:
    """What a snapshot does with a store, and what it must get."""

    def __init__(self, store: Store[Any]) -> None:
        self.store = store
        self.expected = {bin: _bytes(store.copy_bin(bin, LIMIT)) for bin in store.occupied().tolist()}
        self.left = set(self.expected)
        self.copied_early = 0
        self.saves_itself = store.freeze(np.array(sorted(self.left), np.intp), self.touch)

    def touch(self, bins: Iterable[int]) -> None:
        for bin in list(bins):
            self.copied_early += bin in self.left
            self.copy(bin)

    def copy(self, bin: int) -> None:
        if bin in self.left:
            self.left.discard(bin)
            assert _bytes(self.store.copy_frozen(bin, LIMIT)) == self.expected[bin], bin

    def before_changing(self) -> None:
        if not self.saves_itself:
            self.touch(sorted(self.left))

    def finish(self) -> None:
        for bin in sorted(self.left):
            self.copy(bin)
        self.store.thaw()


def _bytes(pieces: Iterable[Any]) -> list[bytes]:
    return [pack(piece).tobytes() for piece in pieces]


@pytest.mark.parametrize("bins", BINS, ids=["2 bins", "2^8 bins", "2^15 bins"])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("seed", range(2))
def test_a_frozen_bin_is_copied_as_it_was(kind: Kind, bins: int, seed: int) -> None:
    chance = Random(seed)
    store = kind.make(bins)
    store.track_changes()
    frozen: Frozen | None = None
    for time in range(1, 40):
        if frozen is None and chance.random() < 0.3:
            frozen = Frozen(store)
        elif frozen is not None and chance.random() < 0.1:
            frozen.finish()
            frozen = None
        elif frozen is not None and frozen.left and chance.random() < 0.3:
            frozen.copy(chance.choice(sorted(frozen.left)))
        if frozen is not None:
            frozen.before_changing()
        run(kind, store, time, some_records(chance, kind.inputs))
    if frozen is not None:
        frozen.finish()


@fold(state={"total": "i8", "last": "i8"}, output={"key": "i8", "total": "i8"})
def add(key, value, state):
    state.total += value
    state.last = value
    return key, state.total


@fold(state={"total": "i8", "zero": "bool"}, output={"key": "i8", "total": "i8"}, forget="zero")
def add_or_forget(key, value, state):
    state.total += value
    state.zero = state.total % 3 == 0
    return key, state.total


@fold(state={"total": "i8"}, output={"key": "i8", "total": "i8"}, create=False)
def add_to_what_is_there(key, value, state):
    state.total += value
    return key, state.total


def _apply(store: FoldStore, rng: np.random.Generator, keys: int, count: int) -> None:
    batch = Columns({"key": rng.integers(0, keys, count), "diff": rng.integers(1, 9, count)})
    store.run(1, [[batch]])


@pytest.mark.parametrize("dense", [None, Dense(3000)], ids=["hashed", "dense"])
@pytest.mark.parametrize("body", [add, add_or_forget, add_to_what_is_there], ids=lambda body: body.name)
@pytest.mark.parametrize("room", [1 << 40, 300], ids=["a long log", "a short log"])
def test_compiled_folds_whose_tables_grow(body: Fold, dense: Dense | None, room: int) -> None:
    dense = None if body is add_to_what_is_there else dense  # dense keys are always there
    rng = np.random.default_rng(5)
    store = FoldStore("sums", [Side("key", "diff", body)], None, 32, dense)
    store.track_changes()
    for keys in (40, 200, 1000, 1100, 3000):
        _apply(store, rng, keys // 2, 400)
        frozen = Frozen(store)
        images = store.table._images
        if images is not None:
            images._log_ctl[1] = min(room, int(images._log_ctl[1]))
        for number in range(8):
            _apply(store, rng, keys, int(rng.integers(1, 200)))
            if number % 3 == 2 and frozen.left:
                frozen.copy(int(rng.choice(sorted(frozen.left))))
        frozen.finish()


def test_few_bins_are_copied_early_where_rows_only_change() -> None:
    rng = np.random.default_rng(6)
    store = FoldStore("sums", [Side("key", "diff", add)], None, 16, None)
    store.track_changes()
    _apply(store, rng, 1000, 20_000)
    frozen = Frozen(store)
    for _ in range(50):
        _apply(store, rng, 1000, 500)
    assert frozen.copied_early == 0 and len(frozen.left) == 16
    frozen.finish()
    _apply(store, rng, 100_000, 5000)  # nothing is noted any more
    assert int(store.table.meta[:, allocation.USED].sum()) > 1000
    assert not store.table._images._states.any()


def test_a_copy_without_what_was_noted_is_found_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail."""
    rng = np.random.default_rng(7)
    store = FoldStore("sums", [Side("key", "diff", add)], None, 16, None)
    store.track_changes()
    _apply(store, rng, 1000, 20_000)
    frozen = Frozen(store)
    monkeypatch.setattr(preimages.PreImages, "note", lambda self, keys: None)
    _apply(store, rng, 1000, 500)
    with pytest.raises(AssertionError):
        frozen.finish()
