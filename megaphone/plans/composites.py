"""Composites: what a join makes of records. Plain tuples, so that state is plain data and travels as it is.

A component is (time, record). A composite has a slot for each stream of the query, None where it has no component yet.
"""

from __future__ import annotations

from typing import TypeAlias

from dataflow.state.values import Record

Component: TypeAlias = tuple[int, Record]
Composite: TypeAlias = tuple[Component | None, ...]


def of_record(slot: int, slots: int, time: int, record: Record) -> Composite:
    """A record as the smallest composite."""
    return tuple((time, record) if i == slot else None for i in range(slots))


def merge(one: Composite, other: Composite) -> Composite:
    """Both together; no slot is taken in both."""
    return tuple(a if a is not None else b for a, b in zip(one, other, strict=True))


def earliest(composite: Composite) -> int:
    """The time of the first of its components, by which it expires."""
    return min(part[0] for part in composite if part is not None)


def latest(composite: Composite) -> int:
    """The time of the last of its components: the time at which it comes out."""
    return max(part[0] for part in composite if part is not None)


def records(composite: Composite) -> tuple[Record, ...]:
    """The records of a whole composite, in the order of the streams."""
    return tuple(part[1] for part in composite if part is not None)
