"""State and pending records by bin, as Python objects: what F takes from S, and S installs.

A bin that nobody has written to does not exist: 2^20 bins cost nothing until there are keys in them. A key that lives
apart from its bin has a place of its own beside the bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow import codec
from dataflow.lowlevel import TotalAntichain
from dataflow.order import Time

Place: TypeAlias = int | tuple[Any]
"""The number of a bin; or, for a key that lives apart, the key in a tuple."""


class UnmovableState(TypeError):
    """State that cannot be serialised, and so cannot move."""


class RowBins:
    """The bins of one worker, and its keys that live apart. Pending (post-dated) records belong to
    their place, and are found by time.

    Costs: everything O(1) or O(log pending times), but for `take` and `install`, O(bin), and `take_key`, O(what its bin
    has pending).
    """

    def __init__(self, initial: Callable[[], Any]) -> None:
        self._initial = initial
        self._states: dict[Place, Any] = {}
        self._pending: dict[Place, dict[Time, list[Any]]] = {}  # by place and time
        self._by_time: dict[Time, set[Place]] = {}  # invariant: the places with something pending at that time
        self._least = TotalAntichain()  # invariant: holds the keys of _by_time

    def state(self, place: Place) -> Any:
        """The state of a place, made when it is first asked for."""
        if place not in self._states:
            self._states[place] = self._initial()
        return self._states[place]

    def put_off(self, place: Place, time: Time, records: Iterable[Any]) -> None:
        """Keeps records of a place until a later time."""
        self._pending.setdefault(place, {}).setdefault(time, []).extend(records)
        if time not in self._by_time:
            self._by_time[time] = set()
            self._least.update(time, +1)
        self._by_time[time].add(place)

    @property
    def least_pending(self) -> Time | None:
        """The least time at which anything is pending."""
        return next(iter(self._least.frontier), None)

    def due(self, time: Time) -> dict[Place, list[Any]]:
        """Takes out what is pending at a time, by place: bins, then keys that live apart."""
        return {place: self._forget(place, time) for place in sorted(self._by_time.get(time, ()), key=_rank)}

    def _forget(self, place: Place, time: Time) -> list[Any]:
        times = self._pending[place]
        records = times.pop(time)
        if not times:
            del self._pending[place]
        self._by_time[time].discard(place)
        if not self._by_time[time]:
            del self._by_time[time]
            self._least.update(time, -1)
        return records

    def take(self, place: Place) -> bytes | None:
        """Takes out a place, with its pending records, in a form that can travel; None if there is nothing in it."""
        if place not in self._states and place not in self._pending:
            return None
        has_state, state, pending = place in self._states, self._states.get(place), self._pending.get(place, {})
        payload = _encoded(_title(place), has_state, state, pending)  # before anything is changed
        self._states.pop(place, None)
        for time in [*pending]:
            self._forget(place, time)
        return payload

    def take_key(self, number: int, key: Any, key_of: Sequence[Callable[[Any], Any]]) -> bytes | None:
        """Takes one key out of a bin whose state is a dictionary by key; None if there is nothing of it.

        `key_of`: by input, the key of a record.
        """
        state = self._states.get(number, {})
        if not isinstance(state, dict):
            raise UnmovableState(
                f"the key {key!r} cannot move: the state of bin {number} is a {type(state).__name__}, and with "
                "by_key=True it must be a dictionary by key"
            )
        pending, others = {}, {}
        for time, records in self._pending.get(number, {}).items():
            mine = [record for record in records if key_of[record[0]](record[1]) == key]
            if mine:
                pending[time] = mine
                others[time] = [record for record in records if key_of[record[0]](record[1]) != key]
        if key not in state and not pending:
            return None
        part = {key: state[key]} if key in state else {}
        payload = _encoded(_title((key,)), bool(part), part, pending)  # before anything is changed
        state.pop(key, None)
        for time, rest in others.items():
            self._forget(number, time)
            if rest:
                self.put_off(number, time, rest)
        return payload

    def install(self, place: Place, payload: bytes) -> None:
        """Puts in what was taken out elsewhere."""
        has_state, state, pending = codec.decode(payload)
        if has_state:
            self._states[place] = state
        for time, records in pending:
            self.put_off(place, time, records)

    def install_key(self, number: int, payload: bytes) -> None:
        """Puts a key back into a bin, whose state is a dictionary by key."""
        has_state, part, pending = codec.decode(payload)
        if has_state:
            self.state(number).update(part)
        for time, records in pending:
            self.put_off(number, time, records)

    def sizes(self, bins: int) -> NDArray[np.int64]:
        """About how many bytes each bin has: 64, and for every entry of a dictionary and every pending record as many.

        A bin that is here has some: what has none is elsewhere.
        """
        sizes = np.zeros(bins, np.int64)
        for place, state in self._states.items():
            if isinstance(place, int):
                sizes[place] = 64 * (1 + (len(state) if isinstance(state, Sized) else 1))
        for place, times in self._pending.items():
            if isinstance(place, int):
                sizes[place] += 64 * sum(map(len, times.values()))
        return sizes

    @property
    def numbers(self) -> set[int]:
        """The bins that have something in them."""
        return {place for place in (*self._states, *self._pending) if isinstance(place, int)}

    @property
    def apart(self) -> dict[Any, Any]:
        """The state of the keys that live apart, by key, as far as they have any."""
        return {
            place[0]: state[place[0]]
            for place, state in self._states.items()
            if isinstance(place, tuple) and place[0] in state
        }


def _rank(place: Place) -> tuple[bool, int, str]:
    """An order of places that is the same in every run."""
    return (False, place, "") if isinstance(place, int) else (True, 0, repr(place))


def _title(place: Place) -> str:
    return f"bin {place}" if isinstance(place, int) else f"the key {place[0]!r}"


def _encoded(title: str, has_state: bool, state: Any, pending: dict[Time, list[Any]]) -> bytes:
    try:
        return codec.encode([has_state, state, list(pending.items())])
    except TypeError as error:
        raise UnmovableState(f"{title}{_culprit(state, pending)} cannot move: {error}") from None


def _culprit(state: Any, pending: dict[Time, list[Any]]) -> str:
    """Which key of a dictionary, or which pending record, is to blame."""
    if isinstance(state, dict):
        for key, value in state.items():
            if not _movable([key, value]):
                return f", key {key!r},"
    for time, records in pending.items():
        for _, record in records:
            if not _movable(record):
                return f", with {record!r} put off until {time!r},"
    return ""


def _movable(value: Any) -> bool:
    try:
        codec.encode(value)
    except TypeError:
        return False
    return True
