"""Broken variants that must be caught, one at a time: each breaks one rule of docs/internals/recovery.md by patching
the code that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
import trio

from dataflow.build import crossings
from dataflow.build.cuts import FrozenShards, Gate
from dataflow.operators.committed import _Committing
from dataflow.operators.positions import Positions
from dataflow.recovery import vault
from dataflow.recovery.gates import Gates
from dataflow.recovery.keeper import Keeper
from dataflow.recovery.restoring import Restoring
from dataflow.state.kept import KeptState
from dataflow.state.stores.row_bins import RowBins
from dataflow.state.tables import heaps
from dataflow.state.tables.pending import Pending
from megaphone.router.kept_placement import KeptPlacement
from tests.crashes.disk import Disk, dawdle
from tests.crashes.driving import random_plan
from tests.crashes.generating import random_program

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """A broken variant, and which cases could show it: programs with one of the kinds (any, if there are none), where
    snapshots are abandoned if that matters."""

    patch: Callable[[Patch], None]
    kinds: frozenset[str]
    abandoned: bool
    start: int  # from which seed on to look: some are rare

    def concerns(self, seed: int) -> bool:
        """Whether the case of a seed could show it."""
        if self.abandoned and random_plan(seed).failing < 0.1:
            return False
        return not self.kinds or bool(self.kinds & random_program(seed).kinds)


MUTANTS: dict[str, Fault] = {}


def concerns(
    *kinds: str, abandoned: bool = False, start: int = 0
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Registers a fault that only shows in programs with one of these kinds."""

    def register(fault: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[fault.__name__] = Fault(fault, frozenset(kinds), abandoned, start)
        return fault

    return register


# ------------------------------------------------------------------------------------------------------------- storage


@concerns()
def no_fsync(patch: Patch) -> None:
    """What is acknowledged is not durable: a crash tears it (M1)."""
    patch.setattr(Disk, "syncs", False)


@concerns("migratable", "native_running", "native_totals")
def manifest_before_files(patch: Patch) -> None:
    """Part files are put some time after they were said to be there (M1)."""
    store_part = vault.store_part

    class Later:
        def __init__(self, storage: Any) -> None:
            self.title = storage.title
            self._storage = storage
            self._chance = Random(1)

        async def put(self, name: str, data: bytes, *, if_absent: bool = False) -> None:
            async def put() -> None:
                for _ in range(10):
                    await dawdle(self._chance)
                await self._storage.put(name, blob)

            blob = bytes(data)
            trio.lowlevel.spawn_system_task(put)

    async def stored(storage: Any, *rest: Any, **options: Any) -> Any:
        return await store_part(Later(storage), *rest, **options)

    patch.setattr(vault, "store_part", stored)


# ------------------------------------------------------------------------------------------------------------- sources


def _position_moved(patch: Patch, by: int) -> None:
    before = Positions.before

    def moved(self: Positions, cut: int) -> dict[str, object]:
        return {name: max(0, int(str(at)) + by) for name, at in before(self, cut).items()}

    patch.setattr(Positions, "before", moved)


@concerns("source", "untimed")
def position_one_too_far(patch: Patch) -> None:
    """A source goes on behind a batch that was not sent before the cut."""
    _position_moved(patch, 1)


@concerns("source", "untimed")
def position_one_too_low(patch: Patch) -> None:
    """A source sends a batch again that was sent before the cut."""
    _position_moved(patch, -1)


# --------------------------------------------------------------------------------------------------------------- state


@concerns("totals", "versus", "native_totals")
def post_dated_forgotten(patch: Patch) -> None:
    """Post-dated records of rows are not in a snapshot."""
    put = KeptState.put

    def without(self: Any, shard: int, piece: Any) -> None:
        put(self, shard, piece)
        held: RowBins = self._store.held
        for time in [*held._pending.get(shard, ())]:
            held._forget(shard, time)

    patch.setattr(KeptState, "put", without)


@concerns("machine", "two_folds", "batches", "native_machine")
def post_dated_columns_forgotten(patch: Patch) -> None:
    """Post-dated records of columns are not seen where they come back."""
    put, arrived = KeptState.put, Pending.arrived

    def without(self: Any, shard: int, piece: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Pending, "arrived", lambda self, bin: heaps.set_leaf(self.tree, bin, heaps.NEVER))
            put(self, shard, piece)

    assert arrived is not None
    patch.setattr(KeptState, "put", without)


@concerns("delay", "feedback", "later", "windows")
def crossings_forgotten(patch: Patch) -> None:
    """What came in before the cut and goes out after it does not come back."""
    patch.setattr(crossings._Crossing, "restore", lambda self, shares: None)


@concerns("delay", "later")
def crossings_of_later_times(patch: Patch) -> None:
    """A share also has what came in after the cut, and comes again."""
    patch.setattr(crossings.Waiting, "_gives_share", _gives_everything)


def _gives_everything(self: Any) -> bool:
    gate = self.gate
    if gate is None or gate.cut is None or any(port.could_see(gate.cut - 1) for port in self._inputs):
        return False
    if self._items and self._items.peekitem(0)[0] < gate.cut:
        return False
    crossing = [[since, at, item] for at, (_, items) in self._items.items() for since, item in items]
    gate.give(crossings.Share(crossing, seen=self._seen))
    return True


@concerns("migratable", "native_running", "native_totals")
def share_one_time_late(patch: Patch) -> None:
    """The share of the cut at t has the effects of t as well."""

    def opens(self: Gate, time: int) -> bool:
        if time < self.limit or time == self.cut:
            return True
        self._blocked = True
        return False

    patch.setattr(Gate, "opens", opens)


@concerns("migratable", "native_running", "native_totals")
def gate_ignored(patch: Patch) -> None:
    """Stateful operators go on whatever the gate says (C2)."""
    opens = Gate.opens
    patch.setattr(Gate, "opens", lambda self, time: isinstance(self.participant, KeptState) or opens(self, time))


@concerns("migratable", "native_running", "native_totals")
def not_copied_before_it_changes(patch: Patch) -> None:
    """A frozen shard is copied when the writer asks for it, and not before it changes (C3)."""
    patch.setattr(FrozenShards, "touch", lambda self, shards=None: None)


@concerns("migratable", "native_running", "native_totals", abandoned=True)
def marks_lost(patch: Patch) -> None:
    """What was to be written with a snapshot that was abandoned does not count as changed."""

    def mark(self: Any, shards: Iterable[int]) -> None: ...

    patch.setattr(KeptState, "mark", mark)


@concerns("pin")
def pins_forgotten(patch: Patch) -> None:
    """Keys that lived apart from their bins have their state there, and nobody looks for it."""
    restore = KeptPlacement.restore

    def without(self: Any, shares: Mapping[int, Any]) -> None:
        restore(self, {worker: share and [share[0], [], *share[2:]] for worker, share in shares.items()})

    patch.setattr(KeptPlacement, "restore", without)


@concerns("pin", start=500)
def configuration_of_another_time(patch: Patch) -> None:
    """A snapshot has the last configuration that is final, and not the one before the cut. Bins come back to where that
    says, all the same; but a key that is pinned later is looked for apart from its bin."""
    share = KeptPlacement.share
    patch.setattr(KeptPlacement, "share", lambda self, cut: share(self, cut + 4))


@concerns("move", "moves", "assign")
def configuration_forgotten(patch: Patch) -> None:
    """Bins are dealt out anew after each crash."""
    restore = KeptPlacement.restore

    def without(self: Any, shares: Mapping[int, Any]) -> None:
        table = np.arange(len(shares[0][0]) // 2) % self._peers
        restore(self, {**shares, 0: [table.astype("<u2").tobytes(), *shares[0][1:]]})

    patch.setattr(KeptPlacement, "restore", without)


@concerns("merge", start=340)
def tree_forgotten(patch: Patch) -> None:
    """All bins are the finest after each crash."""
    restore = KeptPlacement.restore

    def without(self: Any, shares: Mapping[int, Any]) -> None:
        restore(self, {**shares, 0: shares[0][:4]})

    patch.setattr(KeptPlacement, "restore", without)


# --------------------------------------------------------------------------------------------------------------- sinks


@concerns()
def committed_before_the_manifest(patch: Patch) -> None:
    """Output becomes visible when it is prepared (M3)."""
    write = Keeper._write

    async def early(self: Any, cut: int, shares: Any, *rest: Any) -> None:
        for name, share in shares.items():
            if share.prepare is not None:
                share.prepare = _committing(self.participants[name].participant, cut, share.prepare)
        await write(self, cut, shares, *rest)

    patch.setattr(Keeper, "_write", early)


def _committing(participant: Any, cut: int, prepare: Any) -> Any:
    async def prepare_and_commit() -> object:
        token = await prepare()
        await participant.commit(cut, None, token)
        return token

    return prepare_and_commit


@concerns()
def tokens_not_committed_at_recovery(patch: Patch) -> None:
    """What a crash kept from becoming visible stays so (M3)."""

    async def nothing(self: Any, *rest: Any) -> None: ...

    patch.setattr(Restoring, "_commit", nothing)
    patch.setattr(_Committing, "restore", lambda self, shares: None)


@concerns()
def next_cut_too_soon(patch: Patch) -> None:
    """Output for the next cut is prepared before it is known what became of the one before."""

    def move(self: Any, gate: Gate) -> None:
        cut = next((cut for cut in self._cuts if cut > self._given[gate]), None)
        if cut is None or cut > self._frontier:
            gate.move(self._frontier, None)
        else:
            gate.move(cut, cut)

    patch.setattr(Gates, "_move", move)
