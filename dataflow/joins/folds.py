"""Joins over event time as folds over the state of a bin, {key: entry} of plain data.

A record is (key, side, record), at its own time; a wake-up is (key, None, None). At one time wake-ups come last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeAlias

from dataflow.state.stores.row_store import Postponer
from dataflow.time.order import Time
from dataflow.values import Key, Record, Value

Sided: TypeAlias = tuple[Key, int | None, Record]
LEFT, RIGHT = 0, 1


class JoinFold(ABC):
    """What all share: an entry for each key that has something, and wake-ups."""

    def __call__(
        self, time: Time, records: list[Sided], state: dict[Key, Value], notificator: Postponer
    ) -> Iterable[Record]:
        """Applies what is at a time."""
        groups: dict[Key, tuple[list[Record], list[Record]]] = {}
        for key, side, record in records:
            group = groups.setdefault(key, ([], []))
            if side is not None:
                group[side].append(record)
        out: list[Record] = []
        for key, (lefts, rights) in groups.items():
            entry = state.get(key)
            if entry is None:
                entry = state[key] = self.nothing()
            out += self.apply(key, entry, lefts, rights, time, notificator)
            if self.is_nothing(entry):
                del state[key]
        return out

    @abstractmethod
    def nothing(self) -> Value:
        """What is kept for a key at first."""

    @abstractmethod
    def is_nothing(self, entry: Value) -> bool:
        """Whether a key may be forgotten."""

    @abstractmethod
    def apply(
        self, key: Key, entry: Value, lefts: list[Record], rights: list[Record], now: int, notificator: Postponer
    ) -> Iterable[Record]:
        """Takes the records of a key at a time, which may be none if it was woken."""


class IntervalFold(JoinFold):
    """Pairs in which the right record is from `before` before the left one to `after` after it. An entry has the
    records of both sides, each as [time, record, whether it has met any]."""

    def __init__(self, before: int, after: int, alone: tuple[bool, bool]) -> None:
        """`alone`: by side, whether records that meet none come out by themselves."""
        self._stays = (after, before)  # how long a record of a side may still meet others
        self._alone = alone

    def nothing(self) -> list[list[Value]]:
        return [[], []]

    def is_nothing(self, entry: Value) -> bool:
        return not entry[LEFT] and not entry[RIGHT]

    def apply(
        self, key: Key, entry: Value, lefts: list[Record], rights: list[Record], now: int, notificator: Postponer
    ) -> Iterable[Record]:
        new = ([[now, record, False] for record in lefts], [[now, record, False] for record in rights])
        yield from self._pairs(key, new[LEFT], [*entry[RIGHT], *new[RIGHT]])
        yield from self._pairs(key, entry[LEFT], new[RIGHT])
        for side in (LEFT, RIGHT):
            entry[side] += new[side]
            if new[side] and self._stays[side]:
                notificator.notify_at(now + self._stays[side], (key, None, None))
            for _, record, met in [held for held in entry[side] if held[0] + self._stays[side] <= now]:
                if not met and self._alone[side]:
                    yield (key, record, None) if side == LEFT else (key, None, record)
            entry[side] = [held for held in entry[side] if held[0] + self._stays[side] > now]

    def _pairs(self, key: Key, lefts: list[Value], rights: list[Value]) -> Iterable[Record]:
        after, before = self._stays
        for left in lefts:
            for right in rights:
                if -before <= right[0] - left[0] <= after:
                    left[2] = right[2] = True
                    yield (key, left[1], right[1])


class AsOfFold(JoinFold):
    """Each left record with the last right one at or before its time. An entry is that one: [time, record], or []."""

    def __init__(self, tolerance: int | None, alone: bool) -> None:
        self._tolerance = tolerance
        self._alone = alone

    def nothing(self) -> list[Value]:
        return []

    def is_nothing(self, entry: Value) -> bool:
        return not entry

    def apply(
        self, key: Key, entry: Value, lefts: list[Record], rights: list[Record], now: int, notificator: Postponer
    ) -> Iterable[Record]:
        if rights:
            entry[:] = [now, max(rights, key=repr)]  # of one time, the order is not defined: one that never changes
            if self._tolerance is not None:
                notificator.notify_at(now + self._tolerance + 1, (key, None, None))
        if self._tolerance is not None and entry and entry[0] + self._tolerance < now:
            entry.clear()
        for left in lefts:
            if entry:
                yield (key, left, entry[1])
            elif self._alone:
                yield (key, left, None)


class TableFold(AsOfFold):
    """The same, where the right side is a table: (key, None) takes a row out."""

    def __init__(self, alone: bool) -> None:
        super().__init__(None, alone)

    def apply(
        self, key: Key, entry: Value, lefts: list[Record], rights: list[Record], now: int, notificator: Postponer
    ) -> Iterable[Record]:
        kept = [row for row in rights if row is not None]
        if rights and not kept:
            entry.clear()
        return super().apply(key, entry, lefts, kept, now, notificator)


class DuplicateFold(JoinFold):
    """The first record of a key, and again when `within` has passed since it. An entry is [time]."""

    def __init__(self, within: int) -> None:
        self._within = within

    def nothing(self) -> list[int]:
        return []

    def is_nothing(self, entry: Value) -> bool:
        return not entry

    def apply(
        self, key: Key, entry: Value, lefts: list[Record], rights: list[Record], now: int, notificator: Postponer
    ) -> Iterable[Record]:
        if entry and entry[0] + self._within <= now:
            entry.clear()
        if lefts and not entry:
            entry.append(now)
            notificator.notify_at(now + self._within, (key, None, None))
            yield min(lefts, key=repr)
