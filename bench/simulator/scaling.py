"""What the real autoscaler sees of a simulated run, and what it can ask of it: workers that come and go."""

from __future__ import annotations

from dataclasses import dataclass

import megaphone
from bench.simulator.clockwork import SimulatedRun
from dataflow.members.requests import Places, even
from planners.scaling.driver import ScaleDriver
from planners.scaling.work import OperatorWork, RecordFlow, SourceWork, WorkInterval


@dataclass
class SimulatedChange:
    """A change of the number of workers, as far as it has come: starting, moving, done."""

    wanted: int
    asked: float  # when
    state: str = "starting"

    @property
    def done(self) -> bool:
        """Whether the new membership is in force, and state has moved."""
        return self.state == "done"


class SimulatedScaling:
    """Has workers come and go: joiners take part when they have started, leavers until their bins have left. Bins are
    placed and moved as `megaphone.migration.moving` does it for a running program; `budget`: bytes in flight, in the
    place of those that are usual."""

    def __init__(self, run: SimulatedRun, budget: int | None = None) -> None:
        self._run = run
        self._budget = budget
        self._change: SimulatedChange | None = None
        run.hooks.append(self._step)

    def scale(self, workers: int, /) -> SimulatedChange:
        """Asks for so many workers."""
        self._change = SimulatedChange(workers, self._run.now)
        return self._change

    def _step(self, run: SimulatedRun) -> None:
        change = self._change
        if change is None or run.controller.busy:
            return
        if change.state == "starting":
            if change.wanted > run.members:
                if run.now < change.asked + run.costs.start:
                    return
                self._set_members(change.wanted)
            self._move(range(change.wanted))
            change.state = "moving"
        elif change.state == "moving":
            if change.wanted < run.members:
                self._set_members(change.wanted)
            change.state = "done"
            self._change = None

    def _set_members(self, workers: int) -> None:
        run = self._run
        run.handle.roster.change(range(workers), range(run.members, workers))
        run.members = workers
        run.rearranged()

    def _move(self, workers: range) -> None:
        run, known = self._run, self._run.handle.statistics
        to = even(Places("simulated", workers, run.handle.configuration, known.records, known.bytes))
        if (run.handle.configuration != to).any():
            run.controller.migrate(to, megaphone.batched(max(1, len(to) // 16), budget=self._budget))
            run.episodes.begin(f"to {len(workers)} workers")


class SimulatedReadings:
    """Hands each interval that is over to the autoscaler's driver."""

    def __init__(self, run: SimulatedRun, driver: ScaleDriver, seconds: float) -> None:
        self._driver = driver
        self._seconds = seconds
        self._began, self._epochs = 0.0, 0
        self._useful = dict(run.useful)
        self._overhead = 0.0
        self.workers: list[tuple[float, int]] = [(0.0, run.members)]
        self.backlog: list[tuple[float, float]] = []  # seconds of records that wait, by when
        run.hooks.append(self._step)

    def _step(self, run: SimulatedRun) -> None:
        if run.members != self.workers[-1][1]:
            self.workers.append((run.now, run.members))
        seconds = run.now - self._began
        if seconds < self._seconds:
            return
        load, complete = run.load, len(run.done)
        records = sum(load.records(epoch) for epoch in range(self._epochs, complete))
        due = min(load.epochs, int(run.now / load.epoch))
        waiting = sum(load.records(epoch) for epoch in range(complete, due))
        offered = load.records(min(due, load.epochs - 1)) / load.epoch
        works = [OperatorWork(name, records, run.useful[name] - self._useful[name]) for name in ("F", "S")]
        source = SourceWork("records", records, 0.0, offered, waiting)
        flows = [RecordFlow("records", "F", records), RecordFlow("F", "S", records)]
        overhead = run.overhead - self._overhead
        self._driver.step(WorkInterval(seconds, run.members, [source], works, flows, overhead))
        self.backlog.append((run.now, waiting / offered if offered else 0.0))
        self._began, self._epochs, self._useful, self._overhead = run.now, complete, dict(run.useful), run.overhead
