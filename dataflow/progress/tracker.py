"""The tracker: from pointstamps to frontiers.

A pointstamp (location, time) is a message in flight at a target or a capability held at a source; its count is how
many of them there are, on all workers together, as far as this worker has heard. A pointstamp could-result-in another
if some path between their locations takes the first time to one at or before the second. The frontier at a location
is the antichain of the least times that could still be there.

Both trackers have one interface: `propagate(changes)` applies a whole batch of changes and returns the indices of the
locations whose frontiers changed. Nobody else touches counts, so half a batch is never visible. (A batch may itself
be several batches of several workers: applying whole batches together is as safe as applying them one after the
other.)

Costs are stated per class and measured by `python -m bench run tracker`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf

from dataflow.progress.graph import Graph, Source
from dataflow.progress.paths import Levels, join, split
from dataflow.time.antichain import Antichain, MutableAntichain, TotalAntichain
from dataflow.time.order import Time
from dataflow.time.timestamp import Domain, Product

Pointstamp = tuple[int, Time]  # (index of a location, time)
Change = tuple[Pointstamp, int]


def make_tracker(graph: Graph, peers: int) -> Tracker:
    """The fastest tracker for a frozen graph, with the initial capabilities of all `peers` workers in place.

    They are counted from the start, by every worker alike: if a worker waited to hear of them, it would see empty
    frontiers for an instant.
    """
    tracker = AcyclicTracker(graph) if graph.acyclic and graph.integers_only else CyclicTracker(graph)
    tracker.propagate(initial_capabilities(graph, peers))
    return tracker


def initial_capabilities(graph: Graph, peers: int) -> list[Change]:
    """The pointstamps with which a dataflow starts."""
    changes: list[Change] = []
    for number, node in enumerate(graph.nodes):
        for port, starts in enumerate(node.initial):
            if starts and peers:
                minimum = join(tuple(domain.minimum for domain in node.outputs[port]))
                changes.append(((graph.index(Source(number, port)), minimum), peers))
    return changes


class Tracker(ABC):
    """What both trackers share: the graph and the interface."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outstanding = 0  # how many pointstamps have a count that is not zero

    @abstractmethod
    def propagate(self, changes: Iterable[Change]) -> list[int]:
        """Applies changes of counts as a whole; returns the locations whose frontiers changed."""

    @abstractmethod
    def frontier(self, index: int) -> Antichain:
        """The times that may still be seen at a location."""

    @abstractmethod
    def could_see(self, index: int, time: Time) -> bool:
        """Whether `time` may still be seen at a location: its frontier is not past it."""

    @abstractmethod
    def pointstamps(self) -> dict[Pointstamp, int]:
        """Every count that is not zero (a copy, for looking at)."""

    @property
    def complete(self) -> bool:
        """Whether nothing is outstanding: no message, no capability, anywhere."""
        return self.outstanding == 0


class AcyclicTracker(Tracker):
    """For graphs without cycles whose times are integers: a frontier is one number, or infinity.

    Locations are numbered topologically, so one sweep over those that something changed at, in that order, settles
    everything: the frontier is the least of the location's own pointstamps and of its predecessors' frontiers.

    Cost of a batch: O(log outstanding) for each change, and O(degree + log reached) for each location whose frontier
    changes. What does not change costs nothing.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        n = len(graph.locations)
        self._counts: list[dict[int, int]] = [{} for _ in range(n)]  # invariant: no zeros
        # Invariant: hold every time with a positive count. Not SortedDicts, in which a time that comes and goes costs 5
        # to 17 times as much (1.7 to 2.8 µs; `python -m bench run ordered`): here that is every message.
        self._heaps: list[list[int]] = [[] for _ in range(n)]
        self._lows: list[float] = [inf] * n  # invariant: least time with a positive count
        self._frontiers: list[float] = [inf] * n
        self._into: list[list[tuple[int, int]]] = [[] for _ in range(n)]  # (predecessor, increment)
        self._out_of: list[list[int]] = [[] for _ in range(n)]
        for start, end, path in graph.hops():
            a, b = graph.index(start), graph.index(end)
            assert a < b, "locations are not in topological order"
            self._into[b].append((a, 0 if path is None else path.kept[0]))
            self._out_of[a].append(b)

    def propagate(self, changes: Iterable[Change]) -> list[int]:
        """Applies changes of counts as a whole; returns the locations whose frontiers changed."""
        queue = self._apply(changes)
        if not queue:
            return []
        queued = set(queue)
        frontiers, lows, into, out_of = self._frontiers, self._lows, self._into, self._out_of
        changed = []
        while queue:
            here = heappop(queue)
            least = lows[here]
            for before, increment in into[here]:
                through = frontiers[before] + increment
                if through < least:
                    least = through
            if least != frontiers[here]:
                frontiers[here] = least
                changed.append(here)
                for after in out_of[here]:
                    if after not in queued:
                        queued.add(after)
                        heappush(queue, after)
        return changed

    def _apply(self, changes: Iterable[Change]) -> list[int]:
        """Updates the counts; returns a heap of the locations whose least pointstamp changed."""
        dirty: set[int] = set()
        lows, all_counts, heaps = self._lows, self._counts, self._heaps
        for (here, time), diff in changes:  # all in one function: it runs for each message that is sent or taken
            if not diff:
                continue
            counts = all_counts[here]
            before = counts.get(time, 0)
            after = before + diff
            if after:
                counts[time] = after
                if not before:
                    self.outstanding += 1
            elif before:
                del counts[time]
                self.outstanding -= 1
            if before <= 0:
                if after > 0:
                    heap = heaps[here]
                    if not heap:
                        heap.append(time)
                    elif len(heap) > 2 * len(counts) + 16:  # a time that comes and goes must not fill the heap
                        heap[:] = sorted(t for t, n in counts.items() if n > 0)
                    else:
                        heappush(heap, time)
                    if time < lows[here]:
                        lows[here] = time
                        dirty.add(here)
            elif after <= 0 and time == lows[here]:
                heap = heaps[here]
                while heap and (heap[0] not in counts or counts[heap[0]] <= 0):
                    heappop(heap)
                lows[here] = heap[0] if heap else inf
                dirty.add(here)
        return sorted(dirty) if len(dirty) > 1 else list(dirty)

    def frontier(self, index: int) -> Antichain:
        """The times that may still be seen at a location."""
        time = self._frontiers[index]
        return Antichain(() if time == inf else (int(time),))

    def could_see(self, index: int, time: Time) -> bool:
        """Whether `time` may still be seen at a location. O(1)."""
        return bool(self._frontiers[index] <= time)

    def pointstamps(self) -> dict[Pointstamp, int]:
        """Every count that is not zero."""
        return {(here, t): n for here, counts in enumerate(self._counts) for t, n in counts.items()}

    def _check(self) -> None:
        for here, counts in enumerate(self._counts):
            present = [t for t, n in counts.items() if n > 0]
            assert self._lows[here] == min(present, default=inf)
            assert 0 not in counts.values()
            least = min([self._lows[here], *(self._frontiers[b] + inc for b, inc in self._into[here])])
            assert self._frontiers[here] == least
        assert self.outstanding == sum(map(len, self._counts))


class CyclicTracker(Tracker):
    """For any graph and any partial order: timely dataflow's reachability algorithm.

    Each location keeps two multisets: its pointstamps, and its implications, which are the frontier of its
    pointstamps and what the frontiers of its predecessors' implications become on the way here. A change is put on a
    worklist and processed in the order of the key of `ordering`; a change of the frontier of implications is passed
    on to the successors. Around a cycle every hop increases the key, so all that is going to happen at one (location,
    time) is known when it is processed, and a time that only supported itself disappears.

    Cost of a batch: for each (location, time) whose count of implications changes, O(log of the worklist), one update
    of an antichain (see `dataflow.time.antichain`: O(log) for total orders), and O(out-degree) if that changes its
    frontier.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        levels = [graph.levels(location) for location in graph.locations]
        domains_of = {here: _domain(here) for here in set(levels)}
        domains = [domains_of[here] for here in levels]
        self._ranks = graph.ranks
        self._counts: list[MutableAntichain | TotalAntichain] = [_antichain(domain) for domain in domains]
        self._implied: list[MutableAntichain | TotalAntichain] = [_antichain(domain) for domain in domains]
        self._out_of: list[list[tuple[int, Callable[[Time], Time | None] | None]]] = [[] for _ in levels]
        self._pending: dict[Pointstamp, int] = {}  # the worklist's differences; what cancels stays as a zero
        self._worklist: list[tuple[tuple[Time, ...], Pointstamp]] = []  # (key, pointstamp), a heap, each key once
        for start, end, path in graph.hops():
            compiled = None if path is None else path.compiled()
            self._out_of[graph.index(start)].append((graph.index(end), compiled))

    def propagate(self, changes: Iterable[Change]) -> list[int]:
        """Applies changes of counts as a whole; returns the locations whose frontiers changed."""
        for (here, time), diff in changes:
            counts = self._counts[here]
            size = len(counts)
            for t, d in counts.update(time, diff):
                self._enqueue(here, t, d)
            self.outstanding += len(counts) - size
        if not self._worklist:
            return []
        return self._drain()

    def _drain(self) -> list[int]:
        """Processes the worklist; returns the locations whose frontiers are not what they were before."""
        moved: dict[Pointstamp, int] = {}  # net changes of frontiers: a time may come and go within the pass
        while self._worklist:
            _, pointstamp = heappop(self._worklist)
            diff = self._pending.pop(pointstamp)
            if not diff:
                continue
            here, time = pointstamp
            for t, d in self._implied[here].update(time, diff):
                moved[here, t] = moved.get((here, t), 0) + d
                for after, path in self._out_of[here]:
                    u = t if path is None else path(t)
                    if u is not None:
                        self._enqueue(after, u, d)
        return list(dict.fromkeys(here for (here, _), net in moved.items() if net))

    def _enqueue(self, here: int, time: Time, diff: int) -> None:
        pointstamp = (here, time)
        pending = self._pending.get(pointstamp)
        if pending is None:
            self._pending[pointstamp] = diff
            heappush(self._worklist, (self._key(here, time), pointstamp))
        else:
            self._pending[pointstamp] = pending + diff

    def _key(self, here: int, time: Time) -> tuple[Time, ...]:
        """The interleaved key of `ordering`: (t0, p0, t1, p1, ...)."""
        rank = self._ranks[here]
        if len(rank) == 1:
            return (time, rank[0])
        if len(rank) == 2:
            return (time[0], rank[0], time[1], rank[1])
        return tuple(x for pair in zip(split(time, len(rank) - 1), rank, strict=True) for x in pair)

    def frontier(self, index: int) -> Antichain:
        """The times that may still be seen at a location."""
        return self._implied[index].frontier

    def could_see(self, index: int, time: Time) -> bool:
        """Whether `time` may still be seen at a location. O(frontier)."""
        return self._implied[index].less_equal(time)

    def pointstamps(self) -> dict[Pointstamp, int]:
        """Every count that is not zero."""
        return {(here, t): n for here, counts in enumerate(self._counts) for t, n in counts.counts.items()}

    def _check(self) -> None:
        for counts, implied in zip(self._counts, self._implied, strict=True):
            counts._check()
            implied._check()
        assert not self._worklist and not self._pending
        assert self.outstanding == sum(map(len, self._counts))


def _domain(levels: Levels) -> Domain:
    return levels[0] if len(levels) == 1 else Product(*levels)


def _antichain(domain: Domain) -> MutableAntichain | TotalAntichain:
    return TotalAntichain() if domain.total else MutableAntichain(domain.less_equal)
