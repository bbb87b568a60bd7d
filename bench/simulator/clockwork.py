"""A run on a virtual clock: epochs, migrations and snapshots as events, each for all workers at once.

An epoch has two events. In the first, workers send what is due and F routes it. In the second, when every worker has,
S applies it. Between them worker 0 has its turn, in which the real controller does what it would do there. A late
worker sends all that is due together, as the harness's driver does, and pays for one epoch. Everything is an array by
worker, so an epoch of a thousand workers costs a few dozen array operations. docs/internals/simulator.md has the model.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench.simulator.cluster import SimulatedCluster
from bench.simulator.costs import Floats, MeasuredCosts
from bench.simulator.steering import SimulatedControl, SimulatedHandle, told_loads
from bench.simulator.workload import SimulatedLoad
from megaphone import Controller
from megaphone.harness import Episodes, LoadSchedule, Outcome, Recording

if TYPE_CHECKING:
    from megaphone.control.configuration import Migration

SEND, TURN, APPLY = range(3)  # events; at one instant in this order
CHUNK = 4 << 20  # bytes of state that F sends in one go: what records may have to wait behind
BEAT = 0.25  # seconds from one stall of a machine to the next
LEFT = 0.1  # of a link: what state has at the least, however much records take
Ints = NDArray[np.int64]
Hook = Callable[["SimulatedRun"], None]


class SimulatedRun:
    """One run. `hooks` are called on each turn of worker 0: there migrations begin, and loops decide."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        costs: MeasuredCosts,
        load: SimulatedLoad,
        hooks: list[Hook] | None = None,
        members: int | None = None,
    ) -> None:
        self.cluster, self.costs, self.load = cluster, costs, load
        self.hooks = hooks or []
        self.members = members or cluster.workers
        self.now = 0.0
        self.handle = SimulatedHandle(load.bins, self.members, lambda: self.now, self.passed)
        self.control = SimulatedControl(self.handle)
        self.controller = Controller(self.control, self.handle, lead=load.lead)
        self.shares, self.sizes = load.even, load.even * load.state  # by bin: of the records, and bytes
        self.done: list[float] = []  # by epoch, when worker 0 knew that it was complete; never falls
        self.episodes = Episodes()
        self.episodes.start(lambda: self.now)
        self.useful = {"F": 0.0, "S": 0.0}  # seconds of all workers
        self.overhead = 0.0
        self.moved = 0.0  # bytes of state
        self.turns = 0
        self._free = np.zeros(cluster.workers)  # by worker, when its processor is
        self._group = np.full(cluster.workers, -1.0)  # when it last sent, for the first of what it sent then
        self._turned = -1.0
        self._events: list[tuple[float, int, int, int]] = []
        self._order = count()
        self._blocked: int | None = None  # the epoch that waits for room
        self._link = 0.0  # when the busiest link is free
        self._next_stall = BEAT
        self._applied = 0.0  # when the last epoch was, on the slowest worker
        self._told = (0.0, 0, 0)  # statistics: when, up to which epoch, and how often
        self._due_snapshot = load.snapshots
        self.rearranged()

    # What follows from where bins are

    def rearranged(self) -> None:
        """To be called when bins, their shares of the load, their sizes or the members have changed."""
        workers, table = self.cluster.workers, self.handle.configuration
        self._loads = np.bincount(table, self.shares, workers)  # by worker, its share of the records
        self.held = np.bincount(table, self.sizes, workers).astype(float)  # and its bytes of state
        self._slow = self.cluster.slowness
        self._each = self.costs.apply_seconds(self.held)
        self._here = np.arange(workers) < self.members
        machine = self.cluster.machine_of
        beyond = 1 - self.cluster.per_machine / self.members if self.members > self.cluster.per_machine else 0.0
        sent = self.cluster.per_machine / self.members
        self._crossing = beyond * max(sent, float(np.bincount(machine, self._loads).max()))  # of the busiest link

    @property
    def far(self) -> float:
        """Seconds from one worker to the furthest other one."""
        if self.members == 1:
            return 0.0
        return self.costs.hop + (self.cluster.delay if self.members > self.cluster.per_machine else 0.0)

    @property
    def _turns_of(self) -> float:
        """How many workers take turns on a core."""
        return max(1.0, min(self.members, self.cluster.per_machine) / self.cluster.cores)

    @property
    def _crowding(self) -> float:
        """How many times as much a record costs for that."""
        return float(self._turns_of**self.costs.crowd) if self.cluster.shares_cores else 1.0

    def passed(self, time: int) -> bool:
        """Whether an epoch is complete, as far as worker 0 knows now."""
        return time < 0 or (time < len(self.done) and self.done[time] <= self.now)

    # The events

    def run(self) -> SimulatedRun:
        """Runs to the end."""
        self._push(0.0 if self.load.closed else self.load.epoch, SEND, 0)
        while self._events:
            at, kind, _, epoch = heapq.heappop(self._events)
            if kind == SEND:
                self._send(epoch, at)
            elif kind == TURN:
                self._turn(at, epoch)
            else:
                self._apply(epoch, at)
        self.now = max(self.now, self.done[-1])
        return self

    def _push(self, at: float, kind: int, epoch: int) -> None:
        heapq.heappush(self._events, (at, kind, next(self._order), epoch))

    def _send(self, epoch: int, at: float) -> None:
        load, costs, others = self.load, self.costs, self.members - 1
        records = load.records(epoch)
        own = records / self.members
        joins = (at <= self._group) & (not load.closed)
        begins = np.maximum(at, self._free)
        self._group = np.where(joins, self._group, begins)
        fixed = costs.epoch + costs.peer * others + costs.message * min(others, own) + costs.wake * (others > 0)
        fixed += costs.switch * self.cluster.shares_cores
        routing = own * (costs.route + costs.byte * load.record * others / self.members) * self._crowding
        self.useful["F"] += own * costs.route * self.members
        self.overhead += fixed * float((self._here & ~joins).sum())
        ends = self._work(at, np.where(joins, 0.0, fixed) + routing)
        if not joins[0]:
            self._push(float(begins[0]), TURN, epoch)
        self._link = (
            max(self._link, float(ends.max())) + records * load.record * self._crossing / self.cluster.bandwidth
        )
        self._push(max(self._link + self.far, self._applied), APPLY, epoch)
        self._next(epoch + 1, at)

    def _next(self, epoch: int, at: float) -> None:
        load = self.load
        if epoch >= load.epochs:
            return
        if epoch - len(self.done) >= load.outstanding:
            self._blocked = epoch
            return
        self._push(at if load.closed else max(at, (epoch + 1) * load.epoch), SEND, epoch)

    def _turn(self, at: float, epoch: int) -> None:
        """Worker 0 sends: all that is due by then, and so that far the control stream is advanced."""
        self.now = max(self.now, at)
        self.turns += 1
        for hook in self.hooks:
            hook(self)
        until = epoch + 1 if self.load.closed else max(epoch + 1, int(self.now / self.load.epoch))
        self.controller.advance_to(until)
        if self.episodes.under_way is not None and not self.controller.busy:
            self.episodes.end()

    def _apply(self, epoch: int, at: float) -> None:
        for migration in self.handle.configurations.finalise(lambda time: time <= epoch):
            at = max(at, self._migrate(migration))
        self.handle.configurations.retire(lambda time: time <= epoch)
        records = self.load.records(epoch)
        work = records * self._loads * self._each * self._crowding
        self.useful["S"] += float((work * self._slow).sum())
        if self._due_snapshot is not None and at >= self._due_snapshot:
            work = work + self.held * self.costs.snapshot
            self._due_snapshot = at + max(self.load.snapshots or 0.0, float(self.held.max()) / self.load.disk)
        ends = self._work(at, work)
        self._applied = max(self._applied, float(ends[self._here].max()))
        known = self._applied + self.far + self.costs.wait
        self.done.append(max(known + self._late(epoch, known), self.done[-1] if self.done else 0.0))
        self._tell(epoch)
        if self._blocked is not None:
            blocked, self._blocked = self._blocked, None
            self._next(blocked, self._applied + self.far)  # a sender that waits for room looks all the time

    def _late(self, epoch: int, known: float) -> float:
        """By how much worker 0 learns later of an epoch: another may have its core; and now and then a machine does
        something else."""
        if self.load.closed:
            return 0.0  # there is always something to do, and who has the core looks for messages
        turn = self.costs.slice * (1 - 1 / self._turns_of)
        if known < self._next_stall:
            return turn
        self._next_stall = known + BEAT
        if self.cluster.shares_cores:
            return turn + self.costs.swing * max(0.0, known + turn - (epoch + 1) * self.load.epoch)
        return self.costs.stall

    # Processors and links

    def _work(self, at: float, seconds: Floats) -> Floats:
        """Members have so much to do, from an instant on: when each has done it."""
        seconds = np.where(self._here, seconds * self._slow, 0.0)
        begins = np.maximum(at, self._free)
        if not self.cluster.shares_cores:
            ends = begins + seconds
        else:  # those of a machine take turns, and end together
            machine = self.cluster.machine_of
            together = np.bincount(machine, seconds) / self.cluster.cores
            longest, first = np.zeros_like(together), np.zeros_like(together)
            np.maximum.at(longest, machine, seconds)
            np.maximum.at(first, machine, begins)
            ends = (first + np.maximum(together, longest))[machine]
        self._free = np.where(self._here, ends, self._free)
        return ends

    def _migrate(self, migration: Migration) -> float:
        """Bins leave when everything before is complete; when all have arrived and are installed."""
        before = migration.time - 1
        begin = self.done[before] if 0 <= before < len(self.done) else self._applied
        origins, destinations = migration.origins.astype(np.int64), migration.destinations.astype(np.int64)
        sizes, workers, costs = self.sizes[migration.bins], self.cluster.workers, self.costs
        out, into = (np.bincount(ends, sizes, workers) for ends in (origins, destinations))
        moved = np.bincount(origins, minlength=workers), np.bincount(destinations, minlength=workers)
        take, install = out * costs.take + moved[0] * costs.bin, into * costs.install + moved[1] * costs.bin
        begin += costs.pieces * bool(out.max() > CHUNK)
        self.moved += float(sizes.sum())
        self.overhead += float((take + install).sum()) + costs.step * self.members
        link = self._over_links(origins, destinations, sizes)
        self.rearranged()
        if self.cluster.shares_cores:
            ends = self._work(begin, take + install + costs.step)
            return max(float(ends.max()), begin + link) + self.far
        began = np.maximum(begin, self._free)
        sent = self._work(begin, take + costs.step)
        leaving = out > 0
        last = float(sent[leaving].max()) if leaving.any() else begin
        first = float((began + np.minimum(take, CHUNK * costs.take))[leaving].min()) if leaving.any() else begin
        arrived = max(last, begin + link) + self.far
        ends = self._work(first + self.far, install)
        tail = np.minimum(install, CHUNK * costs.install) * self._slow  # the last piece is installed when it is there
        ends = np.where(into > 0, np.maximum(ends, arrived + tail), ends)
        self._free = np.maximum(self._free, np.where(into > 0, ends, 0.0))
        return max(float(ends[into > 0].max()) if (into > 0).any() else begin, arrived)

    def _over_links(self, origins: Ints, destinations: Ints, sizes: Floats) -> float:
        """Seconds that the busiest link needs for state that goes from machine to machine, beside the records."""
        each, machines = self.cluster.per_machine, self.cluster.machines
        far = origins // each != destinations // each
        if not far.any():
            return 0.0
        out, into = (np.bincount(ends[far] // each, sizes[far], machines).max() for ends in (origins, destinations))
        taken = self.load.records(len(self.done)) / self.load.epoch * self.load.record * self._crossing
        return float(max(out, into) / max(self.cluster.bandwidth - taken, LEFT * self.cluster.bandwidth))

    def _tell(self, epoch: int) -> None:
        """Statistics, once per interval: those of every worker, to every worker."""
        began, since, number = self._told
        at = self.done[-1]
        if at - began < self.load.report:
            return
        records = sum(self.load.records(each) for each in range(since, epoch + 1)) * self.shares
        nanoseconds = self._each * self._slow * 1e9
        table = self.handle.configuration
        for told in told_loads(
            number, at - began, epoch, epoch + 1 - since, table, records, nanoseconds, self.sizes
        ):  # fmt: skip
            self.handle.statistics.heard(told)
        self._told = at, epoch + 1, number + 1

    # What it showed

    def outcome(self, warmup: float = 1.0, window: float = 0.25) -> Outcome:
        """The latencies of all records, from the end of their epoch, and around each migration."""
        load = self.load
        rate = load.rate if isinstance(load.rate, int | float) else load.rate(0.0)
        schedule = LoadSchedule(rate, load.seconds, load.epoch)
        recording = Recording(
            worker=0, schedule=schedule.to_dict(), through=list(range(1, len(self.done) + 1)),
            at=[round(at * 1e9) for at in self.done], sent=len(self.done), gave_up=None,
            episodes=[(each.name, each.begin, each.end) for each in self.episodes.all],
            memory_at=[], memory=[], stolen=0,
        )  # fmt: skip
        return Outcome.of([recording], warmup=warmup, window=window, since="epoch end")
