"""Savepoints on demand: somebody wishes for one, the next snapshot is kept under that name, and they are told.

A wish waits on worker 0. The announcer takes a cut for it as soon as it can; the snapshot is named when its manifest is
there and before anybody is told of it; the wish is granted when all workers' sinks have committed. A wish that is
withdrawn leaves no savepoint behind, whenever that happens.

Such a savepoint has no tokens of sinks: the output before it is this run's, which commits it, or does when it goes on
after a crash. Whoever starts from the savepoint beside this run must neither commit it again nor miss it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import trio

from dataflow.build.cuts import FOREVER
from dataflow.errors import DataflowError
from dataflow.recovery.catalogue import (
    choose,
    delete_savepoint,
    list_dataflows,
    list_savepoints,
    name_savepoint,
    read_manifest,
)
from dataflow.recovery.manifest import Manifest, SnapshotDamaged
from dataflow.recovery.opening import open_storage
from dataflow.recovery.parts import SnapshotOutcome
from dataflow.recovery.storage import AlreadyThere, Storage, StorageError
from dataflow.run.signal import Signal
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

_PATIENCE = 5.0  # seconds to take a savepoint back that is not wanted any more


class SaveFailed(DataflowError):
    """A savepoint could not be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A snapshot that is kept under a name."""

    dataflow: str
    number: int
    time: Time


class Wish:
    """A savepoint of one dataflow that somebody waits for."""

    def __init__(self, storage: Storage, name: str) -> None:
        self.name = name
        self._storage = storage
        self._saved: Saved | None = None  # set when it has been named
        self._why = ""
        self._done = trio.Event()
        self._withdrawn = False

    @property
    def pending(self) -> bool:
        """Whether somebody still waits for it."""
        return not (self._withdrawn or self._done.is_set())

    async def keep(self, manifest: Manifest) -> None:
        """Names a snapshot, unless the wish is withdrawn, also if that happens meanwhile."""
        if not self.pending:
            return
        manifest = _without_output(manifest)
        try:
            await name_savepoint(self._storage, manifest, self.name)
        except AlreadyThere:
            self.refuse(_taken(self.name, manifest.dataflow, self._storage))
            return
        except StorageError as error:  # which may have had its effect
            if not await self._is_there(manifest):
                self.refuse(f"snapshot {manifest.number} could not be kept as {self.name!r}: {error}")
                return
        self._saved = Saved(manifest.dataflow, manifest.number, manifest.time)
        if self._withdrawn:
            await self._take_back()

    async def _is_there(self, manifest: Manifest) -> bool:
        try:
            there = await read_manifest(self._storage, manifest.dataflow, self.name)
        except (StorageError, SnapshotDamaged):
            return False
        return there.number == manifest.number  # which no other snapshot ever has

    def grant(self) -> None:
        """All is done for the snapshot that was named."""
        if self._saved is not None:
            self._done.set()

    def refuse(self, why: str) -> None:
        """It cannot be had."""
        if self.pending:
            self._why = why
            self._done.set()

    async def wait(self) -> Saved:
        """Waits for the savepoint; SaveFailed if it cannot be had."""
        await self._done.wait()
        if self._saved is None:
            raise SaveFailed(self._why)
        return self._saved

    async def withdraw(self) -> None:
        """Nobody wants it any more: a savepoint that is there already is deleted."""
        self._withdrawn = True
        await self._take_back()

    async def _take_back(self) -> None:
        if self._saved is not None:
            saved, self._saved = self._saved, None
            await delete_savepoint(self._storage, saved.dataflow, self.name)


class Wishes:
    """The wishes for savepoints of one dataflow, on worker 0."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting: list[Wish] = []  # for a cut
        self._promised: dict[Time, list[Wish]] = {}  # by cut that was announced
        self.news = Signal()  # there may be something to do for them

    def add(self, name: str) -> Wish:
        """A wish for the next snapshot."""
        wish = Wish(self._storage, name)
        self._waiting.append(wish)
        self.news.set()
        return wish

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a cut to be announced."""
        self._waiting = [wish for wish in self._waiting if wish.pending]
        return bool(self._waiting)

    def promise(self, cut: Time) -> None:
        """A cut is announced: it is for all that wait."""
        self._promised.setdefault(cut, []).extend(self._waiting)
        self._waiting = []

    async def keep(self, outcome: SnapshotOutcome, manifest: Manifest | None) -> None:
        """Names a snapshot whose manifest is there, before anybody is told of it. The final one is for all."""
        if outcome.cut == FOREVER:
            self.promise(FOREVER)
        if outcome.number is not None and manifest is not None:
            for wish in self._promised.get(outcome.cut, ()):
                await wish.keep(manifest)

    def promised(self, cut: Time) -> bool:
        """Whether somebody waits for the snapshot at that cut."""
        return bool(self._promised.get(cut))

    def concluded(self, outcome: SnapshotOutcome) -> None:
        """A snapshot is durable and its output committed, or it was given up."""
        for wish in self._promised.pop(outcome.cut, ()):
            if outcome.number is None:
                wish.refuse(f"the snapshot was given up: {outcome.why}")
            wish.grant()

    async def keep_last(self, manifest: Manifest) -> None:
        """Nothing was done since a snapshot: it is what those who wait want."""
        wishes, self._waiting = self._waiting, []
        for wish in wishes:
            await wish.keep(manifest)
            wish.grant()


# A run


async def save_run(pump: Pump, name: str) -> list[Saved]:
    """Keeps a snapshot of each dataflow of a run under a name: of all, or of none. For worker 0.

    Dataflows that are complete, or not built yet, have their last snapshot in the storage.
    """
    assert pump.index == 0
    if not name:
        raise SaveFailed("a savepoint needs a name")
    if pump.recovery is None:
        raise SaveFailed("this run keeps no snapshots: say where, with --recovery WHERE, when you start it")
    storage = open_storage(pump.recovery.recovery.where)
    keepers = {dataflow.name: dataflow.keeper for dataflow in pump.dataflows if dataflow.keeper is not None}
    others = [dataflow for dataflow in await list_dataflows(storage) if dataflow not in keepers]
    for dataflow in (*keepers, *others):
        if name in await list_savepoints(storage, dataflow):
            raise SaveFailed(_taken(name, dataflow, storage))
    wishes = [keeper.wish(name) for keeper in keepers.values()]
    try:
        for dataflow in others:
            manifest = await choose(storage, dataflow)
            if manifest is not None and manifest.time is not None:
                wishes.append(wish := Wish(storage, name))
                await wish.keep(manifest)
                wish.grant()
        if not wishes:
            raise SaveFailed("nothing is built yet, and nothing was saved before: try again in a moment")
        saved = [await wish.wait() for wish in wishes]
    except BaseException:
        await _withdraw(wishes)
        raise
    return sorted(saved, key=lambda each: each.dataflow)


def _without_output(manifest: Manifest) -> Manifest:
    """Sinks' tokens are left out, which are their plain shares too."""
    shares = {name: share for name, share in manifest.shares.items() if name not in manifest.tokens}
    return replace(manifest, shares=shares, tokens={})


async def _withdraw(wishes: Iterable[Wish]) -> None:
    """Half a savepoint would be worse than none. What a storage does not delete now stays, and has its name."""
    with trio.move_on_after(_PATIENCE, shield=True):
        for wish in wishes:
            with suppress(StorageError):  # the reason why there is no savepoint is what people need to know
                await wish.withdraw()


def _taken(name: str, dataflow: str, storage: Storage) -> str:
    return (
        f"there is a savepoint {name!r} of {dataflow!r} in {storage.title} already: choose another name, or delete it "
        f"(python -m dataflow snapshots {storage.title} --forget {name})"
    )
