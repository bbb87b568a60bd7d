"""Windows, joins in time and asynchronous calls as operators of the engine, native and migratable."""

from __future__ import annotations

from typing import Any

import trio

import megaphone
from dataflow import joins, windows
from tests.crashes.timed_meaning import FAR, HOWS, NOBODY, answer, told
from tests.fuzz.description import Record
from tests.fuzz.functions import paired


def build(kind: str, streams: list[Any], numbers: tuple[int, ...], name: str, control: Any, bins: int) -> Any:
    """(the operator, its results as records)."""
    if kind == "asked":
        asked = streams[0].map_async(_ask, concurrency=3, ordered=bool(numbers[0]), name=name)
        return asked, asked
    place: Any = {"name": name} if control is None else {"name": name, "bins": bins}
    inputs = streams if control is None else [control, *streams]
    if kind == "in_window":
        room: Any = windows if control is None else megaphone
        made = room.window(*inputs, _kind(*numbers), key=_key, **AGGREGATES, **place)
        return made, made.map(_window)
    room = joins if control is None else megaphone
    if kind == "near":
        before, after, how = numbers
        made = room.interval_join(*inputs, key=_key, before=before, after=after, how=HOWS[how], **place)
    elif kind == "as_of":
        tolerance = None if numbers[0] == FAR else numbers[0]
        made = room.as_of_join(*inputs, key=_key, tolerance=tolerance, how=HOWS[numbers[1]], **place)
    elif kind == "looked_up":
        table = inputs.pop().map(lambda r: (r[0], r[1] if r[1] % 3 else None))
        made = room.table_join(*inputs, table, key=_key, how=HOWS[numbers[0]], **place)
        return made, made.map(lambda row: (row[0], paired(row[1][1], NOBODY if row[2] is None else row[2])))
    else:
        made = room.deduplicate(*inputs, key=_key, within=numbers[0] + 1, **place)
        return made, made
    return made, made.map(_pair)


AGGREGATES: dict[str, Any] = {
    "n": "count",
    "total": ("sum", lambda r: r[1]),
    "least": ("min", lambda r: r[1]),
    "first": ("first", lambda r: r[1]),
    "last": ("last", lambda r: r[1]),
}


def _key(record: Record) -> int:
    return record[0]


async def _ask(record: Record) -> Record:
    await trio.sleep(0.01 * (record[1] % 3))
    return answer(record)


def _kind(kind: int, size: int) -> Any:
    size += 1
    return (windows.tumbling(size), windows.sliding(2 * size, every=size), windows.session(size), windows.count(size))[
        kind
    ]


def _window(row: dict[str, Any]) -> Record:
    values = (row[name] for name in AGGREGATES)
    return row["key"], told(*values, row["window_end"])


def _pair(row: tuple[int, Record | None, Record | None]) -> Record:
    key, left, right = row
    return key, paired(NOBODY if left is None else left[1], NOBODY if right is None else right[1])
