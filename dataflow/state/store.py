"""The door to keyed state: what a store is to those who host it, move it, save it and look into it.

A store holds all keyed state of one stateful operator on one worker. Keys are grouped into *bins*, which are what moves
and what is saved; a single key may live apart from its bin. Everything that reads or changes keyed state goes through
this door: the native operators, Megaphone's F and S, reports and tests. Nobody outside knows how a store lays its state
out in memory.

Rows and columns have stores of their own: `dataflow.state.stores`. B is a batch as the store takes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataflow.channels.pact import Batch
from dataflow.state.arrays import Bins, Flags, Ints, Touch
from dataflow.state.pieces import Piece
from dataflow.state.values import Key as Key
from dataflow.state.values import Record, State
from dataflow.time.order import Time

B = TypeVar("B", bound=Sized)
Numbers: TypeAlias = Ints
"""One number for each bin."""


class UnmovableState(TypeError):
    """State that cannot be serialised, and so cannot leave its process."""


@dataclass(frozen=True, slots=True)
class BinView:
    """What is in a bin, to look at. In rows the values are the user's own objects: nobody may change them."""

    bin: int
    bytes: int  # about what would travel
    entries: Mapping[Key, State]  # by key its state: a user's object in rows, the fields by name in columns
    pending: Sequence[tuple[Time, Record]]  # post-dated records, in the order of their times


class Store(ABC, Generic[B]):
    """All keyed state of one operator on one worker.

    Hosts apply records in the order of time: `run` for one time, once it is complete. A store may say that it can do
    several times together without a difference: see `fires_together` and `takes_together`.
    """

    name: str
    bins: int
    fires_together: bool = False  # whether `receive` and `fire` may take the place of `run`
    takes_together: bool = False  # whether `run_all` may take the records of several times
    records: NDArray[np.signedinteger]  # applied so far, by bin; may come round at 32 bits
    apart_records: int = 0  # applied so far to keys that live apart
    undoes_changes: bool = False  # whether frozen bins need not be copied before records change them
    last_time: int | None = None  # that it can apply records at; None if times may be anything

    # Records, in the order of time

    @abstractmethod
    def accept(self, batch: Batch) -> B:
        """A batch as the store takes it; TypeError if it cannot be one."""

    @property
    @abstractmethod
    def least_pending(self) -> Time | None:
        """The least time to which a record was post-dated."""

    @abstractmethod
    def run(self, time: Time, batches: Sequence[Sequence[B]]) -> Sequence[Batch]:
        """Applies everything at a time, the batches of each input and what was post-dated to it; what comes out."""

    def receive(self, time: Time, batches: Sequence[Sequence[B]]) -> Sequence[Batch]:
        """Applies the batches of a time, and nothing that was post-dated; what comes out."""
        raise AssertionError(f"{self.name} cannot apply what comes without what is due")

    def fire(self, until: Time) -> Sequence[tuple[Time, Sequence[Batch]]]:
        """Applies what was post-dated to times up to one, or to the first of them; what comes out at each."""
        raise AssertionError(f"{self.name} cannot apply what is due at several times together")

    def can_take_together(self, batches: Sequence[Sequence[B]]) -> bool:
        """Whether `run_all` may take just these batches, of several times."""
        return False

    def run_all(self, times: Sequence[Time], batches: Sequence[Sequence[B]]) -> Sequence[Sequence[Batch]]:
        """Applies the batches of several times of the one input, in order; what comes out at each."""
        raise AssertionError(f"{self.name} cannot take the records of several times together")

    # Bins and single keys: export, import, inspect

    @abstractmethod
    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        """Takes a bin out, with its post-dated records, in pieces of at most `limit` words of state. The bin has left
        when the iterator is exhausted; until then nobody may change it. A piece may be a view of the store's memory:
        it is good until the next one is asked for. None if nothing is in the bin."""

    @abstractmethod
    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        """The same pieces; the bin stays as it is. They may be views: good until the bin changes."""

    def freeze(self, bins: Bins, touch: Touch) -> bool:
        """These bins are part of a snapshot, as they are now. Until `thaw` the store has each of them copied, by
        `touch`, before it changes, or can undo the change in a copy. False if it cannot: then whoever applies records,
        puts a key back into its bin or gives bins another plan must have all bins copied first."""
        return False

    def thaw(self) -> None:
        """All have been copied, or nobody wants them any more."""

    def copy_frozen(self, bin: int, limit: int) -> Iterator[Piece]:
        """The pieces of a frozen bin, as `copy_bin` would have given them when it was frozen: each is good until the
        next is asked for. Once for each; the bin may change freely afterwards."""
        return self.copy_bin(bin, limit)

    @abstractmethod
    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        """Takes a single key out of its bin (or of its place apart), to live apart elsewhere or to go back."""

    @abstractmethod
    def copy_apart(self, limit: int) -> Iterator[Piece]:
        """Every key that lives apart here, in pieces; all stay as they are."""

    @abstractmethod
    def put(self, piece: Piece) -> None:
        """Takes a piece in. Pieces come in any order; the bin or key is there when all have come, and nobody may ask
        for it before. ValueError if the piece cannot be right or comes twice; AssertionError if the bin is here
        already, which no migration and no snapshot may cause."""

    @abstractmethod
    def view(self, bin: int) -> BinView:
        """What is in a bin: its keys with their state, and its post-dated records. O(bin)."""

    @abstractmethod
    def view_apart(self) -> Mapping[Key, State]:
        """By key that lives apart here, a copy of its state, as far as it has any. O(those keys)."""

    def look(self, bin: int, key: Key) -> tuple[bool, State]:
        """Whether a key (of that bin) has state here, in its bin or apart from it, and the state. Nothing changes.
        O(bin), or less where a store knows better."""
        apart = self.view_apart()
        entries = apart if key in apart else self.view(bin).entries
        return key in entries, entries.get(key)

    @abstractmethod
    def occupied(self) -> NDArray[np.intp]:
        """The bins that have something in them here."""

    # What is known of bins

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """What the state is: `store`, the kind of this one, `shards`, and the type of each field. State can be put into
        a store of the same description only."""

    @property
    @abstractmethod
    def key_count(self) -> int:
        """How many keys have state in bins here; in rows whose state is not by key, how many bins."""

    @property
    def byte_count(self) -> int:
        """About how many bytes would travel if all bins left. O(bins)."""
        return int(self.sizes(0, self.bins).sum())

    @abstractmethod
    def has(self, bins: Bins) -> Flags:
        """Whether there is anything of each of these bins here: else it can leave without a word."""

    def upgradable(self) -> Store[B] | None:
        """The store of the bins, if state that was saved with other fields can be converted for it."""
        return None

    def prefault(self, size: int) -> None:  # Python objects have no memory to make ready
        """Touches so many bytes of memory for each part before they are needed: for a run that is measured, or one
        whose state will grow to a known size."""

    @abstractmethod
    def sizes(self, first: int, end: int) -> Numbers:
        """About how many bytes of each bin, from one number up to another, would travel. What has none is not here."""

    @abstractmethod
    def track_changes(self) -> None:
        """From now on `take_changed` says which bins have changed: at first, all that are here. Keys that live apart
        have no marks: they are few, and `copy_apart` gives all of them.

        Until this is asked for it costs nothing. Then it costs one pass over the keys of each batch: in `FoldStore`,
        with 16 million hashed keys in 2^8 and 2^12 bins, a record took 1.04 times as long (median of 40 pairs,
        quartiles 1.00 and 1.10).
        """

    @abstractmethod
    def take_changed(self) -> NDArray[np.intp]:
        """The bins that have changed since this was last asked (those that left or arrived among them)."""
