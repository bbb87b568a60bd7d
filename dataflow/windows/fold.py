"""Windows as a fold over the state of a bin: {key: entry}, where an entry is plain data.

A record is (key, time, values); or, of columns, a group of them, (key, first time, [last time, states]): see
`partials`. The fold post-dates wake-ups, (key, time, None), to the ends of windows: a window comes
out at the time of its end, when that is complete, and is forgotten then. So state is what the open windows need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dataflow.columns.batch import Columns
from dataflow.columns.column import Integers
from dataflow.state.stores.row_store import Postponer
from dataflow.time.order import Time
from dataflow.values import Key, Record, Value
from dataflow.windows import partials
from dataflow.windows.aggregates import WindowAggregates
from dataflow.windows.partials import Groups

Values: TypeAlias = tuple[Value, ...] | list[Value]
"""Of one record; or, as a list, [last time, states] of a group."""
Prepared: TypeAlias = tuple[Key, int, Values | None]
Entry: TypeAlias = list[
    Value
]  # [what the kind keeps, the times of wake-ups, what changed since early results came out]
_KEPT, _WAKES, _CHANGED = range(3)


class WindowFold(ABC):
    """What all kinds share. `early`: results so far come out at multiples of it, where something has changed."""

    def __init__(self, name: str, aggregates: WindowAggregates, early: int | None) -> None:
        self.name = name
        self.aggregates = aggregates
        self.early = early

    def __call__(
        self, time: Time, records: list[Prepared], state: dict[Key, Entry], notificator: Postponer
    ) -> Iterable[Record]:
        """Applies what is at a time: records first, then wake-ups."""
        out: list[Record] = []
        fresh = [record for record in records if record[2] is not None]
        for record in self.ordered(time, fresh, notificator):
            key, at, values = record
            entry = state.get(key)
            if entry is None:
                entry = state[key] = [self.nothing(), [], []]
            assert values is not None
            out += self.add(key, entry, at, values, time, notificator)
            if self.early is not None:
                self.wake(key, entry, (time // self.early + 1) * self.early, notificator)
            if not entry[_KEPT]:
                del state[key]
        for key in dict.fromkeys(record[0] for record in records if record[2] is None):
            entry = state.get(key)
            if entry is None:
                continue
            entry[_WAKES] = [each for each in entry[_WAKES] if each > time]
            out += self.close(key, entry, time, notificator)
            if self.early is not None and time % self.early == 0:
                out += self.so_far(key, entry, time)
                entry[_CHANGED] = []
            if not entry[_KEPT]:
                del state[key]
        return out

    def states(self, at: int, values: Values) -> list[Value]:
        """The states of a record, or of a group."""
        if isinstance(values, list):
            states: list[Value] = values[1]
            return states
        return self.aggregates.new(at, values)

    def grouped(self, batch: Columns, by: Sequence[str], times: Integers) -> Groups | None:
        """The rows of a batch that may be aggregated together before they come here; None if none may."""
        return None

    def wake(self, key: Key, entry: Entry, at: int, notificator: Postponer) -> None:
        """Has the key woken at a time, once."""
        if at not in entry[_WAKES]:
            entry[_WAKES].append(at)
            notificator.notify_at(at, (key, at, None))

    def mark(self, entry: Entry, what: int) -> None:
        """Something changed that early results tell."""
        if self.early is not None and what not in entry[_CHANGED]:
            entry[_CHANGED].append(what)

    def result(self, key: Key, start: int, end: int, states: list[Value], final: bool = True) -> Record:
        """A row of the output."""
        row = {"key": key, "window_start": start, "window_end": end, **self.aggregates.finish(states)}
        if self.early is not None:
            row["final"] = final
        return row

    def ordered(self, time: Time, fresh: list[Prepared], notificator: Postponer) -> Iterable[Prepared]:
        """The records to apply now, in which order."""
        return fresh

    @abstractmethod
    def nothing(self) -> Value:
        """What is kept for a key at first."""

    @abstractmethod
    def add(
        self, key: Key, entry: Entry, at: int, values: Values, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        """Takes a record of a time `at`; `now` is the time of the dataflow."""

    @abstractmethod
    def close(self, key: Key, entry: Entry, now: int, notificator: Postponer) -> Iterable[Record]:
        """What ends now."""

    @abstractmethod
    def so_far(self, key: Key, entry: Entry, now: int) -> Iterable[Record]:
        """What open windows have that changed."""


class SlidingFold(WindowFold):
    """Windows of time. Kept are *panes*, stretches of one slide, by their ends: a window is the merge of its panes."""

    def __init__(self, name: str, aggregates: WindowAggregates, early: int | None, size: int, slide: int) -> None:
        super().__init__(name, aggregates, early)
        self._size = size
        self._slide = slide

    def nothing(self) -> dict[int, list[Value]]:
        return {}

    def grouped(self, batch: Columns, by: Sequence[str], times: Integers) -> Groups | None:
        return partials.grouped(batch, by, times, self._slide)

    def add(
        self, key: Key, entry: Entry, at: int, values: Values, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        end = at - at % self._slide + self._slide
        if end <= now:
            raise ValueError(f"{self.name}: a record of {at} came at {now}, after the end of its window at {end}")
        panes = entry[_KEPT]
        if end not in panes:
            panes[end] = self.states(at, values)
            self.wake(key, entry, end, notificator)
        elif isinstance(values, list):
            self.aggregates.merge(panes[end], values[1])
        else:
            self.aggregates.add(panes[end], at, values)
        self.mark(entry, end)
        return ()

    def close(self, key: Key, entry: Entry, now: int, notificator: Postponer) -> Iterable[Record]:
        if now % self._slide:
            return
        panes = entry[_KEPT]
        parts = self._parts(panes, now)
        if parts:
            yield self.result(key, now - self._size, now, self.aggregates.merged(parts))
        for end in [end for end in panes if end <= now - self._size + self._slide]:
            del panes[end]
        if any(end <= now for end in panes):
            self.wake(key, entry, now + self._slide, notificator)

    def _parts(self, panes: dict[int, list[Value]], end: int) -> list[list[Value]]:
        return [panes[each] for each in range(end - self._size + self._slide, end + 1, self._slide) if each in panes]

    def so_far(self, key: Key, entry: Entry, now: int) -> Iterable[Record]:
        ends = {
            end
            for pane in entry[_CHANGED]
            for end in range(pane, pane + self._size, self._slide)
            if pane in entry[_KEPT] and end > now
        }
        for end in sorted(ends):
            states = self.aggregates.merged(self._parts(entry[_KEPT], end))
            yield self.result(key, end - self._size, end, states, final=False)


class SessionFold(WindowFold):
    """Sessions, as [first time, last time, states]; a record that is near two of them makes them one."""

    def __init__(self, name: str, aggregates: WindowAggregates, early: int | None, gap: int) -> None:
        super().__init__(name, aggregates, early)
        self._gap = gap

    def nothing(self) -> list[Value]:
        return []

    def grouped(self, batch: Columns, by: Sequence[str], times: Integers) -> Groups | None:
        return partials.runs(batch, by, times, self._gap)

    def add(
        self, key: Key, entry: Entry, at: int, values: Values, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        if at < now:
            raise ValueError(f"{self.name}: a record of {at} came at {now}: its session may have ended")
        last = values[0] if isinstance(values, list) else at
        near = [each for each in entry[_KEPT] if each[0] - self._gap < last and at < each[1] + self._gap]
        merged: list[Value] = [at, last, self.states(at, values)]
        for each in near:
            merged[0], merged[1] = min(merged[0], each[0]), max(merged[1], each[1])
            self.aggregates.merge(each[2], merged[2])
            merged[2] = each[2]
        entry[_KEPT] = [each for each in entry[_KEPT] if not any(each is other for other in near)] + [merged]
        self.mark(entry, at)
        self._wake_first(key, entry, notificator)
        return ()

    def _wake_first(self, key: Key, entry: Entry, notificator: Postponer) -> None:
        first = min((each[1] for each in entry[_KEPT]), default=None)
        if first is not None and not any(wake <= first + self._gap for wake in entry[_WAKES]):
            self.wake(key, entry, first + self._gap, notificator)

    def close(self, key: Key, entry: Entry, now: int, notificator: Postponer) -> Iterable[Record]:
        over = [each for each in entry[_KEPT] if each[1] + self._gap <= now]
        entry[_KEPT] = [each for each in entry[_KEPT] if each[1] + self._gap > now]
        self._wake_first(key, entry, notificator)
        return [self.result(key, each[0], each[1] + self._gap, each[2]) for each in sorted(over, key=_first)]

    def so_far(self, key: Key, entry: Entry, now: int) -> Iterable[Record]:
        for first, last, states in sorted(entry[_KEPT], key=_first):
            if any(first <= at <= last for at in entry[_CHANGED]):
                whole = self.aggregates.merged([states])
                yield self.result(key, first, last + self._gap, whole, final=False)


def _first(session: list[Value]) -> int:
    first: int = session[0]
    return first


class CountFold(WindowFold):
    """So many records of a key, in the order of their times. Kept is [number, first time, last time, states]."""

    def __init__(self, name: str, aggregates: WindowAggregates, early: int | None, size: int) -> None:
        super().__init__(name, aggregates, early)
        self._size = size

    def nothing(self) -> list[Value]:
        return []

    def ordered(self, time: Time, fresh: list[Prepared], notificator: Postponer) -> Iterable[Prepared]:
        """Those of this time; later ones come again at theirs. Of one time, in the order of what they look like."""
        for record in fresh:
            if record[1] > time:
                notificator.notify_at(record[1], record)
        return sorted((record for record in fresh if record[1] <= time), key=lambda record: repr(record[2]))

    def add(
        self, key: Key, entry: Entry, at: int, values: Values, now: int, notificator: Postponer
    ) -> Iterable[Record]:
        if at < now:
            raise ValueError(f"{self.name}: a record of {at} came at {now}: later ones have been counted")
        if entry[_KEPT]:
            kept = entry[_KEPT]
            kept[0], kept[2] = kept[0] + 1, at
            self.aggregates.add(kept[3], at, values)
        else:
            entry[_KEPT] = [1, at, at, self.aggregates.new(at, values)]
        self.mark(entry, 0)
        number, first, last, states = entry[_KEPT]
        if number < self._size:
            return ()
        entry[_KEPT], entry[_CHANGED] = [], []
        return [self.result(key, first, last, states)]

    def close(self, key: Key, entry: Entry, now: int, notificator: Postponer) -> Iterable[Record]:
        return ()

    def so_far(self, key: Key, entry: Entry, now: int) -> Iterable[Record]:
        if entry[_KEPT] and entry[_CHANGED]:
            _, first, last, states = entry[_KEPT]
            yield self.result(key, first, last, self.aggregates.merged([states]), final=False)
