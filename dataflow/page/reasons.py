"""Why a run is slow, or waits: the few things that explain it most often, in words. Pure.

Each reason is a level ("calm", "warn" or "bad") and a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataflow.run.readings import OperatorReading, WorkerReading
from dataflow.text import size_text

Pairs = Sequence[tuple[WorkerReading | None, WorkerReading, float]]
"""By worker: as it was before, as it is, and the seconds between."""

_FULL = 0.85  # of a worker's time in turns: it can hardly do more
_WAITS = 0.10  # of the time, in which sources waited for room
_STALLED = 0.20  # of the time, in which the host did not let it run
_BEHIND = 2.0  # seconds
_WELL = "Nothing waits: all that comes is processed as it comes."


def find_reasons(pairs: Pairs) -> list[list[str]]:
    """What there is to say, the gravest first; that all is well if there is nothing."""
    found = [*_pressure(pairs), *_full(pairs), *_stalls(pairs), *_behind(pairs), *_moving(pairs)]
    found.sort(key=lambda reason: ["bad", "warn", "calm"].index(reason[0]))
    return [[level, text] for level, text in found] or [["calm", _WELL]]


def _pressure(pairs: Pairs) -> Iterator[tuple[str, str]]:
    for was, now, seconds in pairs:
        waited = (now.waiting - (was.waiting if was else 0.0)) / seconds
        if now.pressing:
            who, why = now.pressing[0]
            more = f" ({size_text(now.on_its_way)} of {size_text(now.limit)})" if why == "data on its way" else ""
            yield "bad", (
                f"Sources of worker {now.worker} wait, because worker {who} is under pressure by {why}{more}: "
                f"more comes than can be processed, and memory stays bounded."
            )
        elif waited > _WAITS:
            yield "warn", f"Sources of worker {now.worker} waited for room in {min(1.0, waited):.0%} of the time."


def _full(pairs: Pairs) -> Iterator[tuple[str, str]]:
    for was, now, seconds in pairs:
        busy = (now.busy - (was.busy if was else 0.0)) / seconds
        if busy < _FULL:
            continue
        busiest = busiest_operator(was, now)
        about = ""
        if busiest is not None:
            share, name, operator = busiest
            about = f"; {share / seconds:.0%} of the time in {operator.name} (#{operator.number}) of {name}"
        yield "warn", f"Worker {now.worker} is busy for {min(1.0, busy):.0%} of the time{about}."


def busiest_operator(was: WorkerReading | None, now: WorkerReading) -> tuple[float, str, OperatorReading] | None:
    """The operator in which a worker spent most time since `was`: seconds, its dataflow, and it."""
    old = {
        (part.name, each.number): each.busy for part in (was.dataflows if was else ()) for each in part.operators
    }
    found = [
        (each.busy - old.get((part.name, each.number), 0.0), part.name, each)
        for part in now.dataflows
        for each in part.operators
    ]
    return max(found, key=lambda item: item[0], default=None)


def _stalls(pairs: Pairs) -> Iterator[tuple[str, str]]:
    shares = [
        (min(1.0, (now.run_delay - (was.run_delay if was else 0.0)) / seconds), now.worker)
        for was, now, seconds in pairs
        if now.run_delay >= 0
    ]
    stalled = [(share, worker) for share, worker in shares if share > _STALLED]
    if stalled:
        most, worker = max(stalled)
        others = f" (and {len(stalled) - 1} more, for less)" if len(stalled) > 1 else ""
        yield "warn", (
            f"The host did not let worker {worker}{others} run for {most:.0%} of the time: other processes have the "
            "processors."
        )


def _behind(pairs: Pairs) -> Iterator[tuple[str, str]]:
    parts = [part for _, now, _ in pairs for part in now.dataflows]
    for name in dict.fromkeys(part.name for part in parts):
        slowest = max((part for part in parts if part.name == name), key=lambda part: part.lag_seconds)
        if slowest.lag_seconds > _BEHIND:
            yield "warn", (
                f"{name} is {slowest.lag_seconds:.1f} s behind: time {slowest.output_time or 'of the end'} is not "
                "complete. The view of frontiers shows who holds it."
            )


def _moving(pairs: Pairs) -> Iterator[tuple[str, str]]:
    seen = set()
    for _, now, _ in pairs:
        for part in now.dataflows:
            for state in part.state:
                if state.moving and state.name not in seen:
                    seen.add(state.name)
                    yield "calm", f"A migration of {state.name} is under way: {state.movement}."
