"""State that was saved is read from its description and its pieces alone, as the store itself would show it."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from dataflow.state.pieces import pack
from dataflow.state.reading import SavedState, view_saved
from dataflow.state.store import Store
from dataflow.state.stores.fold_store import FoldStore, Side
from tests.state.kinds import KEYS, KINDS, PINNING, JoinsInColumns, JoinsInRows, Kind
from tests.state.test_conformance import run, some_records

PLANS = (JoinsInRows, JoinsInColumns)  # what plans are the engine does not know: it shows the entries that travelled


def grown(kind: Kind, bins: int, seed: int) -> Store[Any]:
    chance, store = Random(seed), kind.make(bins)
    for time in range(10):
        run(kind, store, time, some_records(chance, kind.inputs))
    return store


def saved(store: Store[Any], chance: Random) -> list[Any]:
    """All pieces, in any order."""
    bins = [pack(piece) for bin in store.occupied().tolist() for piece in store.copy_bin(bin, 8)]
    apart = [pack(piece) for piece in store.copy_apart(8)]
    return chance.sample(bins + apart, len(bins + apart))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not isinstance(kind, PLANS)], ids=repr)
@pytest.mark.parametrize("bins", [2, 1 << 8, 1 << 15])
def test_what_is_read_is_what_the_store_shows(kind: Kind, bins: int) -> None:
    store = grown(kind, bins, 3)
    views = list(view_saved(store.describe(), saved(store, Random(1))))
    assert len(views) > 1
    assert [(view.bin, dict(view.entries), list(view.pending)) for view in views] == [
        (view.bin, dict(view.entries), list(view.pending)) for view in map(store.view, store.occupied().tolist())
    ]


@pytest.mark.parametrize("kind", [kind for kind in PINNING if not isinstance(kind, PLANS)], ids=repr)
def test_keys_that_live_apart_are_read(kind: Kind) -> None:
    store = grown(kind, 1 << 4, 4)
    before = {**{k: s for bin in store.occupied().tolist() for k, s in store.view(bin).entries.items()}}
    pending = sum(len(store.view(bin).pending) for bin in store.occupied().tolist())
    for key in range(0, KEYS, 2):
        for piece in list(store.take_key(key, False, True, 1 << 10)):
            store.put(piece)
    state = SavedState(store.describe())
    for words in saved(store, Random(2)):
        state.put(words)
    apart, apart_pending = state.apart()
    assert apart == dict(store.view_apart()) and (apart or apart_pending)
    views = list(state.views())
    assert {**{k: s for view in views for k, s in view.entries.items()}, **apart}.keys() == before.keys()
    assert sum(len(view.pending) for view in views) + len(apart_pending) == pending


def test_arrays_and_small_fields_are_read() -> None:
    @fold(state={"last": ("f4", 3), "seen": "b1", "small": "u2"}, output={"key": "i8"}, compiled=False)
    def remember(key, value, state, emit):
        state.last[value % 3] = value / 2
        state.seen = True
        state.small += 7

    store = FoldStore("remember", [Side("key", "value", remember)], None, 4, None)
    store.run(0, [[store.accept(Columns({"key": np.arange(9), "value": np.arange(9)}))]])
    views = list(view_saved(store.describe(), saved(store, Random(1))))
    entries = {key: state for view in views for key, state in view.entries.items()}
    assert entries == store.view_all() and len(entries) == 9 and entries[4] == {
        "last": [0.0, 2.0, 0.0], "seen": True, "small": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"store": "HeapStore"}, "this version of the library knows no store 'HeapStore'"),
        ({"store": None}, "does not say 'store'"),
        ({"shards": "many"}, "'many' is no number of shards"),
        ({"shards": "7"}, "the number of bins must be a power of two"),
        ({"field total": "object"}, "'object' is no type of a field"),
        ({"field total": "O8"}, "is no type of a field"),
        ({"field total": "float16"}, "is float16"),
        ({"pending back": "list"}, "is no type of a field"),
    ],
)
def test_a_description_that_cannot_be_right_is_refused(change: dict[str, str | None], match: str) -> None:
    description = {**grown(KINDS[3], 2, 1).describe(), **change}
    with pytest.raises(ValueError, match=match):
        SavedState({name: value for name, value in description.items() if value is not None})


def test_pieces_that_are_there_twice_are_refused() -> None:
    for kind in KINDS:
        store = grown(kind, 2, 1)
        pieces = saved(store, Random(1))
        with pytest.raises(ValueError, match=r"second time|here already|twice"):
            list(view_saved(store.describe(), pieces + pieces))
