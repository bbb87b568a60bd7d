"""A bin of a windowed join: a plan at work, and the replans that wait. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from dataflow.state.binning import mix
from dataflow.state.stores.weighing import weigh
from dataflow.state.values import Key, Record, State, Value
from megaphone.plans.bins import Arrivals, Asked, BinMaker, Entries, PlanBin
from megaphone.plans.door import PlanView
from megaphone.plans.migrating import HybMig, Options, ParallelTrack, Running
from megaphone.plans.query import Query
from megaphone.plans.travel import entries_of, from_entries
from megaphone.plans.trees import Tree, canonical

_HEAD: Final = 64  # bytes of a bin that has a plan and nothing else
_LOOKED_AT: Final = 4  # records of a stream that are weighed
_SELDOM: Final = 32  # of so many times that a bin is weighed, its records are once


class JoinBin(PlanBin):
    """A bin of a join."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.running = running
        self._asked = 0  # how often it was weighed
        self._each = [0.0] * len(running.query.streams)  # by stream, what a record weighs, about

    @property
    def _migrates(self) -> bool:
        return self.running.migration is not None

    def _end(self, time: int) -> list[Record]:
        return [*self.running.end(time)]

    def _replan(self, asked: Asked, time: int) -> None:
        running = self.running
        tree = running.query.plan(asked.plan)
        if not running.tuples:
            self.running = Running(running.query, tree, running.phase)  # nothing has to be kept
        else:
            running.replan(tree, asked.method, time, Options(asked.share, asked.background, asked.order == "paper"))

    def _apply(self, time: int, arrivals: Arrivals) -> list[Record]:
        return [*self.running.run(time, arrivals)]

    def _wakes(self) -> int | None:
        running = self.running
        if running.migration is None:
            return running.purge_at if running.tuples else None
        return min(running.migration.ends, running.purge_at)

    def _work(self, budget: int) -> None:
        self.running.work(budget, self.last + 1)

    @property
    def can_work(self) -> bool:
        return self.running.can_work

    @property
    def is_empty(self) -> bool:
        return not (self.queue or self._migrates or self.running.tuples)

    @property
    def plan(self) -> PlanView:
        running, migration = self.running, self.running.migration
        text = str(canonical(running.tree, running.query.streams))
        if migration is None:
            return PlanView(text, queued=self._plans())
        method = {HybMig: "hybmig", ParallelTrack: "parallel-track"}[type(migration)]
        following = str(canonical(migration.tree, running.query.streams))
        return PlanView(text, following, method, migration.time, self._plans())

    def entries(self) -> Iterator[tuple[tuple[Key, ...], Value]]:
        yield ("bin",), [self.last, [[*asked] for asked in self.queue]]
        yield from entries_of(self.running)

    def weight(self) -> int:
        """Records, by a few of them; composites, as the numbers as which they travel."""
        if self._asked % _SELDOM == 0 or not any(self._each):
            self._each = [self._record(slot) for slot in range(len(self._each))]
        self._asked += 1
        width = len(self._each)
        total = float(_HEAD)
        for state in self.running.every_state():
            total += 14 * len(state.by_key) + (2 + width) * len(state)
        for each, stream in zip(self._each, self.running.query.streams, strict=True):
            total += len(self.running.states[frozenset((stream,))]) * each
        return int(total)

    def _record(self, slot: int) -> float:
        """What a record of a stream weighs, more than the numbers that stand for it, by a few of them."""
        state = self.running.states[frozenset((self.running.query.streams[slot],))]
        some = [weigh(composite[0][slot]) for _, composite in islice(state, _LOOKED_AT)]
        return sum(some) / len(some) - len(self._each) if some else 0.0

    def view(self) -> Mapping[Key, State]:
        """By key and stream, its records with their times."""
        found: dict[Key, dict[str, list[tuple[int, Record]]]] = {}
        streams = self.running.query.streams
        for slot, stream in enumerate(streams):
            for key, composite in self.running.states[frozenset((stream,))]:
                component = composite[0][slot]
                assert component is not None
                found.setdefault(key, {name: [] for name in streams})[stream].append(component)
        return found


class JoinBins(BinMaker):
    """Makes bins of a join."""

    def __init__(self, query: Query, first: Tree) -> None:
        self.query = query
        self.first = str(canonical(first, query.streams))
        self.streams = query.streams

    def new(self, number: int, plan: str) -> JoinBin:
        return JoinBin(Running(self.query, self.query.plan(plan), mix(number)))

    def arrived(self, number: int, entries: Entries) -> JoinBin:
        last, queue = entries.pop(("bin",))
        bin = JoinBin(from_entries(self.query, entries, mix(number)))
        bin.last, bin.queue = last, [Asked(*asked) for asked in queue]
        return bin

    def describe(self) -> Mapping[str, str]:
        """Bins are saved as rows are, entry by entry: whoever looks into a snapshot sees entries."""
        streams, window = " ".join(self.streams), str(self.query.window)
        return {"store": "rows", "plans": "trees of joins", "streams": streams, "window": window}
