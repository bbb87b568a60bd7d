"""Keys that leave their bins and go back at every time, and a writer of snapshots that takes as long as it can: what
happens to a bin at the time of a cut, or later, is not in the snapshot of that cut (C3)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import trio

from dataflow.build.cuts import PIECE, FrozenShards
from dataflow.recovery.keeper import Keeper
from dataflow.state.kept import KeptState
from tests.crashes.description import COLUMNS, ROWS, Control, Feed, Node, Output, Program, Send, Update
from tests.crashes.driving import Case, Life, Plan
from tests.crashes.generating import METHODS, PLANS
from tests.crashes.outside import WrongRows
from tests.engine.harness import failsafe

KINDS = {
    "totals": ROWS, "versus": ROWS, "row_running": ROWS, "machine": COLUMNS, "two_folds": COLUMNS,
    "batches": COLUMNS, "pairs": COLUMNS, "window_pairs": COLUMNS, "window_join": ROWS,
}  # fmt: skip
INPUTS = {"versus": 2, "two_folds": 2, "pairs": 2, "window_pairs": 2, "window_join": 3}
NUMBERS = {"pairs": 0, "window_pairs": 4, "window_join": 2}  # the others: by key
EPOCHS, KEYS, BINS, CASES = 8, 6, 2, 10
PINNED = (1, 2, 3)  # the others stay: either bin has some


class ChangedMeanwhile(AssertionError):
    """A shard is not what it was at the cut."""


@pytest.fixture(autouse=True)
def _writes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are copied when nothing else can happen, unless they must be before."""
    save = Keeper._save

    async def late(self: Any, shares: Any, seconds: float) -> Any:
        await trio.sleep(1)  # longer than main does
        return await save(self, shares, seconds)

    monkeypatch.setattr(Keeper, "_save", late)


@pytest.fixture
def _compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy is compared with what the shard was when the share was given."""
    give, copy = KeptState.give, KeptState._copy

    def give_and_note(self: Any, cut: Any, seen: Any) -> None:
        give(self, cut, seen)
        shards = () if self._frozen is None else self._frozen.shards
        self.noted = {shard: [words.tobytes() for words in self._durable.copy(shard, PIECE)] for shard in shards}

    def copy_and_compare(self: Any, shard: int, place: Any) -> Any:
        copied = copy(self, shard, place)
        if self.noted.pop(shard) != [words.tobytes() for words in copied]:
            raise ChangedMeanwhile(f"shard {shard} of {self.name} is not what it was at the cut")
        return copied

    monkeypatch.setattr(KeptState, "give", give_and_note)
    monkeypatch.setattr(KeptState, "_copy", copy_and_compare)


def program(kind: str, seed: int) -> Program:
    """An operator, some of whose keys change their place at every time; or whose plan changes at the cut. Main sleeps
    once: that is when a snapshot begins, mostly where keys go back."""
    chance, form = Random(f"pins {seed}"), KINDS[kind]
    feeds = tuple(Feed("input", form, 3, tuple(_sends(chance))) for _ in range(INPUTS.get(kind, 1)))
    inputs = tuple(Node("input", form, (), (i,)) for i in range(len(feeds)))
    refs = tuple((i, 0) for i in range(len(feeds)))
    node = Node(kind, form, refs, (NUMBERS.get(kind, 1),), 0)
    cut = chance.choice((3, 3, 4, 5, 5))
    updates = _replans(chance, cut) if kind == "window_join" else _pins(chance)
    control, output = Control(BINS, tuple(updates)), Output("append", (len(refs), 0))
    return Program(EPOCHS, feeds, (control,), (*inputs, node), (output,), ahead=EPOCHS, lazy=frozenset({cut}))


def _sends(chance: Random) -> Iterator[Send]:
    for epoch in range(EPOCHS):
        for slot in range(3):
            records = ((chance.randrange(KEYS), chance.randrange(12)) for _ in range(chance.choice((1, 2))))
            yield Send(slot, epoch, epoch, tuple(records))


def _pins(chance: Random) -> Iterator[Update]:
    for epoch in range(EPOCHS):
        for key in PINNED:  # together: a key that leaves its bin would have it copied before others go back
            yield Update(epoch, epoch, ("unpin", key) if epoch % 2 else ("pin", key, chance.randrange(3)))
        if chance.random() < 0.1:
            yield Update(epoch, epoch, ("move", chance.randrange(BINS), chance.randrange(3)))


def _replans(chance: Random, cut: int) -> Iterator[Update]:
    yield Update(cut, cut, ("replan", chance.choice(PLANS[1:]), chance.choice(METHODS)))


def run(kind: str, seed: int) -> Case:
    """A life that crashes after a snapshot, and one of fewer workers that goes on."""
    crashed = Life(3, seed, event=("put a manifest", 2))  # the first one is the claim
    case = Case([program(kind, seed)], Plan((crashed, Life(2, seed + 1)), 0.0), seed)
    case.run()
    return case


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_from_a_snapshot_at_which_keys_went_back(kind: str) -> None:
    with failsafe(120):
        crashed = sum(run(kind, seed).happened["after a snapshot"] for seed in range(CASES))
    assert crashed == CASES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("_compared")
def test_a_frozen_bin_is_copied_as_it_was(kind: str) -> None:
    with failsafe(120):
        for seed in range(CASES // 2):
            run(kind, seed)


@pytest.mark.parametrize("kind", ["totals", "machine", "pairs", "window_pairs"])
def test_a_bin_that_is_not_copied_before_is_found_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FrozenShards, "touch", lambda self, shards=None: None)
    with failsafe(120):
        assert any(fails(kind, seed) for seed in range(CASES))


def fails(kind: str, seed: int) -> bool:
    """Whether wrong rows come out."""
    try:
        run(kind, seed)
    except WrongRows:
        return True
    return False
