"""A store of bins in rows whose plans can change: joins and opaque plans.

A bin that has something to do by itself wakes at a time: that is what is post-dated here. The store finds bins by the
times at which they wake; what they do then is their own business. Of a bin that has nothing in it but a plan the store
keeps just that: of 2^20 bins most may be empty, and a replan is for all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from dataflow.channels.pact import Batch
from dataflow.state.arrays import Bins, Flags
from dataflow.state.pieces import Piece
from dataflow.state.store import BinView, Key, Numbers, UnmovableState
from dataflow.state.stores.portions import BIN, Address, Arriving, depart
from dataflow.state.stores.row_store import Rows
from dataflow.state.values import Record, State
from dataflow.time.order import Time
from megaphone.control.replans import Replan
from megaphone.plans.bins import Asked, BinMaker, PlanBin
from megaphone.plans.door import PlanStore, PlanView

_EMPTY = 64  # bytes of a bin that has nothing but a plan, about


class Wakes:
    """By bin, the time at which it wakes. Costs: everything O(log times)."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._at: SortedDict[int, set[int]] = SortedDict()  # invariant: the same by time, without empty sets

    def set(self, bin: int, time: int | None) -> None:
        """A bin wakes at a time, or not at all."""
        before = self._of.pop(bin, None)
        if before is not None:
            self._at[before].discard(bin)
            if not self._at[before]:
                del self._at[before]
        if time is not None:
            self._of[bin] = time
            if time not in self._at:
                self._at[time] = set()
            self._at[time].add(bin)

    def of(self, bin: int) -> int | None:
        """When a bin wakes."""
        return self._of.get(bin)

    @property
    def least(self) -> int | None:
        """When the next one does."""
        return self._at.peekitem(0)[0] if self._at else None

    def due(self, time: int) -> list[int]:
        """The bins that wake at a time."""
        return sorted(self._at.get(time, ()))


class PlanRowStore(PlanStore[Rows]):
    """Bins in rows, each with a plan."""

    def __init__(self, name: str, bins: int, maker: BinMaker) -> None:
        self.name = name
        self.bins = bins
        self.records: Numbers = np.zeros(bins, np.int64)
        self._maker = maker
        self._held: dict[int, PlanBin] = {}
        self._empty: dict[int, str] = {}  # the plans of bins that have nothing else, and not the first one
        self._noted: dict[int, list[Asked]] = {}  # for bins that may not have arrived
        self._arriving: dict[int, Arriving] = {}  # bins of which pieces are missing
        self._wakes = Wakes()
        self._working: dict[int, None] = {}  # bins with work for the background, in the order of their turns
        self._changed: set[int] | None = None

    # Records, in the order of time

    def accept(self, batch: Batch) -> Rows:
        assert isinstance(batch, list)  # F made it
        return batch

    @property
    def least_pending(self) -> Time | None:
        return self._wakes.least

    def run(self, time: Time, batches: Sequence[Sequence[Rows]]) -> Sequence[Batch]:
        groups = self._grouped(batches)
        for number, parts in groups.items():
            self.records[number] += sum(map(len, parts))
        for number in self._wakes.due(time):
            if number in groups or number in self._held:
                groups.setdefault(number, self._nothing())
            else:
                self._replan_empty(number)
        results: list[Record] = []
        for number, parts in groups.items():
            bin = self._settled(number)
            try:
                results += bin.run(time, dict(zip(self._maker.streams, parts, strict=True)))
            except Exception as error:
                error.add_note(f"in bin {number} at {time!r}")
                raise
            self._file(number, bin)
        return [results]

    def _grouped(self, batches: Sequence[Sequence[Rows]]) -> dict[int, list[list[Record]]]:
        groups: dict[int, list[list[Record]]] = {}
        for port, parts in enumerate(batches):
            for place, record in itertools.chain.from_iterable(parts):
                assert isinstance(place, int), "no key of a plan's bins can be pinned"
                if place not in groups:
                    groups[place] = self._nothing()
                groups[place][port].append(record)
        return groups

    def _nothing(self) -> list[list[Record]]:
        return [[] for _ in self._maker.streams]

    def _settled(self, number: int) -> PlanBin:
        """A bin that is here, or is made; it has heard of its replans."""
        assert number not in self._arriving, f"bin {number} is asked for, and pieces of it are missing"
        if number not in self._held:
            self._held[number] = self._maker.new(number, self._empty.pop(number, self._maker.first))
        bin = self._held[number]
        for asked in self._noted.pop(number, ()):
            bin.note(asked)
        return bin

    def _file(self, number: int, bin: PlanBin) -> None:
        """Files a bin where it will be found again, after it has changed."""
        self._mark(number)
        self._wakes.set(number, bin.wakes)
        if bin.is_empty:
            del self._held[number]
            self._keep_plan(number, bin.plan.plan)
        if bin.can_work:
            self._working[number] = None
        else:
            self._working.pop(number, None)

    def _keep_plan(self, number: int, plan: str) -> None:
        if plan == self._maker.first:
            self._empty.pop(number, None)
        else:
            self._empty[number] = plan

    # Plans

    def _replan_empty(self, number: int) -> None:
        """A bin in which there is nothing gets the last plan that was asked for, without a word."""
        self._mark(number)
        self._wakes.set(number, None)
        self._keep_plan(number, self._noted.pop(number)[-1].plan)

    def note(self, time: int, bins: NDArray[np.int64], replan: Replan) -> None:
        assert replan.plan is not None and replan.method is not None, "a plan space has checked it"
        asked = Asked(time, replan.plan, replan.method, replan.share, replan.background, replan.order)
        for number in bins.tolist():
            self._noted.setdefault(number, []).append(asked)
            before = self._wakes.of(number)
            self._wakes.set(number, time if before is None else min(before, time))

    @property
    def next_work(self) -> int | None:
        return next(iter(self._working), None)

    def work(self, budget: int) -> None:
        number = self.next_work
        assert number is not None, "there is nothing to do"
        del self._working[number]  # its turn comes again after the others'
        bin = self._settled(number)
        bin.work(budget)
        self._file(number, bin)

    def plan_of(self, bin: int) -> PlanView:
        return self._held[bin].plan if bin in self._held else PlanView(self._empty.get(bin, self._maker.first))

    # Bins

    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        self._mark(bin)
        for piece in self._pieces(bin, limit):
            if piece.head[0] == BIN:  # all of it has been encoded: what cannot move stays, whole
                self._held.pop(bin, None)
                self._empty.pop(bin, None)
                self._wakes.set(bin, None)
                self._working.pop(bin, None)
            yield piece

    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        return self._pieces(bin, limit)

    def _pieces(self, number: int, limit: int) -> Iterator[Piece]:
        if number in self._held or number in self._noted:
            entries = dict(self._settled(number).entries())
        elif number in self._empty:
            entries = dict(self._maker.new(number, self._empty[number]).entries())
        else:
            return
        try:
            yield from depart(Address(number), entries, {}, limit)
        except TypeError as error:
            raise UnmovableState(f"bin {number} of {self.name} cannot move: {error}") from None

    def put_state(self, piece: Piece) -> None:
        number = piece.bin
        if piece.part != 0 or number >= self.bins or piece.is_key:
            raise ValueError(f"a piece of part {piece.part} of bin {number}, of which there is none")
        if number in self._held or number in self._empty:
            raise AssertionError(f"bin {number} is here already")
        self._mark(number)
        arriving = self._arriving.setdefault(number, Arriving())
        if not arriving.add(piece):
            return
        del self._arriving[number]
        self._held[number] = self._maker.arrived(number, arriving.state)
        self._file(number, self._settled(number))  # a replan may have come before

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        raise AssertionError(f"{self.name} pins no keys")

    def copy_apart(self, limit: int) -> Iterator[Piece]:
        return iter(())

    def view(self, bin: int) -> BinView:
        """What is post-dated is shown with each key: all of a bin wakes together."""
        held = self._held.get(bin)
        entries = {} if held is None else held.view()
        wakes = self._wakes.of(bin)
        pending = [] if wakes is None else [(wakes, (key,)) for key in entries]
        return BinView(bin, int(self.sizes(bin, bin + 1)[0]), entries, pending)

    def view_apart(self) -> Mapping[Key, State]:
        return {}

    def occupied(self) -> NDArray[np.intp]:
        noted = self._noted.keys() - self._arriving.keys()
        return np.array(sorted(self._held.keys() | self._empty.keys() | noted), np.intp)

    def has(self, bins: Bins) -> Flags:
        return np.isin(bins, self.occupied())

    def describe(self) -> Mapping[str, str]:
        return {**self._maker.describe(), "shards": str(self.bins)}

    @property
    def key_count(self) -> int:
        return sum(len(bin.view()) for bin in self._held.values())

    def sizes(self, first: int, end: int) -> Numbers:
        sizes = np.zeros(self.bins, np.int64)
        sizes[list(self._empty)] = _EMPTY
        for number, bin in self._held.items():
            if first <= number < end:
                sizes[number] = bin.weight()
        return sizes[first:end]

    def track_changes(self) -> None:
        if self._changed is None:
            self._changed = set(self.occupied().tolist())

    def take_changed(self) -> NDArray[np.intp]:
        if self._changed is None:
            raise AssertionError(f"nobody asked {self.name} to track changes")
        changed, self._changed = self._changed, set()
        return np.array(sorted(changed), np.intp)

    def _mark(self, bin: int) -> None:
        if self._changed is not None:
            self._changed.add(bin)
