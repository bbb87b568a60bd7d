"""Whoever waits is told a cause: readings of made-up runs, each slow for one reason that we have chosen."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from dataflow.run.readings import DataflowReading, EdgeReading, OperatorReading, WorkerReading
from dataflow.run.reasons import WAITS, Reason, find_reasons

DATA = "data on its way"
NAMES = ("feed", "map", "totals F", "totals S", "table")
SINK = 4


@dataclass
class World:
    """Shares of one second, by worker, from which two readings follow."""

    workers: int
    busy: list[float] = field(default_factory=list)
    main: list[float] = field(default_factory=list)
    stalled: list[float] = field(default_factory=list)
    operators: list[list[float]] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    awaiting: list[float] = field(default_factory=list)
    pressed: dict[tuple[int, str], float] = field(default_factory=dict)  # how long, of this second
    pressing: set[tuple[int, str]] = field(default_factory=set)  # at its end
    owed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    kept: dict[tuple[int, int], int] = field(default_factory=dict)
    lag: float = 0.0
    holds: dict[tuple[int, int], str] = field(default_factory=dict)
    queued: dict[tuple[int, int], int] = field(default_factory=dict)
    tells_delay: bool = True

    def __post_init__(self) -> None:
        for shares in (self.busy, self.main, self.stalled, self.waiting, self.awaiting):
            shares += [0.0] * (self.workers - len(shares))
        self.operators = self.operators or [[0.0] * len(NAMES) for _ in range(self.workers)]

    def reading(self, worker: int, at: float, history: float, jump: float = 0.0) -> WorkerReading:
        """At second `at`, after `history` seconds in which all was well; a second later with what the shares say."""
        age, part = history + at, at
        return WorkerReading(
            worker=worker, pid=100 + worker, when=1e9 + age + jump, since=1e9 + jump,
            busy=0.05 * history + part * self.busy[worker], waiting=part * self.waiting[worker],
            awaiting=part * self.awaiting[worker], cpu=0.0,
            thread=0.05 * history + part * (self.busy[worker] + self.main[worker] - self.stalled[worker]),
            run_delay=part * self.stalled[worker] if self.tells_delay else -1.0,
            longest_turn=0.1, turns=1, memory=1 << 26, limit=64 << 20,
            on_its_way=sum(size for _, size in self.owed.get(worker, [])) if part else 0,
            owed=tuple(self.owed.get(worker, [])) if part else (),
            pressing=tuple(sorted(self.pressing)) if part else (),
            pressed=tuple((who, why, part * share) for (who, why), share in self.pressed.items()),
            marks=(), marked=(), dataflows=(self._part(worker, part),),
        )  # fmt: skip

    def _part(self, worker: int, part: float) -> DataflowReading:
        operators = tuple(
            OperatorReading(
                number, name, part * self.operators[worker][number], 0, 0,
                self._edges(worker, number),
                self.holds.get((worker, number), ""), "", False, self.kept.get((worker, number), 0),
            )
            for number, name in enumerate(NAMES)
        )  # fmt: skip
        return DataflowReading(0, "counts", operators, (), "9", "7", 2.0, self.lag if part else 0.0, (), 0.0, ())

    def _edges(self, worker: int, number: int) -> tuple[EdgeReading, ...]:
        queued = self.queued.get((worker, number), 0)
        return () if number == 0 else (EdgeReading(number - 1, 0, 0, 1, 1, 0, 0, queued),)

    def reasons(self, jump: float = 0.0) -> list[Reason]:
        before = [self.reading(worker, 0.0, 50.0) for worker in range(self.workers)]
        now = [self.reading(worker, 1.0, 50.0, jump) for worker in range(self.workers)]
        return find_reasons(before, now)


def busy_world(chance: random.Random, workers: int, slow: int, where: int) -> World:
    """Worker `slow` has no time left, because of operator `where`; the others have."""
    world = World(workers, tells_delay=chance.random() < 0.8)
    for worker in range(workers):
        full = worker == slow
        world.busy[worker] = chance.uniform(0.6, 1.0) if full else chance.uniform(0.0, 0.5)
        shares = [chance.random() * (0.1 if full and number != where else 1.0) for number in range(len(NAMES))]
        shares[where] += 2.0 if full else 0.0
        total = sum(shares) / (world.busy[worker] * chance.uniform(0.7, 1.0) or 1.0)
        world.operators[worker] = [share / total if total else 0.0 for share in shares]
        if full:  # main, or the host, has the rest
            rest = max(0.0, chance.uniform(0.9, 1.0) - world.busy[worker])
            world.main[worker] = rest
            if world.tells_delay:
                world.stalled[worker] = chance.uniform(0.0, 0.15)
    return world


@pytest.mark.parametrize("seed", range(200))
def test_whatever_makes_sources_wait_is_named(seed: int) -> None:
    """Pressure comes and goes: at the moment of the look there may be none, and shares differ between workers."""
    chance = random.Random(seed)
    workers, where = chance.randrange(2, 6), chance.randrange(1, SINK)
    slow, sender = chance.sample(range(workers), 2)
    world = busy_world(chance, workers, slow, where)
    world.waiting = [chance.uniform(0.0, 0.9) for _ in range(workers)]
    world.waiting[chance.randrange(workers)] = chance.uniform(WAITS, 0.9)
    world.pressed[sender, DATA] = max(world.waiting)
    if chance.random() < 0.5:
        world.pressing.add((sender, DATA))
    if chance.random() < 0.8:
        world.owed[sender] = [(slow, 70 << 20)]
    first = world.reasons()[0]
    assert (first.level, first.kind) == ("bad", "pressure")
    assert (first.worker, first.dataflow, first.operator) == (slow, "counts", NAMES[where]), first.text
    assert f"worker {slow} takes it too slowly" in first.text
    assert f"in {NAMES[where]} (#{where}) of counts" in first.text


@pytest.mark.parametrize("seed", range(60))
def test_a_slow_sink_is_named(seed: int) -> None:
    chance = random.Random(seed)
    workers = chance.randrange(1, 5)
    slow = chance.randrange(workers)
    world = World(workers, busy=[chance.uniform(0.0, 0.6) for _ in range(workers)])
    world.waiting = [chance.uniform(WAITS, 0.9) for _ in range(workers)]
    world.pressed[slow, "sinks of counts"] = max(world.waiting)
    world.kept = {(slow, SINK): 65 << 20, (slow, 1): 3 << 20, ((slow + 1) % workers, SINK): 1 << 20}
    if workers == 1:
        world.kept[slow, SINK] = 65 << 20
    first = world.reasons()[0]
    assert (first.kind, first.worker, first.operator) == ("sink", slow, "table"), first
    assert "table (#4) of counts has 65 MiB" in first.text or "table (#4) of counts has 68" in first.text, first.text


@pytest.mark.parametrize("seed", range(200))
def test_main_that_waits_outside_of_the_engine_is_told_who_has_no_time(seed: int) -> None:
    """What is owed waits where no counter sees it: in a main that waits for a probe before it sends more."""
    chance = random.Random(seed)
    workers, where = chance.randrange(1, 6), chance.randrange(1, SINK)
    slow = chance.randrange(workers)
    world = busy_world(chance, workers, slow, where)
    world.awaiting = [chance.uniform(0.5, 1.0) for _ in range(workers)]
    first = world.reasons()[0]
    assert (first.level, first.kind, first.worker, first.operator) == ("warn", "full", slow, NAMES[where]), first.text


@pytest.mark.parametrize("seed", range(60))
def test_workers_that_wait_for_each_other_are_told_so(seed: int) -> None:
    chance = random.Random(seed)
    world = World(2, busy=[chance.uniform(0.35, 0.8), chance.uniform(0.0, 0.3)])
    world.operators[0][3] = world.busy[0] / 2
    world.awaiting = [0.9, 0.9]
    (first,) = world.reasons()
    assert (first.kind, first.worker, first.operator) == ("waiting", 0, "totals S"), first.text


def test_main_itself_may_have_no_time() -> None:
    (first,) = World(1, busy=[0.2], main=[0.75]).reasons()
    assert first.kind == "full" and first.operator == "" and "75% in main and its tasks" in first.text


def test_a_host_that_does_not_let_workers_run_is_named() -> None:
    found = World(2, busy=[0.95, 0.1], stalled=[0.6, 0.0]).reasons()
    assert [(reason.kind, reason.worker) for reason in found] == [("full", 0), ("host", 0)]
    assert "did not let worker 0 run for 60%" in found[1].text and "the host kept it waiting for 60%" in found[0].text


def test_who_holds_a_time_is_named() -> None:
    held = World(2, lag=3.0, holds={(1, 0): "7", (0, 0): "9"}).reasons()
    assert [(reason.kind, reason.worker, reason.operator) for reason in held] == [("behind", 1, "feed")]
    assert "feed (#0) holds it on worker 1: advance it, or close it" in held[0].text
    (asking,) = World(2, lag=3.0, holds={(0, 4): "7"}, kept={(0, 4): 1 << 20}).reasons()
    assert asking.operator == "table" and "in hand that is not done" in asking.text
    (queue,) = World(2, lag=3.0, queued={(1, 3): 12_000}).reasons()
    assert "12,000 messages wait at totals S (#3) on worker 1" in queue.text
    (nobody,) = World(1, lag=3.0).reasons()
    assert "time 7 is not complete. The view of frontiers" in nobody.text


@pytest.mark.parametrize("seed", range(60))
def test_all_is_well_when_nobody_waits(seed: int) -> None:
    """A main that waits for the end of a stream is no symptom, nor is a wall clock that jumps."""
    chance = random.Random(seed)
    workers = chance.randrange(1, 5)
    world = World(workers, busy=[chance.uniform(0.0, 0.28) for _ in range(workers)], awaiting=[1.0] * workers)
    (only,) = world.reasons(jump=chance.choice([-3600.0, 0.0, 86_400.0]))
    assert (only.level, only.kind) == ("calm", "well"), only.text


def test_silent_workers_come_first() -> None:
    now = [World(2, busy=[0.95, 0.0]).reading(0, 1.0, 1.0)]
    found = find_reasons([], now, {"worker 1": "it is being replaced"})
    assert found[0].text == "Worker 1 does not answer: it is being replaced."
