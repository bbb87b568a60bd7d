"""Joins of composites in columns: what is new at the two sides of a node, with the rings of both (section 2.1).

Everything new at a time goes into rings at once, and rows have numbers: what is new on the left meets the rows on the
right from before that time (`start`), and what is new on the right meets all rows on the left. So each pair is made
once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dataflow.columns.batch import Columns
from dataflow.state.arrays import Flags, Ints
from dataflow.state.folds.predicates import Filter, compile_filter, plain_filter
from megaphone.plans.columns import kernels
from megaphone.plans.columns.courses import Side
from megaphone.plans.columns.rings import NO_PAIRS, Delta, Pairs, Ring, merged, nothing
from megaphone.plans.columns.sources import SourceRing
from megaphone.plans.query import Query
from megaphone.plans.trees import Streams

ALWAYS = 1 << 62  # after all times
_MANY = 1 << 15  # pairs that are made at once where there is no end to them


class Joiner:
    """The rings of a store, and how their rows come together."""

    def __init__(self, name: str, query: Query, bins: int, shift: int, compiled: bool) -> None:
        self.name = name
        self.query = query
        self.window = query.window
        self.shift = shift
        self._bins = bins
        self._compiled = compiled
        self.sources = [SourceRing(name, stream, bins, shift) for stream in query.streams]
        self.rings: dict[Side, Ring] = {}
        self._slots: dict[Streams, list[int]] = {}
        self._picks: dict[tuple[Streams, Streams], Ints] = {}
        self._filters: dict[tuple[str, str], Filter] = {}

    def ring(self, streams: Streams, side: int) -> Ring:
        """The ring of a state; made if need be."""
        if len(streams) == 1:
            return self.sources[self.query.slot(next(iter(streams)))]
        if (streams, side) not in self.rings:
            self.rings[streams, side] = Ring(self._bins, self.shift, len(streams))
        return self.rings[streams, side]

    def start(self) -> None:
        """A time begins: what comes now is new."""
        for ring in self.every_ring():
            ring.start = ring.end

    def every_ring(self) -> list[Ring]:
        """All that there are."""
        return [*self.sources, *self.rings.values()]

    def slots(self, streams: Streams) -> list[int]:
        """The slots of streams, in order: those of the columns of their composites' parts."""
        if streams not in self._slots:
            self._slots[streams] = sorted(map(self.query.slot, streams))
        return self._slots[streams]

    def _pick(self, one: Streams, other: Streams) -> Ints:
        if (one, other) not in self._picks:
            given = [*self.slots(one), *self.slots(other)]
            self._picks[one, other] = np.array([given.index(slot) for slot in self.slots(one | other)], np.int64)
        return self._picks[one, other]

    def meet(
        self, one: Streams, new_one: Delta, other: Streams, new_other: Delta, rings: tuple[Ring, Ring], low: LowTimes
    ) -> Delta:
        """What is new where two edges meet."""
        mine, theirs = rings
        found = [
            self._pairs(one, new_one, other, theirs, low, theirs.start),
            self._pairs(other, new_other, one, mine, low, mine.end),
        ]
        return merged(found, len(one) + len(other))

    def meet_last(
        self, one: Streams, new_one: Delta, other: Streams, new_other: Delta, rings: tuple[Ring, Ring], low: LowTimes
    ) -> Ints:
        """The components of what is new where two edges meet whose composites are results: no more is asked of them."""
        if self._checks(one, other):
            return self.meet(one, new_one, other, new_other, rings, low).parts
        mine, theirs = rings
        ways = (one, new_one, other, theirs, theirs.start), (other, new_other, one, mine, mine.end)
        found = [
            ring.probe(new, low.of(new), self.window, limit) if len(new) and len(ring) else NO_PAIRS
            for _, new, _, ring, limit in ways
        ]
        parts = np.empty((sum(len(pairs.ones) for pairs in found), len(one) + len(other)), np.int64)
        done = 0
        for (mine_of, new, theirs_of, ring, _), pairs in zip(ways, found, strict=True):
            out = parts[done : done + len(pairs.ones)]
            rows, where = ring.pages.rows, ring.pages.where
            pick = self._pick(mine_of, theirs_of)
            kernels.combine_parts(pairs.ones, pairs.others, new.parts, rows, where, ring.is_source, pick, out)
            done += len(pairs.ones)
        return parts

    def _pairs(self, one: Streams, new: Delta, other: Streams, ring: Ring, low: LowTimes, limit: int) -> Delta:
        if not len(new) or not len(ring):
            return nothing(len(one) + len(other))
        lows = low.of(new)
        if not self._checks(one, other):
            return self._combined(one, new, other, ring, ring.probe(new, lows, self.window, limit))
        found, start = [], 0  # of many pairs few may fit: they are not all made at once
        while start < len(new):
            pairs = ring.probe(new, lows, self.window, limit, start, _MANY)
            found.append(self._combined(one, new, other, ring, pairs))
            start = pairs.stopped
        return merged(found, len(one) + len(other))

    def _combined(self, one: Streams, new: Delta, other: Streams, ring: Ring, pairs: Pairs) -> Delta:
        count = len(pairs.ones)
        out = Delta(
            np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.int64),
            np.empty((count, len(one) + len(other)), np.int64),
        )  # fmt: skip
        rows, where = ring.pages.rows, ring.pages.where
        kernels.combine(pairs.ones, pairs.others, *new, rows, where, ring.is_source, self._pick(one, other), *out)
        return self._fitting(one, other, out)

    def _fitting(self, one: Streams, other: Streams, delta: Delta) -> Delta:
        """Those that satisfy the predicates of streams that meet here for the first time."""
        checks = self._checks(one, other)
        if not checks or not len(delta):
            return delta
        slots = self.slots(one | other)
        fits = np.ones(len(delta), np.bool_)
        for pair in checks:
            first, second = map(self.query.slot, pair)
            one_ring, other_ring = self.sources[first], self.sources[second]
            one_place = one_ring.pages.places(delta.parts[:, slots.index(first)])
            other_place = other_ring.pages.places(delta.parts[:, slots.index(second)])
            try:
                self._filter(pair)(one_ring.records(), other_ring.records(), one_place, other_place, fits)
            except Exception as error:
                error.add_note(f"in the predicate of {' and '.join(pair)}")
                raise
        return delta if fits.all() else delta.take(fits)

    def _checks(self, one: Streams, other: Streams) -> list[tuple[str, str]]:
        """The pairs of streams with a predicate that meet for the first time where these do."""
        return [(a, b) for a, b in self.query.where if (a in one and b in other) or (b in one and a in other)]

    def _filter(self, pair: tuple[str, str]) -> Filter:
        if pair not in self._filters:
            predicate = self.query.where[pair]
            first, second = (self.sources[self.query.slot(stream)].schema for stream in pair)
            assert first is not None and second is not None, "there are records of both"
            kinds = first.record, second.record
            self._filters[pair] = compile_filter(predicate, *kinds) if self._compiled else plain_filter(predicate)
        return self._filters[pair]

    def stored(
        self, one: Streams, some: Delta, other: Streams, ring: Ring, low: LowTimes, start: int, most: int
    ) -> Met:
        """Composites that are there, from `start` on, with all rows of a ring: as many as give about so many pairs."""
        if not len(ring):
            return Met(nothing(len(one) + len(other)), len(some), 0)
        pairs = ring.probe(some, low.of(some), self.window, ring.end, start, most)
        return Met(self._combined(one, some, other, ring, pairs), pairs.stopped, len(pairs.ones))

    def fill(self, sides: Sequence[tuple[Streams, Ring]], into: Ring, bins: Flags, now: int) -> None:
        """Joins what two rings have of some bins (moving state, step 3)."""
        (one, mine), (other, theirs) = sorted(sides, key=lambda side: len(side[1]))
        low = LowTimes(now - self.window)
        some = mine.fetch(mine.numbers(bins, now - self.window))
        start = 0
        while start < len(some):
            met = self.stored(one, some, other, theirs, low, start, _MANY)
            into.add(met.delta, now)
            start = met.stopped

    def kept(self, streams: Streams, delta: Delta, courses: NDArray[np.int32], cuts: Ints) -> Delta:
        """Those that satisfy some chain: `cuts` has, by course, chain and slot, the time before which a component is.
        Courses are by bin."""
        if not len(delta):
            return delta
        alive = np.full(len(delta), (1 << cuts.shape[1]) - 1, np.uint64)
        for column, slot in enumerate(self.slots(streams)):
            pages = self.sources[slot].pages
            place = pages.rows, pages.where, self.shift
            kernels.cut(delta.hashes, delta.parts, column, *place, courses, cuts, slot, alive)
        keep = alive != 0
        return delta if keep.all() else delta.take(keep)

    def results(self, whole: Ints) -> Columns:
        """Composites of all streams, by their components, as a batch."""
        columns = {}
        count = 0
        for slot, stream in enumerate(self.query.streams):
            some = self.sources[slot].columns(whole, slot, f"{stream}_")
            columns.update(some)
            count += len(some)
        if len(columns) < count:
            names = ", ".join(columns)
            raise TypeError(f"{self.name}: two columns of the result have one name, of {names}: rename one")
        return Columns.trusted(columns, len(whole))


class Met:
    """What some composites met, where that stopped, and how many pairs were looked at."""

    __slots__ = ("delta", "pairs", "stopped")

    def __init__(self, delta: Delta, stopped: int, pairs: int) -> None:
        self.delta = delta
        self.stopped = stopped
        self.pairs = pairs


class LowTimes:
    """The times before which rows are not looked at: one for all; or also, by course, where it began."""

    def __init__(
        self, low: int, starts: Ints | None = None, courses: NDArray[np.int32] | None = None, shift: int = 0
    ) -> None:
        self._low = np.int64(low)
        self._starts = starts
        self._courses = courses
        self._shift = np.uint64(shift)

    def of(self, delta: Delta) -> Ints:
        """For each composite."""
        if self._starts is None or self._courses is None:
            return np.full(len(delta), self._low, np.int64)
        starts: Ints = self._starts[self._courses[delta.hashes >> self._shift]]
        return np.maximum(self._low, starts)
