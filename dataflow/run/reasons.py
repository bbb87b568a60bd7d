"""Why a run is slow, or waits: from two readings of its workers to what explains it, in words. Pure.

A *symptom* is somebody who waits: sources that wait for room, a time that is not complete, a main that waits for one. A
*cause* is who they wait for, and why that one takes its time: a worker without time, and in which operator; a host that
does not let it run; a sink; an input that is not advanced. Whoever has a symptom is told a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dataflow.run.readings import DataflowReading, OperatorReading, WorkerReading, seconds_between
from dataflow.run.shares import Shares, shares_of
from dataflow.text import size_text

FULL = 0.85  # of a worker's time: it can hardly do more
WAITS = 0.10  # of the time, in which sources waited for room
_STALLED = 0.20  # of the time, in which the host did not let it run
_BEHIND = 2.0  # seconds
_AWAITS = 0.50  # of the time, in which main waited for times
_SOME = 0.30  # of a worker's time: who uses less is no reason for anything
_LONG = 5.0  # seconds that a snapshot may take
_LEVELS = ("bad", "warn", "calm")
_WELL = "Nothing waits: all that comes is processed as it comes."


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that explains why a run is slow."""

    level: str  # "bad", "warn" or "calm"
    kind: str  # "silent", "pressure", "sink", "full", "host", "behind", "waiting", "snapshot", "migration" or "well"
    text: str
    worker: int = -1  # who is the cause, if it is one worker
    dataflow: str = ""
    operator: str = ""  # where the time goes, or who holds what others wait for


def find_reasons(
    before: Sequence[WorkerReading], now: Sequence[WorkerReading], silent: Mapping[str, str] | None = None
) -> list[Reason]:
    """What there is to say, the gravest first; that all is well if there is nothing. `silent`: by worker that does not
    answer, why."""
    old = {(worker.worker, worker.pid): worker for worker in before}
    pairs = [(old.get((worker.worker, worker.pid)), worker) for worker in now]
    shares = [shares_of(was, worker, seconds_between(was, worker)) for was, worker in pairs]
    found = [
        Reason("bad", "silent", f"{who[:1].upper()}{who[1:]} does not answer: {why}.")
        for who, why in (silent or {}).items()
    ]
    found += _pressure(shares)
    found += _full(shares)
    found += _stalls(shares)
    found += _behind(shares)
    if not any(reason.level in ("bad", "warn") for reason in found):
        found += _awaiting(shares)
    found += _under_way(shares)
    found.sort(key=lambda reason: _LEVELS.index(reason.level))
    return found or [Reason("calm", "well", _WELL)]


# Sources wait


def _pressure(shares: Sequence[Shares]) -> Iterator[Reason]:
    pressed: dict[tuple[int, str], float] = {}  # by who is under pressure and by what, its share of the time
    for each in shares:
        for key, share in each.pressed.items():
            pressed[key] = max(pressed.get(key, 0.0), share)
        for key in each.now.pressing:
            pressed[key] = max(pressed.get(key, 0.0), WAITS)
    worst = sorted((item for item in pressed.items() if item[1] > 0), key=lambda item: -item[1])
    waits = any(each.waiting >= WAITS for each in shares)  # several sources may have waited, each for less
    for at, ((who, cause), share) in enumerate(worst):
        if share >= WAITS or (waits and at == 0):
            yield _on_its_way(who, shares) if cause == "data on its way" else _unwritten(who, cause, shares)


def _who_waits(shares: Sequence[Shares]) -> str:
    waiting = [f"{each.now.worker} ({each.waiting:.0%} of the time)" for each in shares if each.waiting >= WAITS]
    return f"Sources of worker {_few(waiting)} wait" if waiting else "Sources may wait"


def _on_its_way(who: int, shares: Sequence[Shares]) -> Reason:
    sender = next((each for each in shares if each.now.worker == who), None)
    start = f"{_who_waits(shares)}, because worker {who} has sent more than is taken"
    end = "More comes than can be processed, and memory stays bounded."
    if sender is None or not sender.now.owed:  # it does not answer, or all was taken while we asked
        taker = max((each for each in shares if each.now.worker != who), key=lambda each: each.used, default=None)
        size = ""
    else:
        owes, bytes = sender.now.owed[0]
        taker = next((each for each in shares if each.now.worker == owes), None)
        size = f" ({size_text(sender.now.on_its_way)} of {size_text(sender.now.limit)} on its way)"
        if taker is None:
            text = f"{start}{size}: worker {owes} has not taken {size_text(bytes)} of it, and does not answer. {end}"
            return Reason("bad", "pressure", text, owes)
    if taker is None:
        return Reason("bad", "pressure", f"{start}{size}. {end}", who)
    operator, told = _where_time_goes(taker)
    text = f"{start}{size}: worker {taker.now.worker} takes it too slowly; {told}. {end}"
    return Reason("bad", "pressure", text, taker.now.worker, *operator)


def _unwritten(who: int, cause: str, shares: Sequence[Shares]) -> Reason:
    keeper = next((each for each in shares if each.now.worker == who), None)
    kept = [
        (each.kept, part.name, each.name, each.number)
        for part in (keeper.now.dataflows if keeper else ())
        if f"sinks of {part.name}" == cause
        for each in part.operators
        if each.kept > 0
    ]
    if not kept:
        text = f"{_who_waits(shares)}, because {cause} on worker {who} have too much to write."
        return Reason("bad", "sink", text, who)
    size, name, operator, number = max(kept)
    text = (
        f"{_who_waits(shares)}, because {operator} (#{number}) of {name} has {size_text(size)} on worker {who} that is "
        "not written or answered yet: what is behind it is slower than what comes. Memory stays bounded."
    )
    return Reason("bad", "sink", text, who, name, operator)


# Somebody has no time left


def _full(shares: Sequence[Shares]) -> Iterator[Reason]:
    full = [each for each in shares if each.used >= FULL]
    for each in full:
        operator, told = _where_time_goes(each)
        idle = [other.now.worker for other in shares if other.used < 0.5 * each.used]
        spare = f" Worker {_few([*map(str, idle)])} has time: bins could move there." if idle and operator[1] else ""
        text = f"Worker {each.now.worker} has no time left: {told}.{spare}"
        yield Reason("warn", "full", text, each.now.worker, *operator)


def _where_time_goes(each: Shares) -> tuple[tuple[str, str], str]:
    """In which operator of which dataflow a worker spends most of its time, if in any, and all of it in words."""
    parts = []
    operator = ("", "")
    if each.busiest is not None:
        share, name, busiest = each.busiest
        parts.append((share, f"{share:.0%} in {busiest.name} (#{busiest.number}) of {name}"))
        if share >= max(each.main, 0.0):
            operator = (name, busiest.name)
        parts.append((each.operators - share, f"{each.operators - share:.0%} in other operators"))
    parts += [
        (each.engine, f"{each.engine:.0%} for messages and progress"),
        (each.main, f"{each.main:.0%} in main and its tasks"),
    ]
    parts.sort(key=lambda part: -part[0])
    told = ", ".join(text for share, text in parts if share >= 0.05)
    stalled = f"; the host kept it waiting for {each.stalled:.0%}" if each.stalled >= 0.05 else ""
    return operator, f"it uses {each.used:.0%} of its time{f' ({told})' if told else ''}{stalled}"


def _stalls(shares: Sequence[Shares]) -> Iterator[Reason]:
    stalled = [(each.stalled, each.now.worker) for each in shares if each.stalled > _STALLED]
    if stalled:
        most, worker = max(stalled)
        others = f" (and {len(stalled) - 1} more, for less)" if len(stalled) > 1 else ""
        text = (
            f"The host did not let worker {worker}{others} run for {most:.0%} of the time: other processes have the "
            "processors."
        )
        yield Reason("warn", "host", text, worker)


# A time is not complete


def _behind(shares: Sequence[Shares]) -> Iterator[Reason]:
    parts = [(each.now.worker, part) for each in shares for part in each.now.dataflows]
    for name in dict.fromkeys(part.name for _, part in parts):
        mine = [(worker, part) for worker, part in parts if part.name == name]
        _, slowest = max(mine, key=lambda item: item[1].lag_seconds)
        if slowest.lag_seconds <= _BEHIND:
            continue
        time = slowest.output_time or "of the end"
        start = f"{name} is {slowest.lag_seconds:.1f} s behind: time {time} is not complete"
        holder = _holder(slowest.output_time, mine)
        if holder is None:
            yield Reason("warn", "behind", f"{start}. The view of frontiers shows who holds it.", dataflow=name)
            continue
        worker, operator, what = holder
        yield Reason("warn", "behind", f"{start}; {what}.", worker, name, operator.name)


def _holder(time: str, parts: Sequence[tuple[int, DataflowReading]]) -> tuple[int, OperatorReading, str] | None:
    """Who keeps a time open: who has something to do, before who has it in hand, before an input that is there."""
    every = [(worker, each) for worker, part in parts for each in part.operators]
    held = [(worker, each) for worker, each in every if time and each.holds == time]
    keeping = [(worker, each) for worker, each in held if each.kept > 0]
    if keeping:
        worker, each = max(keeping, key=lambda item: item[1].kept)
        told = f"{each.name} (#{each.number}) on worker {worker} has {size_text(each.kept)} in hand that is not done"
        return worker, each, told
    queued = [(sum(edge.queued for edge in each.edges), worker, each) for worker, each in every]
    most = max(queued, key=lambda item: item[0], default=None)
    if most is not None and most[0]:
        number, worker, each = most
        told = f"{number:,} messages wait at {each.name} (#{each.number}) on worker {worker}"
        return worker, each, told
    if held:
        worker, each = min(held, key=lambda item: bool(item[1].edges))
        advice = ": advance it, or close it" if not each.edges else ""
        return worker, each, f"{each.name} (#{each.number}) holds it on worker {worker}{advice}"
    return None


# Nobody is busy all the time, and main waits


def _awaiting(shares: Sequence[Shares]) -> Iterator[Reason]:
    waiting = [each for each in shares if each.awaiting >= _AWAITS]
    busiest = max(shares, key=lambda each: each.used, default=None)
    if not waiting or busiest is None or busiest.used < _SOME:
        return
    operator, told = _where_time_goes(busiest)
    text = (
        f"main of worker {_few([str(each.now.worker) for each in waiting])} waits for times to be complete, for "
        f"{max(each.awaiting for each in waiting):.0%} of the time, though no worker is busy all the time: they wait "
        f"for each other. Worker {busiest.now.worker} has most to do; {told}. If more comes than is done, have more or "
        "larger epochs under way."
    )
    yield Reason("warn", "waiting", text, busiest.now.worker, *operator)


# What is under way


def _under_way(shares: Sequence[Shares]) -> Iterator[Reason]:
    seen = set()
    for each in shares:
        for part in each.now.dataflows:
            for state in part.state:
                if state.moving and state.name not in seen:
                    seen.add(state.name)
                    text = f"A migration of {state.name} is under way: {state.movement}."
                    yield Reason("calm", "migration", text, dataflow=part.name, operator=state.name)
    taking = [
        (each.now.when - when, each.now.worker)
        for each in shares
        for when, kind, _, until in each.now.marks
        if kind == "snapshot" and not until and each.now.when - when > _LONG
    ]
    if taking:
        longest, worker = max(taking)
        text = f"A snapshot has been under way for {longest:.0f} s on worker {worker}: look at the disk below it."
        yield Reason("warn", "snapshot", text, worker)


def _few(names: Sequence[str]) -> str:
    """At most four of them."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
