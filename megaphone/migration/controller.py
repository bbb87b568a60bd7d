"""The controller: feeds the steps of a migration to the control stream, each when the one before is done.

A migration moves bins, or changes their plans, or both at once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from dataflow import Stream
from dataflow.state.values import Key, Record
from dataflow.time.order import Time
from megaphone.assembly import Handle, Migratable
from megaphone.control.replans import Replan, check_replan
from megaphone.control.tree import BinTree, Merge, Split, check_shape
from megaphone.control.updates import Assign, ControlError, Move, Moves, Update, check_update
from megaphone.keys.keyspace import as_list
from megaphone.keys.pins import HOME, Keys, Pins, check_pins
from megaphone.load.statistics import Numbers, Statistics
from megaphone.migration.group import Group
from megaphone.migration.pacing import PaceLatencies, Pacer
from megaphone.migration.strategies import Change, Strategy, all_at_once, changes_between

if TYPE_CHECKING:
    from dataflow.build.hooks import DecisionLoop
    from dataflow.run.meters import Mark

log = logging.getLogger("megaphone.migration")


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """How far a migration has come. Bins whose plan changes count as moved when the change has begun."""

    steps_done: int
    steps: int
    bins_moved: int
    bins: int


class UpdateInput(Protocol):
    """Where a controller sends updates: an input that main feeds, or `scope.control()`, which the run advances."""

    @property
    def time(self) -> Time:
        """The least time at which an update can take effect."""

    def send(self, records: list[Update], at: Time = None) -> None:
        """Sends updates at that time, or at a later one."""

    def advance_to(self, time: Time) -> None:
        """Promises that nothing will be sent before a time."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that was sent and is not complete."""

    time: Time
    moves: list[Move]
    size: int | None  # bytes of its bins, if all are known


def _total(moves: list[Move], sizes: Mapping[int, int] | None) -> int | None:
    """The bytes of some bins; None if one of them is not known."""
    if sizes is None:
        return None
    known = [sizes[number] for move in moves for number in move.numbers]
    return None if min(known, default=0) < 0 else sum(known)


class Controller:
    """Paces migrations by the output frontier of an operator. One exists on every worker; one of them issues a
    migration.

    `advance_to` takes the place of the control input's own: it advances the input and, when the last step is complete,
    sends the next one. Sizes of bins, for orders and budgets, are those that the operator last reported; with a
    budget, a bin of unknown size goes alone.

    Several operators on one control stream are steered as one: make a `Group` of them.

    `lead`: the control input is kept so much ahead of what `advance_to` is told. Records whose configuration is certain
    when they come need not wait for another round of messages; steps take effect that much later.
    """

    def __init__(self, control: UpdateInput, stream: Stream[Record] | Group | Handle, lead: int = 0) -> None:
        if lead < 0:
            raise ValueError(f"a controller cannot lead by {lead}: it would hold the records back")
        if not isinstance(stream, Migratable | Group | Handle):
            raise TypeError(
                "a controller needs the stream that a migratable operator returned, as it returned it; "
                "or a Group of several"
            )
        self._control = control
        self._lead = lead
        self._operator: Handle | Group = stream.handle if isinstance(stream, Migratable) else stream
        self._mark: Mark | None = None  # of the migration that is under way, for those who look
        self._strategy = all_at_once()
        self._pacer: Pacer | None = None  # of a strategy that heeds the latency
        self._latencies = PaceLatencies()
        self._since = 0.0  # seconds since the last advance
        self._waiting: deque[list[Move]] = deque()  # steps that have not begun
        self._ahead: list[Update] = []  # what is said in a step of its own before the others: pins, splits, merges
        self._after: list[Update] = []  # and after them: keys that went ahead are in their bins again
        self._replan: Replan | None = None  # the plan that bins of the steps get, if it is about that
        self._under_way: deque[_Step] = deque()  # invariant: in the order of their times, of which no two are equal
        self._progress = MigrationProgress(0, 0, 0, 0)
        self._idle_since = 0  # advances since the last step was complete
        self._settled: Time | None = None
        self._there: set[int] = set()  # the workers that could have bins when the migration began

    @property
    def configuration(self) -> tuple[int, ...]:
        """Where each of the finest bins is, as far as that is final."""
        return tuple(self._operator.configuration.tolist())

    @property
    def tree(self) -> BinTree:
        """The bins that there are, as far as that is final."""
        return self._operator.tree

    @property
    def counts(self) -> Numbers:
        """By bin, how many of the finest ones it has."""
        return self.tree.counts

    @property
    def pinned(self) -> dict[Key, int]:
        """By key that lives apart from its bin, its worker, as far as that is final."""
        return self._operator.pinned

    @property
    def plans(self) -> list[str]:
        """By bin, the plan that it has or is on its way to, as far as that is final. Operators without plans have
        none."""
        return [] if isinstance(self._operator, Group) else self._operator.plans.plans

    @property
    def peers(self) -> int:
        """One more than the greatest number of a worker."""
        return self._operator.peers

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have bins: those that are leaving are not among them."""
        return self._operator.members

    @property
    def pins_keys(self) -> bool:
        """Whether single keys of the operator can live apart from their bins."""
        return self._operator.keys.pinnable

    def bins_of(self, keys: Keys) -> Numbers:
        """The bin of each key, of operators whose keys can be pinned."""
        return self._operator.keys.bins_of(self._operator.keys.check(keys))

    @property
    def statistics(self) -> Statistics:
        """The last report of each bin, from whichever worker has it."""
        return self._operator.statistics

    @property
    def busy(self) -> bool:
        """Whether a migration is under way."""
        return bool(self._under_way or self._waiting or self._ahead or self._after)

    def show_loop(self, loop: DecisionLoop) -> None:
        """Has a loop that steers by this controller be seen by those who look at the run."""
        self._operator.meter.loops.append(loop)

    def passed(self, time: Time) -> bool:
        """Whether the operator has done everything at `time`, on all workers."""
        return self._operator.passed(time)

    @property
    def settled(self) -> Time | None:
        """The time of the last step that is complete: what came before it was counted where things were then."""
        return self._settled

    @property
    def progress(self) -> MigrationProgress:
        """How far the last migration has come."""
        return self._progress

    def migrate(
        self,
        to: Sequence[int] | NDArray[np.integer],
        strategy: Strategy | None = None,
        pins: Mapping[Key, int | None] | None = None,
        splits: Sequence[str | Split] = (),
        merges: Sequence[str | Merge] = (),
    ) -> None:
        """Begins a migration from where bins are to `to`, a worker for each of the finest bins. What moves is cut along
        the bins that there are, and finer where a part of one goes elsewhere. ControlError if a migration is under way,
        or `to` makes no sense.

        `pins`: by key, the worker where it shall live apart from its bin, or None to have it there again. `splits`,
        `merges`: as in `reshape`. All these are a step of their own, before the others.
        """
        self._require_rest()
        usable, workers = self._usable(strategy), self._target(to)
        changes = changes_between(self._operator.configuration, np.array(workers), self._operator.tree)
        shapes = self._shapes(splits, merges)
        hot = self._hot_keys(np.array(workers), pins or {}) if usable.order == "keys" else {}
        self._ahead = shapes + ([self._checked({**hot, **(pins or {})})] if hot or pins else [])
        self._after = [self._checked(dict.fromkeys(hot))] if hot else []
        self._begin(usable, changes, None)

    def _hot_keys(self, to: Numbers, pins: Mapping[Key, int | None]) -> dict[Key, int | None]:
        """The heavy keys of bins that move, each with where its bin goes: they go ahead, one by one."""
        if not self.pins_keys:
            raise ControlError("single keys of this operator cannot move ahead of their bins: say order='hottest'")
        here, apart = self._operator.configuration, self.pinned
        keys = [key for load in self.statistics.heavy.values() for key in as_list(load.keys)]
        free = [key for key in dict.fromkeys(keys) if key not in apart and key not in pins]
        bins = self.bins_of(free) if free else np.empty(0, np.int64)
        return {key: int(to[bin]) for key, bin in zip(free, bins.tolist(), strict=True) if to[bin] != here[bin]}

    def reshape(self, splits: Sequence[str | Split] = (), merges: Sequence[str | Merge] = ()) -> None:
        """Splits and merges bins, all at one time: prefixes (a bin is split in two), or whole updates. ControlError if
        a migration is under way, or one makes no sense. State moves only where bins of several workers are merged."""
        self._require_rest()
        self._ahead = self._shapes(splits, merges)
        self._begin(all_at_once(), [], None)

    def _shapes(self, splits: Sequence[str | Split], merges: Sequence[str | Merge]) -> list[Update]:
        updates: list[Split | Merge] = [Split(each) if isinstance(each, str) else each for each in splits]
        updates += [Merge(each) if isinstance(each, str) else each for each in merges]
        return [check_shape(update, self._operator.bins, self._operator.peers) for update in updates]

    def replan(
        self,
        replan: Replan | str,
        strategy: Strategy | None = None,
        to: Sequence[int] | NDArray[np.integer] | None = None,
    ) -> None:
        """Begins to change plans, of all bins or those that the replan names, step by step as the strategy says. With
        `to`, bins go there in the same steps. ControlError if a migration is under way, or the replan makes no sense.

        A step is done when its bins have begun with their new plan; HybMig and parallel track go on after that.
        """
        self._require_rest()
        if isinstance(self._operator, Group):
            raise ControlError("a group has no plan of its own: give the operator that has one a controller of its own")
        asked = check_replan(Replan(replan) if isinstance(replan, str) else replan, self._operator.bins)
        if asked.plan is None:
            raise ControlError("a replan needs a plan: cancel() gives up the steps that have not begun")
        checked = self._operator.plans.checked(asked, drives=True)
        usable = self._usable(strategy)
        here = self.configuration
        there = here if to is None else self._target(to)
        named = range(self._operator.bins) if checked.bins is None else checked.bins
        plans = self._operator.plans.plans
        changing = {int(bin) for bin in named if plans[bin] != checked.plan}
        moving = {bin for bin, (a, z) in enumerate(zip(here, there, strict=True)) if a != z}
        changes = [Change(bin, here[bin], there[bin]) for bin in sorted(changing | moving)]
        self._begin(usable, changes, replace(checked, bins=np.array(sorted(changing))))

    def _begin(self, strategy: Strategy, changes: list[Change], replan: Replan | None) -> None:
        known = self._operator.statistics
        steps = strategy.cut_up(changes, known.bytes.tolist(), known.records.tolist())
        self._strategy, self._replan, self._waiting = strategy, replan, deque(steps)
        self._there = {*self._operator.members}
        self._pacer, self._latencies = None if strategy.bound is None else Pacer(strategy.bound), PaceLatencies()
        self._idle_since = strategy.gap
        own = bool(self._ahead) + bool(self._after)
        self._progress = MigrationProgress(0, len(steps) + own, 0, sum(map(len, steps)))
        if self.busy:
            self._mark = self._operator.meter.begin("migration", self._title)

    @property
    def _title(self) -> str:
        """What people are told of the migration."""
        now, what = self._progress, "replan" if self._replan is not None else self._strategy.name
        shares = f"{now.bins_moved} of {now.bins} bins, {now.steps_done} of {now.steps} steps"
        return f"{self._operator.name}: {what}, {shares}"

    def _tell_if_over(self) -> None:
        if self._mark is not None and not self.busy:
            self._operator.meter.end(self._mark, self._title)
            self._mark = None

    def _require_rest(self) -> None:
        if self.busy:
            raise ControlError("a migration is under way: wait until it is done, or cancel it")

    def _target(self, to: Sequence[int] | NDArray[np.integer]) -> tuple[int, ...]:
        target = check_update(Assign(to), self._operator.bins, self._operator.peers)
        assert isinstance(target, Assign)
        return tuple(target.workers)

    def _usable(self, strategy: object) -> Strategy:
        if strategy is None:
            return all_at_once()
        if not isinstance(strategy, Strategy):
            made = "all_at_once(), fluid(), batched(n), matched() or within(latency)"
            raise TypeError(f"a strategy is what {made} return, not {strategy!r}")
        asked = (strategy.budget, strategy.order, strategy.bound)
        if any(each is not None for each in asked) and not self.statistics.kept:
            raise ControlError(
                "a budget, a bound or an order needs statistics of bins: give the operator an interval for them"
            )
        return strategy

    def _checked(self, pins: Mapping[Key, int | None]) -> Pins:
        workers = [HOME if worker is None else worker for worker in pins.values()]
        checked = check_pins(Pins([*pins], workers), self._operator.peers)
        return Pins(self._operator.keys.check(checked.keys), checked.workers)

    def cancel(self) -> None:
        """Gives up the steps that have not begun. What has moved stays where it is; but keys that went ahead of their
        bins go back to them."""
        left = sum(map(len, self._waiting))
        now = self._progress
        self._progress = replace(now, steps=now.steps - len(self._waiting), bins=now.bins - left)
        self._waiting.clear()
        if self._ahead:
            self._progress = replace(self._progress, steps=self._progress.steps - 1 - bool(self._after))
            self._ahead, self._after = [], []
        self._tell_if_over()

    def advance_to(self, time: Time) -> None:
        """Advances the control input to `time` (and the lead), and sends the next step there: if the last is done, or
        if all that are not done are small (`Strategy.small`)."""
        if self._pacer is not None:
            self._watch(self._pacer, time)
        if self._lead:
            time += self._lead
        self._control.advance_to(time)
        time = max(time, self._control.time)  # a stream that the run advances may be further
        if not self._under_way:
            self._idle_since += 1
        while self._under_way and self._operator.passed(self._under_way[0].time):
            self._complete(self._under_way.popleft())
            self._tell_if_over()
        if self._replan is None and self._waiting and not self._there <= {*self._operator.members}:
            self._give_up_leavers()
        if self._waiting and not self._ahead:
            self._send_step(time)
        elif (self._ahead or self._after) and not self._under_way and self._idle_since >= self._strategy.gap:
            self._control.send(self._ahead or self._after)
            self._under_way.append(_Step(time, [], None))
            self._ahead, self._after = [], self._after if self._ahead else []

    def _give_up_leavers(self) -> None:
        """A worker began to leave after the migration did: what was to go there stays where it is."""
        gone = self._there - {*self._operator.members}
        self._there -= gone
        before, now = self._waiting, self._progress
        kept = ([move for move in step if move.worker not in gone] for step in before)
        self._waiting = deque(step for step in kept if step)
        left = sum(map(len, before)) - sum(map(len, self._waiting))
        self._progress = replace(now, steps=now.steps - len(before) + len(self._waiting), bins=now.bins - left)
        if left:
            leavers = ", ".join(map(str, sorted(gone)))
            log.warning("%s: %d bins stay where they are: worker %s leaves", self._operator.name, left, leavers)
        self._tell_if_over()

    def _watch(self, pacer: Pacer, time: Time) -> None:
        """Tells the pacer how long times took."""
        now = self._operator.now()
        self._since = self._latencies.handed(time, now)
        for latency in self._latencies.completed(self._operator.passed, now):
            pacer.saw(latency, steady=not self._under_way)

    def _complete(self, step: _Step) -> None:
        if self._pacer is not None:
            self._pacer.completed(step.size or 0)
        now = self._progress
        self._progress = replace(now, steps_done=now.steps_done + 1, bins_moved=now.bins_moved + len(step.moves))
        self._settled = step.time
        self._idle_since = 0

    def _send_step(self, time: Time) -> None:
        """Sends a step, or as much of it as the budget allows: the rest of it is then a step of its own. Nothing if it
        has to wait for those under way."""
        if not self._under_way and self._idle_since < self._strategy.gap:
            return
        budget = self._room()
        if budget == 0:
            return
        sizes = self._sizes_of(self._waiting[0])
        now, rest = self._strategy.split(self._waiting[0], sizes, budget)
        size = _total(now, sizes)
        if self._under_way and not self._fits(time, size, budget):
            return
        self._control.send(self._updates(now))
        more = len(now) + len(rest) - len(self._waiting[0])  # a bin that is above the budget is cut
        self._progress = replace(self._progress, bins=self._progress.bins + more)
        if rest:
            self._waiting[0] = rest
            self._progress = replace(self._progress, steps=self._progress.steps + 1)
        else:
            self._waiting.popleft()
        self._under_way.append(_Step(time, now, size))

    def _room(self) -> int | None:
        """The bytes that the pacer lets go now; None: as many as the strategy says."""
        if self._pacer is None:
            return None
        under_way = sum(step.size or 0 for step in self._under_way)
        return self._pacer.room(under_way, self._latencies.age(self._operator.now()), self._since)

    def _fits(self, time: Time, size: int | None, room: int | None) -> bool:
        """Whether a step of that size may begin although others are under way. A step takes several times from its
        update to its end, because everybody must know of it before; where bins are small, that is all that it takes."""
        if self._strategy.gap or self._replan is not None or time <= self._under_way[-1].time:
            return False
        if room is not None:
            return size is not None and size <= room
        sizes = [step.size for step in self._under_way] + [size]
        known = [each for each in sizes if each is not None]
        return len(known) == len(sizes) and sum(known) <= self._strategy.small

    def _updates(self, step: list[Move]) -> list[Update]:
        """What is said for a step: which bins go where, and which get another plan."""
        bins = np.array([number for move in step for number in move.numbers])
        workers = np.array([move.worker for move in step for _ in move.numbers])
        if self._replan is None:
            return [Moves(bins, workers)]
        assert self._replan.bins is not None and isinstance(self._operator, Handle)
        plans = self._operator.plans.plans  # somebody else may have sent a replan meanwhile
        replanned = np.array([b for b in bins.tolist() if b in self._replan.bins and plans[b] != self._replan.plan])
        moved = workers != self._operator.configuration[bins]
        updates: list[Update] = [replace(self._replan, bins=replanned)] if len(replanned) else []
        return updates + ([Moves(bins[moved], workers[moved])] if moved.any() else [])

    def _sizes_of(self, step: list[Move]) -> dict[int, int] | None:
        """By finest bin of a step, its bytes, or UNKNOWN; None if the operator reports none, or there is no budget."""
        if not self.statistics.kept or self._strategy.limit is None:
            return None
        bins = np.array([number for move in step for number in move.numbers])
        sizes = self.statistics.sizes_of(bins, self._operator.configuration)
        return dict(zip(bins.tolist(), sizes.tolist(), strict=True))
