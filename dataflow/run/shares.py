"""What a worker's time went to between two readings, as shares of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.run.readings import OperatorReading, WorkerReading


@dataclass(frozen=True, slots=True)
class Shares:
    """One worker. A turn's time has in it what the host kept the worker waiting; `main` is what it did beside turns."""

    now: WorkerReading
    used: float  # of its time: what its thread computed, or could have if the host had let it; at most 1
    stalled: float  # in which the host did not let it run
    operators: float  # in their steps
    engine: float  # in turns, besides: messages and progress
    main: float  # in main, and other tasks
    waiting: float  # in which sources waited for room; at most 1
    awaiting: float  # in which main waited for times
    pressed: dict[tuple[int, str], float]  # by who was under pressure and by what, in which they were
    busiest: tuple[float, str, OperatorReading] | None  # the operator that took most: its share, its dataflow, and it


def shares_of(was: WorkerReading | None, now: WorkerReading, seconds: float) -> Shares:
    """What became of `seconds`; `was`: the reading before, None if there is none since the worker began."""
    seconds = max(1e-3, seconds)

    def share(new: float, old: float) -> float:
        return min(1.0, max(0.0, new - old) / seconds)

    busy = share(now.busy, was.busy if was else 0.0)
    stalled = share(now.run_delay, was.run_delay if was else 0.0) if now.run_delay >= 0 else 0.0
    thread = share(now.thread, was.thread if was else 0.0)
    used = min(1.0, max(busy, thread + stalled))
    spent = _by_operator(was, now, seconds)
    operators = min(busy, sum(each for each, _, _ in spent))
    before = {(who, cause): took for who, cause, took in (was.pressed if was else ())}
    return Shares(
        now,
        used,
        stalled,
        operators,
        busy - operators,
        used - busy,
        share(now.waiting, was.waiting if was else 0.0),
        share(now.awaiting, was.awaiting if was else 0.0),
        {(who, cause): share(took, before.get((who, cause), 0.0)) for who, cause, took in now.pressed},
        max(spent, key=lambda item: item[0], default=None),
    )


def _by_operator(
    was: WorkerReading | None, now: WorkerReading, seconds: float
) -> list[tuple[float, str, OperatorReading]]:
    old = {
        (part.number, each.number): each.busy for part in (was.dataflows if was else ()) for each in part.operators
    }
    return [
        (max(0.0, each.busy - old.get((part.number, each.number), 0.0)) / seconds, part.name, each)
        for part in now.dataflows
        for each in part.operators
    ]
