"""State and pending records by bin, as Python objects: what F takes from S, and S installs.

A bin that nobody has written to does not exist: 2^20 bins cost nothing until there are keys in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataflow import codec
from dataflow.lowlevel import TotalAntichain
from dataflow.order import Time
from megaphone.portions import BIN, NO_STATE, Arriving, Piece, depart
from megaphone.weighing import Scales


class UnmovableState(TypeError):
    """State that cannot be serialised, and so cannot move."""


class RowBins:
    """The bins of one worker. Pending (post-dated) records belong to their bin, and are found by time.

    Costs: everything O(1) or O(log pending times), but for `depart` and `arrive`, O(what travels).
    """

    def __init__(self, initial: Callable[[], Any]) -> None:
        self._initial = initial
        self._states: dict[int, Any] = {}
        self._pending: dict[int, dict[Time, list[Any]]] = {}  # by bin and time
        self._by_time: dict[Time, set[int]] = {}  # invariant: the bins with something pending at that time
        self._least = TotalAntichain()  # invariant: holds the keys of _by_time
        self._scales = Scales()
        self.arriving: dict[int, Arriving] = {}  # bins of which pieces are missing: they are not here yet

    def state(self, number: int) -> Any:
        """The state of a bin, made when it is first asked for."""
        if number not in self._states:
            self._states[number] = self._initial()
        return self._states[number]

    def put_off(self, number: int, time: Time, records: Iterable[Any]) -> None:
        """Keeps records of a bin until a later time."""
        self._pending.setdefault(number, {}).setdefault(time, []).extend(records)
        if time not in self._by_time:
            self._by_time[time] = set()
            self._least.update(time, +1)
        self._by_time[time].add(number)

    @property
    def least_pending(self) -> Time | None:
        """The least time at which anything is pending."""
        return next(iter(self._least.frontier), None)

    def due(self, time: Time) -> dict[int, list[Any]]:
        """Takes out what is pending at a time, by bin."""
        numbers = self._by_time.pop(time, None)
        if numbers is None:
            return {}
        self._least.update(time, -1)
        return {number: self._forget(number, time) for number in sorted(numbers)}

    def _forget(self, number: int, time: Time) -> list[Any]:
        times = self._pending[number]
        records = times.pop(time)
        if not times:
            del self._pending[number]
        return records

    def depart(self, number: int, limit: int) -> Iterator[Piece]:
        """Takes out a bin, with its pending records, in pieces of at most `limit` bytes; none if nothing is in it.

        The bin is forgotten when all of it has been encoded: what cannot move stays, whole. Nobody may change it
        before the last piece has been asked for.
        """
        if number not in self._states and number not in self._pending:
            return
        state, pending = self._states.get(number, NO_STATE), self._pending.get(number, {})
        try:
            for piece in depart(number, state, pending, limit):
                if piece.ends == BIN:
                    self._remove(number)
                yield piece
        except TypeError as error:
            raise UnmovableState(f"bin {number}{_culprit(state, pending)} cannot move: {error}") from None

    def _remove(self, number: int) -> None:
        self._states.pop(number, None)
        for time in self._pending.pop(number, {}):
            self._by_time[time].discard(number)
            if not self._by_time[time]:
                del self._by_time[time]
                self._least.update(time, -1)

    def arrive(self, piece: Piece) -> None:
        """Takes in a piece of a bin that left elsewhere. They come in any order; with the last the bin is installed."""
        number = piece.bin
        if number in self._states or number in self._pending:
            raise AssertionError(f"bin {number} is here already")
        arriving = self.arriving.setdefault(number, Arriving())
        if arriving.add(piece):
            del self.arriving[number]
            if arriving.state is not NO_STATE:
                self._states[number] = arriving.state
            for time, records in arriving.pending:
                self.put_off(number, time, records)

    def sizes(self, bins: int) -> NDArray[np.int64]:
        """About how many bytes each bin has when it travels (see `weighing`). What has none is elsewhere."""
        return self._scales.sizes(self._states, self._pending, bins)

    @property
    def numbers(self) -> set[int]:
        """The bins that have something in them."""
        return set(self._states) | set(self._pending)


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
