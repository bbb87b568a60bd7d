"""About how many bytes Python objects have when they travel, without encoding them.

What is in a container is known from a few of its elements, and bins from a few of their entries: it costs the same for
large ones. An average over similar things is close; one long value among many short ones may be missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from dataflow.columns import Columns
from dataflow.comm.values.objects import attributes_of, is_record
from dataflow.state.arrays import Ints
from dataflow.state.values import Record, State, Value
from dataflow.time.order import Time

_ELEMENTS = 4  # of a container that are looked at
_DEEPEST = 4  # containers within containers that are
_OTHER = 32  # anything else
_HEAD = 16  # of a bin
_AT_ONCE = 64  # bins whose entries are looked at in one go: more take their turns


def weigh(value: Value, depth: int = 0) -> float:
    """About how many bytes a value has when it is encoded.

    >>> weigh(5), weigh("four"), weigh([1, 2, 3]), weigh({"key": 1 << 40})
    (1, 9, 8.0, 22.0)
    """
    kind = type(value)
    if kind is int:
        return 1 if -32 <= value < 128 else 1 + (1 << ((value.bit_length() + 7) // 8 - 1).bit_length())
    if kind is str or kind is bytes:
        return 5 + len(value)
    if value is None or kind is bool:
        return 1
    if kind is float:
        return 9
    if isinstance(value, np.ndarray | Columns):
        return 32 + value.nbytes
    if depth < _DEEPEST:
        if kind is dict:
            return 5 + _all(value.items(), len(value), depth) - 6 * len(value)  # no tuples, which have a head
        if isinstance(value, list | tuple | set | frozenset):
            return (5 if kind is list else 6) + _all(value, len(value), depth)
        if is_record(kind):
            return 12 + len(kind.__module__) + len(kind.__qualname__) + weigh(_attributes(value), depth)
    return _OTHER


def _all(values: Iterable[Value], count: int, depth: int) -> float:
    """The weight of `count` values, by the first few."""
    some = [weigh(value, depth + 1) for value in islice(values, _ELEMENTS)]
    return count * sum(some) / len(some) if some else 0


class Scales:
    """What an entry of each bin weighs, as far as anybody has looked. A look at a bin costs a few microseconds."""

    def __init__(self) -> None:
        self._entries: dict[int, float] = {}  # by bin, the average weight of its entries
        self._turn: Iterator[int] = iter(())

    def sizes(self, states: dict[int, State], pending: dict[int, dict[Time, list[Record]]], bins: int) -> Ints:
        """About how many bytes each bin has. A bin that is here has some: what has none is elsewhere."""
        self._look(states, pending)
        known = self._entries
        average = sum(known.values()) / len(known) if known else _OTHER
        sizes = np.zeros(bins, np.float64)
        for number, state in states.items():
            sizes[number] = _HEAD + _count(state) * known.get(number, average)
        for number, times in pending.items():
            sizes[number] = max(sizes[number], _HEAD) + sum(map(len, times.values())) * known.get(number, average)
        return sizes.astype(np.int64)

    def _look(self, states: dict[int, State], pending: dict[int, dict[Time, list[Record]]]) -> None:
        """Looks into some bins, others than last time."""
        seen = list(islice(self._turn, _AT_ONCE))
        if len(seen) < _AT_ONCE:  # all have been: begin again
            self._entries = {number: weight for number, weight in self._entries.items() if number in states}
            self._turn = iter([*states.keys() | pending.keys()])
            seen += islice(self._turn, _AT_ONCE - len(seen))
        for number in seen:
            weight = _entry(states.get(number), pending.get(number, {}))
            if weight is not None:
                self._entries[number] = weight


def _count(state: State) -> int:
    """How many entries a state has: it is one, unless it is a dictionary."""
    return len(state) if type(state) is dict else 1


def _entry(state: State, pending: dict[Time, list[Record]]) -> float | None:
    """What an entry of a bin weighs."""
    some: list[Value] = []
    if type(state) is dict:
        some += ([key, value] for key, value in islice(state.items(), _ELEMENTS))
    elif state is not None:
        some.append(state)
    some += (record for records in islice(pending.values(), _ELEMENTS) for record in records[:1])
    return sum(map(weigh, some)) / len(some) if some else None


def _attributes(value: Value) -> list[Value]:
    return [held for attributes in attributes_of(value) for held in attributes.values()]
