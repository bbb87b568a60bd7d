"""A store of state in Python objects: one object for each bin, and one for each key that lives apart.

A batch is a list of (place, record): whoever routes a record knows its bin, or that its key lives apart, and need not
find that out twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.channels.binned import Binned
from dataflow.channels.blame import name_record
from dataflow.channels.pact import Batch
from dataflow.state.arrays import Bins, Flags, Touch
from dataflow.state.pieces import Piece
from dataflow.state.store import BinView, Key, Numbers, Store
from dataflow.state.stores.portions import Address, Place
from dataflow.state.stores.row_bins import RowBins
from dataflow.state.values import Record, State
from dataflow.time.order import Time

_NAMED = 8  # keys that an error names

Rows: TypeAlias = list[tuple[Place, Record]]
RowBatch: TypeAlias = Rows | Binned
Groups: TypeAlias = dict[Place, list[list[Record]]]  # records by place and input
KeyOf: TypeAlias = Callable[[Record], Key]

Apply: TypeAlias = Callable[[Time, list[list[Record]], State, "Postponer"], Iterable[Record]]
"""(time, records by input, the state of their place, postponer): what comes out."""


class Postponer:
    """Puts records of the current place off until a later time (the extended notificator of section 4.3.2)."""

    __slots__ = ("_bins", "now", "place")

    def __init__(self, bins: RowBins) -> None:
        self._bins = bins
        self.place: Place = 0
        self.now: Time = None

    def notify_at(self, time: Time, record: Record, port: int = 0) -> None:
        """Presents `record` to the fold again, at a later time."""
        if not time > self.now:
            raise ValueError(f"a record can be put off until later than {self.now!r}, not until {time!r}")
        self._bins.put_off(self.place, time, ((port, record),))


class RowStore(Store[RowBatch]):
    """State in Python objects. `keys`: by input, the key of a record. `bin_of`: the bin of a key."""

    def __init__(
        self,
        name: str,
        bins: int,
        keys: Sequence[KeyOf],
        bin_of: Callable[[Key], int],
        initial: Callable[[], State],
        apply: Apply,
    ) -> None:
        self.name = name
        self.bins = bins
        self.held = RowBins(initial)
        self.records: Numbers = np.zeros(bins, np.int64)
        self._keys = keys
        self._bin_of = bin_of
        self._apply = apply
        self._postponer = Postponer(self.held)
        self._changed: set[int] | None = None  # bins, once somebody asks
        self._touch: Touch | None = None  # while some bins are frozen for a snapshot

    # Records, in the order of time

    def accept(self, batch: Batch) -> RowBatch:
        assert isinstance(batch, list)  # F made it, or an exchange of bins
        if isinstance(batch, Binned):
            batch.require_below(self.bins, self.name)
        return batch

    @property
    def least_pending(self) -> Time | None:
        return self.held.least_pending

    def run(self, time: Time, batches: Sequence[Sequence[RowBatch]]) -> Sequence[Batch]:
        groups = self._grouped(batches)
        self._count(groups)
        if self._touch is not None:
            places = dict.fromkeys([*groups, *self.held.due_places(time)])
            self._touch(place for place in places if isinstance(place, int))
        for place, records in self.held.due(time).items():
            if place not in groups:
                groups[place] = [[] for _ in self._keys]
            for port, record in records:
                groups[place][port].append(record)
        if self._changed is not None:
            self._changed.update(place for place in groups if isinstance(place, int))
        self._postponer.now = time
        results: list[Record] = []
        for place, parts in groups.items():
            self._postponer.place = place
            try:
                results.extend(self._apply(time, parts, self.held.state(place), self._postponer))
            except Exception as error:
                where = f"in bin {place}" if isinstance(place, int) else f"for the key {place[0]!r}, which is pinned,"
                error.add_note(f"{where} at {time!r}{self._among(parts)}")
                if sum(map(len, parts)) == 1:  # of several it may be any
                    name_record(error, *itertools.chain(*parts), time=time)
                raise
        return [results]

    def _grouped(self, batches: Sequence[Sequence[RowBatch]]) -> Groups:
        groups: Groups = {}
        for port, parts in enumerate(batches):
            adding: dict[Place, Callable[[Record], None]] = {}  # by place, the method that adds to its records
            pairs: list[Rows] = []
            for part in parts:
                if not isinstance(part, Binned):
                    pairs.append(part)
                    continue
                for number, records in part.groups():
                    if number not in groups:
                        groups[number] = [[] for _ in self._keys]
                    groups[number][port] += records
            for place, record in itertools.chain.from_iterable(pairs):
                add = adding.get(place)
                if add is None:
                    if place not in groups:
                        groups[place] = [[] for _ in self._keys]
                    add = adding[place] = groups[place][port].append
                add(record)
        return groups

    def _count(self, groups: Groups) -> None:
        """Counts the records that have come, for statistics."""
        for place, records in groups.items():
            if isinstance(place, int):
                self.records[place] += sum(map(len, records))
            else:
                self.apart_records += sum(map(len, records))

    def _among(self, records: list[list[Record]]) -> str:
        """The keys of records, of which one is to blame for an error."""
        try:
            keys = dict.fromkeys(key(record) for key, part in zip(self._keys, records, strict=True) for record in part)
        except Exception:  # a record that was put off may be anything; the error that is being told matters more
            return ""
        names = [repr(key) for key in itertools.islice(keys, _NAMED)] + ["..."] * (len(keys) > _NAMED)
        return f", among records of {', '.join(names)}"

    # Bins and single keys

    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        self._mark(bin)
        return self.held.depart(Address(bin), limit)

    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        return self.held.copy(Address(bin), limit)

    def freeze(self, bins: Bins, touch: Touch) -> bool:
        self._touch = touch
        return True

    def thaw(self) -> None:
        self._touch = None

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        to = Address(self._bin_of(key), (key,), apart)
        if was_apart:
            return self.held.depart(to, limit)
        self._mark(to.bin)
        return self.held.depart_key(to, self._keys, limit)

    def copy_apart(self, limit: int) -> Iterator[Piece]:
        for key in self.held.apart_keys:
            yield from self.held.copy(Address(self._bin_of(key), (key,), apart=True), limit)

    def put(self, piece: Piece) -> None:
        if piece.part != 0 or piece.bin >= self.bins:
            raise ValueError(f"a piece of part {piece.part} of bin {piece.bin}, of which there is none")
        self._mark(piece.bin)
        self.held.arrive(piece)

    def view(self, bin: int) -> BinView:
        state, pending = self.held.look(bin)
        entries = dict(state) if isinstance(state, dict) else {} if state is None else {None: state}
        return BinView(bin, int(self.sizes(bin, bin + 1)[0]), entries, pending)

    def view_apart(self) -> dict[Key, State]:
        return self.held.apart

    def look(self, bin: int, key: Key) -> tuple[bool, State]:
        """O(1) where a bin's state is a dictionary; else the state is the whole bin's."""
        state, _ = self.held.look((key,))
        if state is not None:
            return True, state.get(key) if isinstance(state, dict) else state
        state, _ = self.held.look(bin)
        if isinstance(state, dict):
            return key in state, state.get(key)
        return state is not None, state

    def occupied(self) -> NDArray[np.intp]:
        return np.array(sorted(self.held.numbers), np.intp)

    def has(self, bins: Bins) -> Flags:
        return np.isin(bins, self.occupied())

    def describe(self) -> dict[str, str]:
        return {"store": "rows", "shards": str(self.bins)}

    @property
    def key_count(self) -> int:
        return self.held.key_count

    def sizes(self, first: int, end: int) -> Numbers:
        return self.held.sizes(self.bins)[first:end]

    def track_changes(self) -> None:
        if self._changed is None:
            self._changed = set(self.held.numbers)

    def take_changed(self) -> NDArray[np.intp]:
        if self._changed is None:
            raise AssertionError(f"nobody asked {self.name} to track changes")
        changed, self._changed = self._changed, set()
        return np.array(sorted(changed), np.intp)

    def _mark(self, bin: int) -> None:
        if self._changed is not None:
            self._changed.add(bin)
        if self._touch is not None:
            self._touch([bin])
