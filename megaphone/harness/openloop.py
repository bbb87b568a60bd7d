"""The driver of an open-loop load: sends what is due, whether or not the system keeps up, and notes what is complete.

Two tasks on each worker: one sends epochs when they are due, the other waits for the probe and writes down when epochs
were complete. Neither polls: the first sleeps until the next epoch is due, the second until the frontier moves. All
else (latencies, quantiles, timelines) is computed from that log when the run is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, Required, TypedDict, Unpack

import trio

from dataflow.operators.probe import Probe
from dataflow.run.signal import Signal
from dataflow.run.worker import Worker, pump_of
from dataflow.time.order import Time
from megaphone.harness.episodes import Episodes
from megaphone.harness.live import Snapshot
from megaphone.harness.machine import stolen
from megaphone.harness.memory import resident
from megaphone.harness.pace import Pace
from megaphone.harness.recent import Recent
from megaphone.harness.recording import Recording
from megaphone.harness.schedule import SECOND, LoadSchedule
from megaphone.harness.startline import agree_on_start

Send = Callable[[int, int, int], object]

_BURST = 0.002  # seconds of sending before a late sender lets others have a turn
_ENOUGH = 1 << 18  # records that are sent at one time, in step; more would only leave the caches


class Input(Protocol):
    """What the driver advances: an `InputHandle`, a controller of migrations, or anything else with this method."""

    def advance_to(self, time: Time, /) -> object:
        """Promises that nothing will come before `time`."""


class LoopOptions(TypedDict, total=False):
    """The options of `OpenLoop`, which says what they mean."""

    inputs: Required[Sequence[Input]]
    outstanding: int
    grace: float | None
    coalesce: bool
    in_step: bool
    episodes: Episodes | None
    memory_every: float
    watch: Callable[[Snapshot], object] | None
    watch_every: float


class OpenLoop:
    """One worker's share of an open-loop run; `await loop.run()` on every worker.

    `send(epoch, low, high)` sends this worker's records of an epoch, those from number `low` to before `high`, when the
    inputs are at `schedule.time(epoch)`; the driver then advances `inputs` to the next epoch's time. It is called for
    every epoch, also one without records: the place to begin a migration, or to look whether one has ended.

    - `outstanding`: so many epochs may be sent and not complete; further ones wait, and are charged for it.
    - `grace`: seconds after the end of the schedule until what is not complete is given up (a tenth of the duration,
      and at least a second).
    - `coalesce`: epochs that are late are sent at one time, the first one's. Cheaper for the dataflow, but then which
      records share a time depends on how late the run was.
    - `in_step`: epochs are sent when all that was sent before is complete, at one time, the first one's, and the same
      ones on all workers, so that records of one epoch never come at different times. When one worker
      is late, all of them catch up in one time, which costs a dataflow about as much for many records as for few.
    - `memory_every`: seconds between two looks at the memory of the process.
    - `watch`: is given a `Snapshot` every `watch_every` seconds, for a live view.
    """

    def __init__(
        self,
        worker: Worker,
        schedule: LoadSchedule,
        send: Send,
        probe: Probe,
        *,
        inputs: Sequence[Input],
        outstanding: int = 1000,
        grace: float | None = None,
        coalesce: bool = False,
        in_step: bool = False,
        episodes: Episodes | None = None,
        memory_every: float = 0.25,
        watch: Callable[[Snapshot], object] | None = None,
        watch_every: float = 0.5,
    ) -> None:
        if schedule.workers != worker.peers:
            raise ValueError(
                f"a schedule for {schedule.workers} workers, and there are {worker.peers}: "
                "write LoadSchedule(..., workers=worker.peers)"
            )
        if type(outstanding) is not int or outstanding < 1:
            raise ValueError(f"outstanding must be a positive number of epochs, not {outstanding!r}")
        if not inputs:
            raise ValueError("inputs must name the inputs to advance, or no epoch would ever be complete")
        self.worker = worker
        self._pump = pump_of(worker)
        self.schedule = schedule
        self.episodes = episodes if episodes is not None else Episodes()
        self.sent = 0  # epochs
        self.complete = 0  # epochs; invariant: complete <= sent
        self._send = send
        self._probe = probe
        self._inputs = tuple(inputs)
        self._outstanding = outstanding
        self._grace = max(1.0, schedule.duration / 10) if grace is None else grace
        self._coalesce = coalesce
        self._in_step = in_step
        self._memory_every = memory_every
        self._watch = watch
        self._watch_every = watch_every
        self._start = 0.0  # on the worker's clock
        self._moved = Signal()  # set when more epochs are complete
        self._through: list[int] = []
        self._at: list[int] = []
        self._memory_at: list[int] = []
        self._memory: list[int] = []
        self._stolen = 0  # before the run

    async def run(self) -> Recording:
        """Runs the schedule to its end, or until the grace is over; returns what this worker saw.

        The run begins when all workers are here and have completed everything before the schedule's first time.
        """
        pace = Pace(self.worker) if self._in_step else None
        await self._begin()
        gave_up: int | None = None
        async with trio.open_nursery() as background:
            background.start_soon(self._sample_memory)
            if self._watch is not None:
                background.start_soon(self._show)
            with trio.move_on_at(self._start + self.schedule.length_ns / SECOND + self._grace):
                async with trio.open_nursery() as both:
                    both.start_soon(self._note_completions)
                    await (self._send_what_is_due() if pace is None else self._send_in_step(pace))
            if self.complete < self.schedule.epochs:
                gave_up = self._elapsed_ns()
            background.cancel_scope.cancel()
        if pace is not None:
            pace.end()
        self._look_at_memory()
        return self._recording(gave_up)

    async def _begin(self) -> None:
        self._advance(self.schedule.first)
        await self._probe.wait_passed(self.schedule.first - 1)
        self._start = await agree_on_start(self.worker)
        self._stolen = stolen()
        self.episodes.start(self.elapsed)

    # Sending

    async def _send_what_is_due(self) -> None:
        schedule = self.schedule
        while self.sent < schedule.epochs:
            due = schedule.due(self.elapsed())
            self._send_epochs(min(due, self.complete + self._outstanding))
            self._pump.turn_before_waiting()
            if self.sent == schedule.epochs:
                await trio.lowlevel.checkpoint()
            elif self.sent == due:
                await self._pump.clock.sleep_until(self._start + schedule.due_at(self.sent))
            elif not self._pump.flow.open:
                await self.worker.room()
            elif self.sent == self.complete + self._outstanding:
                await self._moved.wait()
            else:
                await trio.lowlevel.checkpoint()  # late: the burst is over, and others have their turn

    def _send_epochs(self, until: int) -> None:
        """Sends epochs before `until`, in one go, but not for too long nor more than the transport has room for."""
        enough = time.perf_counter() + _BURST
        begun = self.sent
        while self.sent < until and self._pump.flow.open:
            self._send(self.sent, *self.schedule.share(self.sent, self.worker.index))
            self.sent += 1
            if not self._coalesce:
                self._advance(self.schedule.time(self.sent))
            if time.perf_counter() > enough:
                break
        if self._coalesce and self.sent > begun:
            self._advance(self.schedule.time(self.sent))

    async def _send_in_step(self, pace: Pace) -> None:
        schedule = self.schedule
        while self.sent < schedule.epochs:
            if pace.leads:
                until = min(await self._next_due(), self.sent + self._together())
                pace.say(until)
            else:
                until = await pace.heard(self.sent)
                if until == self.sent:  # the leader has given up
                    return
            while self.sent < until:
                self._send(self.sent, *schedule.share(self.sent, self.worker.index))
                self.sent += 1
            self._advance(schedule.time(until))
            self._pump.turn_before_waiting()

    def _together(self) -> int:
        """How many epochs may be sent at one time: as many as it takes to make a time's own costs negligible."""
        return max(1, _ENOUGH // max(1, self.schedule.count(self.sent)))

    async def _next_due(self) -> int:
        """Waits until all that was sent is complete and an epoch is due; how many are."""
        while self.complete < self.sent:
            await self._moved.wait()
        if self.schedule.due(self.elapsed()) == self.sent:
            await self._pump.clock.sleep_until(self._start + self.schedule.due_at(self.sent))
        return max(self.sent + 1, self.schedule.due(self.elapsed()))

    def _advance(self, to: int) -> None:
        for handle in self._inputs:
            handle.advance_to(to)

    # Measuring

    async def _note_completions(self) -> None:
        while self.complete < self.schedule.epochs:
            await self._probe.wait_passed(self.schedule.last_time(self.complete))
            frontier = self._probe.frontier
            reached = self.schedule.completed(min(frontier)) if len(frontier) else self.schedule.epochs
            self.complete = min(reached, self.schedule.epochs)
            self._through.append(self.complete)
            self._at.append(self._elapsed_ns())
            self._moved.set()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._pump.clock.now() - self._start

    def _elapsed_ns(self) -> int:
        return round(self.elapsed() * SECOND)

    async def _sample_memory(self) -> None:
        for number in range(1 << 62):
            await trio.sleep_until(self._start + number * self._memory_every)
            self._look_at_memory()

    def _look_at_memory(self) -> None:
        self._memory_at.append(self._elapsed_ns())
        self._memory.append(resident())

    # Reporting

    async def _show(self) -> None:
        assert self._watch is not None
        recent = Recent(self.schedule, self.worker.index, self._through, self._at)
        for number in range(1, 1 << 62):
            await trio.sleep_until(self._start + number * self._watch_every)
            self._watch(self.snapshot(recent))

    def snapshot(self, recent: Recent) -> Snapshot:
        """Where the run is now."""
        now = self._elapsed_ns()
        completed, latencies = recent.look(now)
        return Snapshot(
            seconds=now / SECOND,
            duration=self.schedule.length_ns / SECOND,
            offered=float(self.schedule.rate),
            completed=completed,
            latencies_ms=tuple(value / 1e6 for value in latencies),
            frontier=self.schedule.time(self.complete),
            behind=max(0.0, (min(now, self.schedule.length_ns) - self.complete * self.schedule.epoch_ns) / SECOND),
            outstanding=self.sent - self.complete,
            under_way=self.episodes.under_way,
        )

    def _recording(self, gave_up: int | None) -> Recording:
        return Recording(
            worker=self.worker.index,
            schedule=self.schedule.to_dict(),
            through=self._through,
            at=self._at,
            sent=self.sent,
            gave_up=gave_up,
            episodes=[(episode.name, episode.begin, episode.end) for episode in self.episodes.all],
            memory_at=self._memory_at,
            memory=self._memory,
            stolen=stolen() - self._stolen,
        )


async def drive(
    worker: Worker, schedule: LoadSchedule, send: Send, probe: Probe, **options: Unpack[LoopOptions]
) -> Recording:
    """Runs an open-loop load on this worker: `await OpenLoop(worker, schedule, send, probe, ...).run()`."""
    return await OpenLoop(worker, schedule, send, probe, **options).run()
