"""Composites: what a join makes of records. Plain tuples, so that state is plain data, and small.

A component is (time, record). A composite has its parts, a slot for each stream of the query and None where it has no
component yet; and the times of its first and of its last component, which every join asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TypeAlias

from dataflow.state.values import Record

Component: TypeAlias = tuple[int, Record]
Parts: TypeAlias = tuple[Component | None, ...]
Composite: TypeAlias = tuple[Parts, int, int]
"""Parts, first time, last time."""
Pick: TypeAlias = Callable[[Parts], Parts]
"""Of the parts of two composites, one after the other, those of both together."""


def of_component(slot: int, slots: int, component: Component) -> Composite:
    """A component as the smallest composite."""
    time = component[0]
    return (*(None,) * slot, component, *(None,) * (slots - slot - 1)), time, time


def picking(slots: int, left: Iterable[int]) -> Pick:
    """How parts of two composites come together, of which the first has these slots.

    >>> picking(3, [0, 2])(("a", None, "c", None, "b", None))
    ('a', 'b', 'c')
    """
    of_left = set(left)
    return itemgetter(*(slot if slot in of_left else slots + slot for slot in range(slots)))


def earliest(composite: Composite) -> int:
    """The time of the first of its components, by which it expires."""
    return composite[1]


def latest(composite: Composite) -> int:
    """The time of the last of its components, at which it comes out: so results are in max order."""
    return composite[2]


def records(composite: Composite) -> tuple[Record, ...]:
    """The records of a whole composite, in the order of the streams."""
    return tuple([part[1] for part in composite[0] if part is not None])
