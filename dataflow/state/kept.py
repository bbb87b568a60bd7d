"""What a stateful operator gives to a cut, and gets back: its shards (docs/internals/recovery.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, Protocol

import numpy as np

from dataflow.build.cuts import PIECE, FrozenShards, Gate, Place, ShardedParticipant, Share, StateMismatch
from dataflow.state.durable import DurableStore
from dataflow.state.memory.slab import Slab
from dataflow.state.pieces import Words
from dataflow.state.store import B, Store
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.state.converting import Conversion


class Companion(Protocol):
    """What belongs to an operator's state besides the state: where its shards are."""

    def share(self, cut: Time) -> object:
        """What was so before a cut: plain data."""

    def restore(self, shares: Mapping[int, object]) -> None:
        """What was so, by old worker."""

    def owns(self, shard: int) -> bool:
        """Whether a shard is this worker's, as of where the run goes on."""

    def owns_before(self, shard: int, cut: Time) -> bool:
        """Whether a shard was this worker's just before a cut."""


class Dealt:
    """Shards that stay: shard s belongs to worker s mod workers."""

    def __init__(self, worker: int, peers: int) -> None:
        self._worker = worker
        self._peers = peers

    def share(self, cut: Time) -> object:
        """Nothing that is not known."""
        return None

    def restore(self, shares: Mapping[int, object]) -> None:
        """They are dealt out anew."""

    def owns(self, shard: int) -> bool:
        """Whether a shard is this worker's."""
        return shard % self._peers == self._worker

    def owns_before(self, shard: int, cut: Time) -> bool:
        """The same, always."""
        return self.owns(shard)


class KeptState(ShardedParticipant, Generic[B]):
    """The share of a store. Its host asks the gate, gives the share when it is due, and calls `touch` before anything
    changes."""

    def __init__(self, name: str, store: Store[B], companion: Companion, dataflow: Dataflow) -> None:
        self.name = name
        self.shards = store.bins
        self.gate: Gate | None = None
        self._store = store
        self._durable = DurableStore(store)
        self._companion = companion
        self._dataflow = dataflow
        self._worker, self._peers = dataflow.pump.index, dataflow.pump.peers
        self._frozen: FrozenShards | None = None  # while some of it may still have to be copied
        self._saves_itself = True  # whether the store has what is frozen copied before it changes
        self._slab = Slab()
        self._conversion: Conversion | None = None  # of state that was saved with other fields
        self._marked: set[int] = set()  # shards that count as changed
        self._on_resume: Callable[[], None] = lambda: None
        self.watchers: list[Callable[[], None]] = []  # called when the gate has moved

    def enrol(self, activate: Callable[[], None], on_resume: Callable[[], None]) -> Gate | None:
        """Takes part in cuts, if there are any; the gate."""
        self.watchers.append(activate)
        self.gate = self._dataflow.enrol(self, self._moved)
        self._on_resume = on_resume
        if self.gate is not None:
            self._durable.track_changes()
        return self.gate

    def _moved(self) -> None:
        for watcher in self.watchers:
            watcher()

    def give(self, cut: Time, seen: Time | None) -> None:
        """Gives the share of a cut: everything before it has been applied."""
        assert self.gate is not None
        self.touch()  # of an earlier cut that is still being written
        changed = np.union1d(self._durable.take_changed(), np.array(sorted(self._marked), np.intp)).astype(np.intp)
        self._marked.clear()
        here = self._store.has(changed)
        empty = [shard for shard in changed[~here].tolist() if self._companion.owns_before(shard, cut)]
        self._slab.reset()  # what was copied for the last snapshot has been written
        shards = changed[here]
        self._saves_itself = not len(shards) or self._store.freeze(shards, self.touch)
        size = int(self._durable.sizes()[shards].sum())
        self._frozen = FrozenShards(self._copy, shards.tolist(), empty, self._store.thaw, size)
        apart = [piece.tobytes() for piece in self._durable.copy_apart(1 << 17)]
        self.gate.give(Share([self._companion.share(cut), apart], self._frozen, seen=seen))

    def _copy(self, shard: int, place: Place | None) -> list[Words]:
        return self._durable.copy_frozen(shard, PIECE, place or self._slab.take)

    def get_ready(self) -> Iterator[None]:
        """Touches memory for a copy of all that is here, so that taking one does not take long. The last snapshot has
        been written, or given up."""
        if self._store.undoes_changes:
            return iter(())
        self._slab.reset()
        return self._slab.grow(int(self._durable.sizes().sum()) // 8)

    def before_changing(self) -> None:
        """Bins that are here are about to change: by records, by a key that goes back into its bin, or by another plan.
        Most stores know which, and have them copied themselves."""
        if not self._saves_itself:
            self.touch()

    def touch(self, shards: Iterable[int] | None = None) -> None:
        """These shards (all, if None) are about to change or to leave."""
        if self._frozen is not None:
            self._frozen.touch(shards)
            if self._frozen.complete:
                self._frozen = None

    # As a participant

    def describe(self) -> Mapping[str, str]:
        """What the state is."""
        return self._durable.describe()

    def require_fit(self, saved: Mapping[str, str]) -> None:
        """StateMismatch unless the state was saved under the same description."""
        mine = dict(self.describe())
        if mine == dict(saved):
            return
        from dataflow.state.converting import Conversion, convertible  # rows need no compiler
        from dataflow.state.stores.with_pending import WithPending

        store = self._store.upgradable()
        if isinstance(store, WithPending) and convertible(saved, mine):
            self._conversion = Conversion(self.name, saved, store)
        else:
            raise StateMismatch(
                f"the state of {self.name!r} was saved as {_listed(saved)}, and the program has {_listed(mine)}: "
                f"convert it (fold(..., upgrade=...), for folds on columns), or drop it (--drop {self.name})"
            )

    def owns(self, shard: int) -> bool:
        """Whether a shard is this worker's."""
        return self._conversion is not None or self._companion.owns(shard)  # what was another shard may be ours now

    def put(self, shard: int, piece: Words) -> None:
        """Puts a piece back."""
        if self._conversion is not None:
            self._conversion.put(piece)
        else:
            self._durable.put(piece)

    def restore(self, shares: Mapping[int, object]) -> None:
        """Takes what is known of placement, and keys that live apart from their shards."""
        companions: dict[int, object] = {}
        for worker, share in shares.items():
            assert isinstance(share, list)
            companions[worker], apart = share
            if apart and self._conversion is not None:
                raise StateMismatch(
                    f"the state of {self.name!r} cannot be converted while keys are pinned: unpin them first, in the "
                    "old program"
                )
            if worker % self._peers == self._worker:
                for piece in apart:
                    self._durable.put(np.frombuffer(piece, np.uint64).copy())  # compiled code wants to own it
        self._companion.restore(companions)

    def resume(self) -> None:
        """What came back is what was saved: it counts as unchanged, unless it was converted."""
        if self._conversion is not None:
            self._conversion.finish(self._companion.owns)
            self._conversion = None
            self._marked.update(filter(self._companion.owns, range(self.shards)))
        self._durable.take_changed()
        self._on_resume()

    def mark(self, shards: Iterable[int]) -> None:
        """These shards count as changed."""
        self._marked.update(shards)


def _listed(description: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in description.items())
