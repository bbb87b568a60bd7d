"""A dataflow that runs in a table of numbers, under a curve of rates, with an autoscaler at the wheel.

What it must not be is what the autoscaler assumes. Useful time per record grows with the number of workers (`drag`), so
that rates measured on few workers promise too much; measurements are noisy; a change takes effect some seconds later;
and what cannot be processed waits outside.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from planners.scaling.autoscaler import ScaleDecision
from planners.scaling.curves import Curve
from planners.scaling.work import OperatorWork, RecordFlow, SourceWork, WorkInterval

Decide = Callable[[WorkInterval], ScaleDecision]


@dataclass(frozen=True)
class ModelOperator:
    """An operator of the model: microseconds per record, and how many it sends on for each."""

    name: str
    cost: float
    selectivity: float = 1.0


@dataclass(frozen=True)
class ModelDataflow:
    """A chain of operators, on any number of workers."""

    operators: Sequence[ModelOperator] = (
        ModelOperator("parse", 8.0),
        ModelOperator("filter", 3.0, 0.4),
        ModelOperator("count", 40.0),
    )
    drag: float = 0.02  # by how much a record costs more for each worker besides the first

    def cost(self, workers: int) -> float:
        """Seconds of one worker for a record of the source."""
        amount, total = 1.0, 0.0
        for each in self.operators:
            total += amount * each.cost / 1e6
            amount *= each.selectivity
        return total * (1 + self.drag * (workers - 1))

    def capacity(self, workers: int) -> float:
        """Records of the source per second, at most."""
        return workers / self.cost(workers)

    def fewest(self, rate: float, utilisation: float, maximum: int) -> int:
        """The oracle: the fewest workers that are busy for no more than that share of the time."""
        return next((n for n in range(1, maximum) if self.capacity(n) * utilisation >= rate), maximum)

    def measured(
        self, records: float, offered: float, backlog: float, seconds: float, workers: int, noise: Callable[[], float]
    ) -> WorkInterval:
        """What statistics would say of an interval in which so many records were processed."""
        works, flows, amount, before = [], [], records, "source"
        dearer = 1 + self.drag * (workers - 1)
        for each in self.operators:
            works.append(OperatorWork(each.name, amount, amount * each.cost / 1e6 * dearer * noise()))
            flows.append(RecordFlow(before, each.name, amount))
            amount, before = amount * each.selectivity, each.name
        source = SourceWork("source", records, 0.0, offered / seconds, backlog)
        return WorkInterval(seconds, workers, [source], works, flows)


@dataclass(frozen=True)
class Outlook:
    """How a simulation is run: seconds, unless it says otherwise."""

    interval: int = 10
    change: int = 4  # from the decision until new workers take part
    workers: int = 1  # at first
    maximum: int = 64
    utilisation: float = 0.8  # what the oracle aims at
    noise: float = 0.02  # standard deviation of measured times, as a share
    seed: int = 0


@dataclass
class Story:
    """What happened, by second, and what was decided."""

    offered: Curve = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    fewest: list[int] = field(default_factory=list)  # the oracle's
    backlog: Curve = field(default_factory=list)
    short: list[bool] = field(default_factory=list)  # whether more was offered than could be processed
    decisions: list[ScaleDecision] = field(default_factory=list)

    @property
    def changes(self) -> list[ScaleDecision]:
        """The decisions that changed something."""
        return [each for each in self.decisions if each.acts]

    @property
    def over(self) -> int:
        """Seconds with more workers than the oracle has."""
        return sum(here > enough for here, enough in zip(self.workers, self.fewest, strict=True))

    @property
    def under(self) -> int:
        """Seconds in which more was offered than the workers could do."""
        return sum(self.short)

    @property
    def spent(self) -> float:
        """Worker-seconds, as a multiple of the oracle's."""
        return sum(self.workers) / sum(self.fewest)

    @property
    def worst(self) -> float:
        """The greatest backlog, in seconds of what was offered then."""
        return max(
            (waiting / rate for waiting, rate in zip(self.backlog, self.offered, strict=True) if rate), default=0
        )


def simulate_scaling(curve: Curve, decide: Decide, model: ModelDataflow, outlook: Outlook) -> Story:
    """Runs a curve to its end. An interval in which workers changed is not shown to the policy, as in `driver`."""
    chance = random.Random(outlook.seed)
    story, workers, backlog = Story(), outlook.workers, 0.0
    due: tuple[int, int] | None = None  # when a change takes effect, and how many workers there are then
    disturbed = False
    records = offered = 0.0
    for second, rate in enumerate(curve):
        if due is not None and second >= due[0]:
            workers, due, disturbed = due[1], None, True
        can = model.capacity(workers)
        done = min(backlog + rate, can)
        backlog += rate - done
        records, offered = records + done, offered + rate
        story.offered.append(rate)
        story.workers.append(workers)
        story.fewest.append(model.fewest(rate, outlook.utilisation, outlook.maximum))
        story.backlog.append(backlog)
        story.short.append(rate > can)
        if (second + 1) % outlook.interval:
            continue
        if due is None and not disturbed and records:
            seconds = float(outlook.interval)
            noise = lambda: max(0.1, chance.gauss(1.0, outlook.noise))  # noqa: E731
            decision = decide(model.measured(records, offered, backlog, seconds, workers, noise))
            story.decisions.append(decision)
            if decision.acts:
                due = second + 1 + outlook.change, decision.wanted
        disturbed, records, offered = False, 0.0, 0.0
    return story


@dataclass
class Threshold:
    """The rival: one worker more when they are busier than `high`, one fewer when less than `low`. What most have."""

    high: float = 0.9
    low: float = 0.6
    _interval: int = 0

    def decide(self, seen: WorkInterval) -> ScaleDecision:
        """One step at a time."""
        self._interval += 1
        busy = sum(each.busy for each in seen.operators) / seen.seconds / seen.workers
        step = 1 if busy > self.high else -1 if busy < self.low and seen.workers > 1 else 0
        return ScaleDecision(self._interval, seen.workers, seen.workers + step, f"{busy:.0%} busy")
