"""What a small program means, in plain Python: from (time, record) to (time, record), stage after stage. Records are
(key, value). Shares nothing with the engine."""

from __future__ import annotations

from collections import Counter, defaultdict

Stamped = tuple[int, tuple[int, int]]


def meaning(stages: tuple[str, ...], sent: list[Stamped]) -> Counter[Stamped]:
    """What comes out of a program."""
    now = list(sent)
    for stage in stages:
        now = _STAGES[stage](now)
    return Counter(now)


def _add(records: list[Stamped]) -> list[Stamped]:
    return [(time, (key, value + 1)) for time, (key, value) in records]


def _count(records: list[Stamped]) -> list[Stamped]:
    counts = Counter((time, key) for time, (key, _) in records)
    return [(time, (key, count)) for (time, key), count in counts.items()]


def _same(records: list[Stamped]) -> list[Stamped]:
    return records


def _delay(records: list[Stamped]) -> list[Stamped]:
    return [(time + key % 3, (key, value)) for time, (key, value) in records]


def _halve(records: list[Stamped]) -> list[Stamped]:
    return [(time, (key, min(value, 1))) for time, (key, value) in records]


def _round(records: list[Stamped]) -> list[Stamped]:
    """Each record once more at the next time, if its value is odd; then it is even."""
    return records + [(time + 1, (key, value + 1)) for time, (key, value) in records if value % 2]


def _running(records: list[Stamped]) -> list[Stamped]:
    """By key, which record this is."""
    seen: Counter[int] = Counter()
    out = []
    for time, (key, _) in sorted(records):
        seen[key] += 1
        out.append((time, (key, seen[key])))
    return out


def _postponed(records: list[Stamped]) -> list[Stamped]:
    """By key, a sum as of each time with something new; some records count again later, as 1."""
    todo: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
    for time, (key, value) in records:
        todo[time].append((key, value, True))
    state: Counter[int] = Counter()
    out = []
    while todo:
        time = min(todo)
        batch = todo.pop(time)
        for key, value, fresh in batch:
            state[key] += value
            if fresh and value % 3 == 0:
                todo[time + 1 + value % 4].append((key, 1, False))
        out += [(time, (key, state[key])) for key in {key for key, _, _ in batch}]
    return out


_STAGES = {
    "add": _add,
    "count": _count,
    "exchange": _same,
    "gather": _same,
    "delay": _delay,
    "halve": _halve,
    "round": _round,
    "running": _running,
    "postponed": _postponed,
}
NAMES = tuple(_STAGES)
STATEFUL = ("running", "postponed")
