"""A store of windowed joins in columns: all bins together, in rings by edge; what each bin does is its course.

Everything at a time is done at once for all bins of one shape, in compiled code. A plan changes by giving bins another
course; only moving state touches rows then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.columns.conversions import KeySigns
from dataflow.columns.hashing import as_words, mix_all, unmix_all
from dataflow.columns.pact import require_columns
from dataflow.state.arrays import Bins, Flags, Ints, Words
from dataflow.state.pieces import Piece
from dataflow.state.store import BinView, Key, Numbers
from dataflow.state.stores.portions import BIN, Address, Arriving, depart
from dataflow.state.values import State
from dataflow.time.order import Time
from megaphone.control.replans import Replan
from megaphone.plans.bins import Asked, Entries
from megaphone.plans.columns import kernels, travel
from megaphone.plans.columns.background import StateJob
from megaphone.plans.columns.courses import BinCourse, first_course
from megaphone.plans.columns.joiner import Joiner
from megaphone.plans.columns.rings import Delta
from megaphone.plans.columns.shapes import Courses, CourseShape, Made
from megaphone.plans.door import PlanStore, PlanView
from megaphone.plans.query import Query
from megaphone.plans.trees import Streams, Tree, canonical

_PURGES = 4  # in the length of a window, at which a store wakes if nothing arrives
_HEAD = 192  # bytes of a bin that has nothing but a plan, about


class PlanColumnStore(PlanStore[Columns]):
    """Joins in columns, each bin with a plan. `compiled`: whether predicates are."""

    last_time = 1 << 61
    dense = False  # keys are hashed

    def __init__(self, name: str, bins: int, query: Query, first: Tree, compiled: bool = True) -> None:
        self.name = name
        self.bins = bins
        self.shift = 64 - max(1, bins.bit_length() - 1)
        self._records: Numbers = np.zeros(max(bins, 2), np.int64)
        self.records = self._records[:bins]
        self._query = query
        self._joiner = Joiner(name, query, bins, self.shift, compiled)
        self._first = first_course(first)
        self._courses = Courses(max(bins, 2), self._first, self._joiner)
        self._streams: list[Streams] = [frozenset((stream,)) for stream in query.streams]
        self._signs = KeySigns()
        self._last = -1  # everything up to this time has been done
        self._purge_at: int | None = None
        self._noted: SortedDict[int, list[tuple[Ints, Asked]]] = SortedDict()  # replans whose time has not come
        self._waiting: dict[int, list[Asked]] = {}  # replans that wait for the one before, by bin, in order
        self._working: dict[int, None] = {}  # bins with work for the background, in the order of their turns
        self._jobs: dict[int, StateJob] = {}  # what the background is about
        self._arriving: dict[int, Arriving] = {}  # bins of which pieces are missing
        self._arrived: dict[int, int] = {}  # bins that came with more done than this store has
        self._next_end: int | None = None  # of migrations
        self._changed: Flags | None = None

    # Records, in the order of time

    def accept(self, batch: Batch) -> Columns:
        return require_columns(batch, self.name)

    @property
    def least_pending(self) -> Time | None:
        times = [self._noted.peekitem(0)[0]] if self._noted else []
        times += [time for time in (self._purges, self._next_end) if time is not None]
        return min(times, default=None)

    @property
    def _purges(self) -> int | None:
        """When it wakes to forget rows, if there are any."""
        return self._purge_at if any(ring.live for ring in self._joiner.every_ring()) else None

    def run(self, time: int, batches: Sequence[Sequence[Columns]]) -> Sequence[Batch]:
        out = self._end(time)
        self._begin(time)
        self._joiner.start()
        made = {s: self._arrive(slot, batches[slot] if batches else (), time) for slot, s in enumerate(self._streams)}
        if any(map(len, made.values())):
            for shape, some in self._by_shape(made):
                whole = shape.step(some, self._courses.of_bin, time)
                if len(whole):
                    out.append(self._joiner.results(whole))
        self._last = time
        if self._purge_at == time:
            self._mark_held()
        self._purge(time)
        return out

    def _arrive(self, slot: int, batches: Sequence[Columns], time: int) -> Delta:
        """Puts the records of a stream into its ring."""
        batches = [batch for batch in batches if len(batch)]
        ring = self._joiner.sources[slot]
        if not batches:
            return Delta(np.empty(0, np.uint64), *(np.empty(0, np.int64),) * 2, np.empty((0, 1), np.int64))
        hashes = _whole([self._hashes(batch) for batch in batches])
        values = _whole([ring.words_of(batch) for batch in batches])
        kernels.count_bins(hashes, self.shift, self._records)
        if self._changed is not None:
            self._changed[hashes >> np.uint64(self.shift)] = True
        times = np.full(len(hashes), time, np.int64)
        delta = Delta(hashes, times, times, np.arange(ring.end, ring.end + len(hashes))[:, None])
        ring.put(delta, time, values)
        return delta

    def bins_of(self, keys: Words) -> Ints:
        """The bin of each key."""
        return (self._mixed(keys) >> np.uint64(self.shift)).astype(np.int64)

    def _mixed(self, keys: Words) -> Words:
        hashes = np.empty(len(keys), np.uint64)
        mix_all(keys, hashes)
        return hashes

    def _hashes(self, batch: Columns) -> Words:
        if not isinstance(self._query.on, str):
            return np.zeros(len(batch), np.uint64)
        column = batch.column(self._query.on)
        words = as_words(column, self._query.on)
        assert isinstance(column, np.ndarray)
        self._signs.check(column, words, f"{self.name}: the key {self._query.on!r}")
        return self._mixed(words)

    def _by_shape(self, made: Made) -> Iterator[tuple[CourseShape, Made]]:
        """What is new, for the bins of each shape."""
        courses = self._courses
        if len(courses.shapes) == 1:
            yield next(iter(courses.shapes.values())), made
            return
        shift = np.uint64(self.shift)
        shapes = {s: courses.shape_of[courses.of_bin[delta.hashes >> shift]] for s, delta in made.items()}
        for number in np.unique(np.concatenate([*shapes.values()])).tolist():
            yield courses.shapes[number], {s: delta.take(shapes[s] == number) for s, delta in made.items()}

    def _purge(self, time: int) -> None:
        """Forgets what can be in no result after a time."""
        for ring in self._joiner.every_ring():
            if len(ring):
                ring.purge(time - self._query.window + 1)
        every = max(1, self._query.window // _PURGES)
        self._purge_at = (time // every + 1) * every

    # Plans

    def note(self, time: int, bins: NDArray[np.int64], replan: Replan) -> None:
        assert replan.plan is not None and replan.method is not None, "a plan space has checked it"
        asked = Asked(time, replan.plan, replan.method, replan.share, replan.background, replan.order)
        self._noted.setdefault(time, []).append((bins, asked))

    def _end(self, time: int) -> list[Batch]:
        """Ends migrations that are over before anything at a time is done; results that they held back."""
        out: list[Batch] = []
        while self._next_end is not None and self._next_end <= time:
            changing = self._courses.changing()
            number = min(changing, key=lambda each: changing[each].time)
            bins = np.flatnonzero(self._courses.of_bin == number)
            out += self._held(bins, self._courses[number], time)
            self._set(bins, self._courses[number].ended())
            for bin in bins.tolist() if self._waiting else ():
                self._next(bin, time, time)
        return out

    def _held(self, bins: Ints, course: BinCourse, time: int) -> list[Batch]:
        """What parallel track held back in some bins, for `order="paper"`."""
        held = (course.tree.streams, 0)
        if held not in self._joiner.rings or held not in course.states:
            return []
        ring = self._joiner.rings[held]
        whole = ring.fetch(ring.numbers(self._flags(bins), time - self._query.window))
        return [self._joiner.results(whole.parts)] if len(whole) else []

    def _begin(self, time: int) -> None:
        """Begins the replans that are due, in the bins in which none is under way."""
        while self._noted and self._noted.peekitem(0)[0] <= time:
            for bins, asked in self._noted.popitem(0)[1]:
                self._mark(bins)
                moving = [*self._courses.changing()]
                waits = np.isin(self._courses.of_bin[bins], moving) | np.isin(bins, [*self._waiting])
                for bin in bins[waits].tolist():
                    self._waiting[bin] = sorted([*self._waiting.get(bin, ()), asked])
                    self._next(bin, time, time)
                self._start(bins[~waits], asked, time)

    def _next(self, bin: int, until: int, at: int) -> None:
        """Begins what waits in a bin, up to a time, as long as nothing is under way there."""
        while bin in self._waiting and self._waiting[bin][0].time <= until and self._courses.of(bin).change is None:
            asked = self._waiting[bin].pop(0)
            if not self._waiting[bin]:
                del self._waiting[bin]
            self._start(np.array([bin]), asked, at)

    def _start(self, bins: Ints, asked: Asked, time: int) -> None:
        """Begins a replan in bins in which nothing is under way. One without rows changes its plan at once."""
        tree = self._query.plan(asked.plan)
        counts = sum(ring.counts[bins] for ring in self._joiner.every_ring())
        if len(empty := bins[counts == 0]):
            self._set(empty, first_course(tree))
        bins = bins[counts > 0]
        numbers = self._courses.of_bin[bins]
        for number in np.unique(numbers).tolist():
            some, course = bins[numbers == number], self._courses[number]
            if course.tree == tree:
                continue
            if asked.method == "moving-state":
                self._move_state(some, course, tree, time)
            else:
                self._set(some, course.replanned(tree, asked, time, self._query))

    def _move_state(self, bins: Ints, course: BinCourse, tree: Tree, time: int) -> None:
        """States that both plans have are kept; the others are filled, from below (section 2.2)."""
        after, missing = course.moved(tree)
        sides, wanted, joiner = dict(after.sides), self._flags(bins), self._joiner
        for node in missing:
            pair = node.left.streams, node.right.streams
            edges = [(streams, joiner.ring(streams, sides.get(streams, 0))) for streams in pair]
            joiner.fill(edges, joiner.ring(node.streams, sides[node.streams]), wanted, time)
        self._set(bins, after)

    def _set(self, bins: Ints, course: BinCourse) -> None:
        """Gives bins, all of one course, another; what only the old one had is forgotten."""
        if not len(bins):
            return
        for state in self._courses.of(int(bins[0])).states - course.states:
            if state in self._joiner.rings:
                self._joiner.rings[state].forget(bins)
        self._courses.set(bins, course)
        self._mark(bins)
        works = course.change is not None and course.change.method == "hybmig" and course.change.background
        for bin in bins.tolist() if works or self._working else ():
            self._jobs.pop(bin, None)
            self._working.pop(bin, None)
            if works:
                self._working[bin] = None
        changing = [change.time for change in self._courses.changing().values()]
        self._next_end = min(changing) + self._query.window if changing else None

    def _flags(self, bins: Ints) -> Flags:
        flags = np.zeros(len(self._records), np.bool_)
        flags[bins] = True
        return flags

    def plan_of(self, bin: int) -> PlanView:
        course = self._courses.of(bin)
        queued = tuple(asked.plan for asked in self._queue(bin))
        text = str(canonical(course.tree, self._query.streams))
        if course.change is None:
            return PlanView(text, queued=queued)
        following = str(canonical(course.change.tree, self._query.streams))
        return PlanView(text, following, course.change.method, course.change.time, queued)

    def _queue(self, bin: int) -> list[Asked]:
        """The replans of a bin that have not begun."""
        noted = [asked for some in self._noted.values() for bins, asked in some if (bins == bin).any()]
        return sorted([*self._waiting.get(bin, ()), *noted])

    # Work for the background

    @property
    def next_work(self) -> int | None:
        return next(iter(self._working), None)

    def work(self, budget: int) -> None:
        bin = self.next_work
        assert bin is not None, "there is nothing to do"
        del self._working[bin]  # its turn comes again after the others'
        self._working[bin] = None
        now = self._last_of(bin) + 1
        done = 0
        while done < budget and bin in self._working:
            if bin not in self._jobs:
                self._jobs[bin] = StateJob(self._joiner, bin, self._courses.of(bin), now)
            job = self._jobs[bin]
            done += job.work(budget - done, now) + 1
            if job.is_done:
                job.merge(now)
                after = self._courses.of(bin).completed(job.number, now, self._query)
                self._set(np.array([bin]), after)
        self._next(bin, now - 1, now)

    def _last_of(self, bin: int) -> int:
        """Everything up to this time has been done in a bin."""
        return max(self._last, self._arrived.get(bin, -1))

    # Bins

    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        for piece in self._pieces(bin, limit):
            if piece.head[0] == BIN:
                self._forget(bin)
            yield piece

    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        return self._pieces(bin, limit)

    def _pieces(self, bin: int, limit: int) -> Iterator[Piece]:
        if not self.has(np.array([bin]))[0]:
            return
        last, course = self._last_of(bin), self._courses.of(bin)
        head = [last, self._purges, travel.encode_course(self._query, course, self._queue(bin))]
        rows = travel.entries_of(self._joiner, bin, course, last - self._query.window + 1)
        yield from depart(Address(bin), {("bin",): head, **dict(rows)}, {}, limit)

    def _forget(self, bin: int) -> None:
        """A bin has left."""
        for ring in self._joiner.every_ring():
            ring.forget(np.array([bin]))
        self._waiting.pop(bin, None)
        self._arrived.pop(bin, None)
        for time, some in [*self._noted.items()]:
            self._noted[time] = [(bins[bins != bin], asked) for bins, asked in some]
        self._set(np.array([bin]), self._first)

    def put_state(self, piece: Piece) -> None:
        bin = piece.bin
        if piece.part != 0 or bin >= self.bins or piece.is_key:
            raise ValueError(f"a piece of part {piece.part} of bin {bin}, of which there is none")
        if bin not in self._arriving and self._has_rows_or_plan(np.array([bin]))[0]:
            raise AssertionError(f"bin {bin} is here already")
        arriving = self._arriving.setdefault(bin, Arriving())
        if arriving.add(piece):
            del self._arriving[bin]
            self._install(bin, arriving.state)

    def _install(self, bin: int, entries: Entries) -> None:
        last, purge_at, told = entries.pop(("bin",))
        mine = self._purges
        course, queue = travel.decode_course(self._query, told)
        travel.install(self._joiner, bin, entries, max(last, self._last))
        self._set(np.array([bin]), course)
        self._arrived[bin] = last
        self._wake(purge_at, mine)
        for asked in queue:
            if asked.time > last:
                self._noted.setdefault(asked.time, []).append((np.array([bin]), asked))
            else:
                self._waiting.setdefault(bin, []).append(asked)

    def _wake(self, theirs: int | None, mine: int | None) -> None:
        """Rows came from where somebody would have woken to forget them."""
        if theirs is not None:
            self._purge_at = theirs if mine is None else min(theirs, mine)

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        raise AssertionError(f"{self.name} pins no keys")

    def copy_apart(self, limit: int) -> Iterator[Piece]:
        return iter(())

    # What is known of bins

    def view(self, bin: int) -> BinView:
        """By key and stream, its records with their times. What is post-dated is shown with each key."""
        entries = self.view_bins(np.array([bin]), self._last_of(bin))
        pending = [] if self._purges is None else [(self._purges, (key,)) for key in entries]
        return BinView(bin, int(self.sizes(bin, bin + 1)[0]), entries, pending)

    def view_bins(self, bins: Ints, last: int) -> dict[Key, State]:
        """By key and stream, the records of some bins with their times, as of after a time."""
        entries: dict[Key, dict[str, list[tuple[int, dict[str, State]]]]] = {}
        for ring, stream in zip(self._joiner.sources, self._query.streams, strict=True):
            some = ring.fetch(ring.numbers(self._flags(bins), last - self._query.window + 1))
            keys = np.empty_like(some.hashes)
            unmix_all(some.hashes, keys)
            columns = Columns.trusted(ring.columns(some.parts, 0, ""), len(some))
            for key, time, row in zip(keys.view(np.int64).tolist(), some.first.tolist(), columns.rows(), strict=True):
                found = entries.setdefault(key, {name: [] for name in self._query.streams})
                found[stream].append((time, dict(zip(columns.names, row, strict=True))))
        return {**entries}

    def view_apart(self) -> Mapping[Key, State]:
        return {}

    def occupied(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.has(np.arange(self.bins)))

    def has(self, bins: Bins) -> Flags:
        found = self._has_rows_or_plan(bins)
        for some in self._noted.values():
            for noted, _ in some:
                found |= np.isin(bins, noted) & ~np.isin(bins, [*self._arriving])
        return found

    def _has_rows_or_plan(self, bins: Bins) -> Flags:
        found: Flags = self._courses.of_bin[bins] != 0
        for ring in self._joiner.every_ring():
            found |= ring.counts[bins] > 0
        return found | np.isin(bins, [*self._waiting])

    def describe(self) -> Mapping[str, str]:
        """Bins are saved as rows are, entry by entry: whoever looks into a snapshot sees entries."""
        query = self._query
        about = {"streams": " ".join(query.streams), "window": str(query.window), "key": str(query.on)}
        return {"store": "rows", "plans": "trees of joins of columns", **about, "shards": str(self.bins)}

    @property
    def key_count(self) -> int:
        return sum(len(self.view(int(bin)).entries) for bin in self.occupied())

    def sizes(self, first: int, end: int) -> Numbers:
        sizes = np.where(self.has(np.arange(first, end)), _HEAD, 0).astype(np.int64)
        for ring in self._joiner.sources:
            sizes += ring.counts[first:end] * (16 + 8 * ring.width)
        for other in self._joiner.rings.values():
            sizes += other.counts[first:end] * 8 * other.width
        return sizes

    def track_changes(self) -> None:
        if self._changed is None:
            self._changed = np.zeros(len(self._records), np.bool_)
            self._mark(self.occupied())

    def take_changed(self) -> NDArray[np.intp]:
        if self._changed is None:
            raise AssertionError(f"nobody asked {self.name} to track changes")
        changed = np.flatnonzero(self._changed)
        self._changed[:] = False
        return changed

    def _mark(self, bins: Bins) -> None:
        if self._changed is not None:
            self._changed[bins] = True

    def _mark_held(self) -> None:
        """Every bin that has rows may lose some."""
        if self._changed is not None:
            for ring in self._joiner.every_ring():
                self._changed |= ring.counts > 0


def _whole(parts: list[Words]) -> Words:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
