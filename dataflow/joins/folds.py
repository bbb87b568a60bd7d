"""Joins over event time as folds over the state of a bin, {key: entry} of plain data.

A record is (key, side, record), at its own time; or, of columns, a group of them, (key, side, times, records), none of
them before the time at which they come. A wake-up is (key, None, None). At one time wake-ups come last.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dataflow.state.stores.row_store import Postponer
from dataflow.time.order import Time
from dataflow.values import Key, Record, Value

Sided: TypeAlias = tuple[Value, ...]
Timed: TypeAlias = list[tuple[int, Record]]  # records with their times
Held: TypeAlias = list[Value]  # [time, record, whether it has met any]
LEFT, RIGHT = 0, 1
_first = operator.itemgetter(0)


class JoinFold(ABC):
    """What all share: an entry for each key that has something, and wake-ups."""

    def __call__(
        self, time: Time, records: list[Sided], state: dict[Key, Value], notificator: Postponer
    ) -> Iterable[Record]:
        """Applies what is at a time."""
        groups: dict[Key, tuple[Timed, Timed]] = {}
        for key, side, *rest in records:
            group = groups.setdefault(key, ([], []))
            if side is None:
                continue
            if len(rest) == 1:
                group[side].append((time, rest[0]))
            else:
                group[side].extend(zip(*rest, strict=True))
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
        self, key: Key, entry: Value, lefts: Timed, rights: Timed, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        """Takes the records of a key that come at a time, which may be none if it was woken."""


class PairFold(JoinFold):
    """A join: an entry is [what is kept of the left, of the right, the times of wake-ups]. `alone`: by side, whether
    records that meet none come out by themselves. `columns`: what comes out says its time, and a key that is missing
    equals nothing, not even another."""

    def __init__(self, alone: tuple[bool, bool], columns: bool) -> None:
        self._alone = alone
        self._columns = columns

    def nothing(self) -> list[list[Value]]:
        return [[], [], []]

    def is_nothing(self, entry: Value) -> bool:
        return not entry[LEFT] and not entry[RIGHT]

    def out(self, at: int, key: Key, left: Record, right: Record) -> Record:
        """A pair, or a record that is alone."""
        return (at, left, right) if self._columns else (key, left, right)

    def meets(self, key: Key) -> bool:
        """Whether records of this key equal others."""
        return not self._columns or not (key is None or (isinstance(key, tuple) and None in key))

    def wake(self, key: Key, entry: Value, needs: Sequence[int], now: int, notificator: Postponer) -> None:
        """Has the key woken at the first of some times, unless it is woken before."""
        entry[2] = [wake for wake in entry[2] if wake > now]
        if needs and not any(wake <= min(needs) for wake in entry[2]):
            entry[2].append(min(needs))
            notificator.notify_at(min(needs), (key, None, None))


def _rounded(time: int, length: int) -> int:
    """The next multiple of an eighth of a length: when nobody sees exactly when something is forgotten, many keys are
    woken at one time."""
    grain = max(length // 8, 1)
    return -(-time // grain) * grain


class IntervalFold(PairFold):
    """Pairs in which the right record is from `before` before the left one to `after` after it. An entry has what is
    held of both sides, in the order of time."""

    def __init__(self, before: int, after: int, alone: tuple[bool, bool], columns: bool = False) -> None:
        super().__init__(alone, columns)
        self._stays = (after, before)  # how long a record of a side may still meet others

    def apply(
        self, key: Key, entry: Value, lefts: Timed, rights: Timed, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        new = [[[time, record, False] for time, record in given] for given in (lefts, rights)]
        for side in (LEFT, RIGHT):
            if self.meets(key):  # the new ones of the left with what was there, then those of the right with all
                yield from self._pairs(key, new[side], entry[1 - side], side)
            entry[side] += new[side]
            entry[side].sort(key=_first)
        needs: list[int] = []
        for side, stays in enumerate(self._stays):
            held = entry[side]
            over = bisect_right(held, now - stays, key=_first)
            if self._alone[side]:
                for time, record, met in held[:over]:
                    if not met:
                        pair = (record, None) if side == LEFT else (None, record)
                        yield self.out(time + stays, key, *pair)
            del held[:over]
            if held:
                due = held[0][0] + stays
                needs.append(due if self._alone[side] else _rounded(due, stays))
        self.wake(key, entry, needs, now, notificator)

    def _pairs(self, key: Key, new: list[Held], others: list[Held], side: int) -> Iterable[Record]:
        """Each new one of a side with those of the other side that are near it."""
        until, since = self._stays if side == LEFT else self._stays[::-1]
        for one in new:
            for place in range(bisect_left(others, one[0] - since, key=_first), len(others)):
                other = others[place]
                if other[0] > one[0] + until:
                    break
                one[2] = other[2] = True
                left, right = (one, other) if side == LEFT else (other, one)
                yield self.out(max(one[0], other[0]), key, left[1], right[1])


class AsOfFold(PairFold):
    """Each left record with the last right one at or before its time. An entry has the left records whose time is not
    complete, and of the right the one that counts, with later ones. A right record None is none (a table's row is taken
    out); of several at one time the order is not defined: it is one that never changes."""

    def __init__(self, tolerance: int | None, alone: tuple[bool, bool], columns: bool = False) -> None:
        super().__init__(alone, columns)
        self._tolerance = tolerance  # invariant: not None if right records come out alone

    def apply(
        self, key: Key, entry: Value, lefts: Timed, rights: Timed, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        waiting, kept, _ = entry
        if rights:
            kept += [[time, record, False] for time, record in rights]
            kept.sort(key=lambda held: (held[0], held[1] is not None, repr(held[1])))
        if lefts:
            waiting += map(list, lefts)
            waiting.sort(key=_first)
        due = bisect_right(waiting, now, key=_first)
        for time, left in waiting[:due]:
            right = self._last(kept, time) if self.meets(key) else None
            if right is not None:
                right[2] = True
                yield self.out(time, key, left, right[1])
            elif self._alone[LEFT]:
                yield self.out(time, key, left, None)
        del waiting[:due]
        yield from self._forget(key, kept, now)
        self.wake(key, entry, self._needs(waiting, kept, now), now, notificator)

    def _last(self, kept: list[Held], time: int) -> Held | None:
        place = bisect_right(kept, time, key=_first) - 1
        if place < 0 or kept[place][1] is None:
            return None
        near = self._tolerance is None or kept[place][0] >= time - self._tolerance
        return kept[place] if near else None

    def _forget(self, key: Key, kept: list[Held], now: int) -> Iterable[Record]:
        """Forgets the right records that no left one after now can have."""
        over = 0
        if self._tolerance is not None:
            over = bisect_right(kept, now - self._tolerance, key=_first)
        if self._alone[RIGHT]:
            assert self._tolerance is not None
            for time, record, met in kept[:over]:
                if not met:
                    yield self.out(time + self._tolerance, key, None, record)
        else:
            over = max(over, bisect_right(kept, now, key=_first) - 1)
        del kept[:over]
        if kept and kept[0][0] <= now and kept[0][1] is None:
            del kept[0]

    def _needs(self, waiting: list[Value], kept: list[Held], now: int) -> list[int]:
        needs = [waiting[0][0]] if waiting else []
        if kept and self._tolerance is not None:
            due = kept[0][0] + self._tolerance
            needs.append(due if self._alone[RIGHT] else _rounded(due, self._tolerance))
        elif kept and kept[-1][0] > now:  # until then there may be several
            needs.append(kept[-1][0])
        return needs


class DuplicateFold(JoinFold):
    """The first record of a key, and again when `within` has passed since it. An entry is [time]."""

    def __init__(self, within: int) -> None:
        self._within = within

    def nothing(self) -> list[int]:
        return []

    def is_nothing(self, entry: Value) -> bool:
        return not entry

    def apply(
        self, key: Key, entry: Value, lefts: Timed, rights: Timed, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        if entry and entry[0] + self._within <= now:
            entry.clear()
        if lefts and not entry:
            entry.append(now)
            notificator.notify_at(now + self._within, (key, None, None))
            yield min((record for _, record in lefts), key=repr)
