"""State and pending records by bin, as Python objects: what F takes from S, and S installs.

A bin that nobody has written to does not exist: 2^20 bins cost nothing until there are keys in them. A key that lives
apart from its bin has a place of its own beside the bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from dataflow import codec
from dataflow.order import Time
from megaphone.portions import BIN, NO_STATE, Arriving, Piece, Place, depart
from megaphone.weighing import Scales


class UnmovableState(TypeError):
    """State that cannot be serialised, and so cannot move."""


class RowBins:
    """The bins of one worker, and its keys that live apart. Pending (post-dated) records belong to
    their place, and are found by time.

    Costs: everything O(1) or O(log pending times), but for `depart` and `arrive`, O(what travels), and `depart_key`,
    O(what the key's bin has pending).
    """

    def __init__(self, initial: Callable[[], Any]) -> None:
        self._initial = initial
        self._states: dict[Place, Any] = {}
        self._pending: dict[Place, dict[Time, list[Any]]] = {}  # by place and time
        self._by_time: SortedDict[Time, set[Place]] = SortedDict()  # invariant: the places with something pending then
        self._scales = Scales()
        self.arriving: dict[Place, Arriving] = {}  # places of which pieces are missing: they are not here yet

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
        self._by_time[time].add(place)

    @property
    def least_pending(self) -> Time | None:
        """The least time at which anything is pending."""
        return self._by_time.peekitem(0)[0] if self._by_time else None

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
        return records

    def depart(self, place: Place, limit: int, home: int | None = None) -> Iterator[Piece]:
        """Takes out a place, with its pending records, in pieces of at most `limit` bytes; none if nothing is in it.

        The place is forgotten when all of it has been encoded: what cannot move stays, whole. Nobody may change it
        before the last piece has been asked for. `home`: the bin into which a key goes back.
        """
        if place not in self._states and place not in self._pending:
            return
        state, pending = self._states.get(place, NO_STATE), self._pending.get(place, {})

        def forget() -> None:
            self._states.pop(place, None)
            for time in [*pending]:
                self._forget(place, time)

        yield from _departing(_title(place), depart(place, state, pending, limit, home), state, pending, forget)

    def depart_key(self, number: int, key: Any, key_of: Sequence[Callable[[Any], Any]], limit: int) -> Iterator[Piece]:
        """Takes one key out of a bin whose state is a dictionary by key, in the same way: it will live apart.

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
            return
        part = {key: state[key]} if key in state else NO_STATE

        def forget() -> None:
            state.pop(key, None)
            for time, rest in others.items():
                self._forget(number, time)
                if rest:
                    self.put_off(number, time, rest)

        place = (key,)
        yield from _departing(_title(place), depart(place, part, pending, limit), part, pending, forget)

    def arrive(self, piece: Piece) -> Arriving | None:
        """Takes in a piece of what left elsewhere. They come in any order; with the last, all of it is installed. But
        a key that goes back into its bin is given back, for `install_key`: the bin may be on its way as well."""
        place = piece.place
        if piece.home is None and (place in self._states or place in self._pending):
            raise AssertionError(f"{_title(place)} is here already")
        arriving = self.arriving.setdefault(place, Arriving())
        if not arriving.add(piece):
            return None
        del self.arriving[place]
        if piece.home is not None:
            return arriving
        if arriving.state is not NO_STATE:
            self._states[place] = arriving.state
        for time, records in arriving.pending:
            self.put_off(place, time, records)
        return None

    def install_key(self, number: int, arrived: Arriving) -> None:
        """Puts a key back into a bin, whose state is a dictionary by key."""
        if arrived.state is not NO_STATE:
            self.state(number).update(arrived.state)
        for time, records in arrived.pending:
            self.put_off(number, time, records)

    def sizes(self, bins: int) -> NDArray[np.int64]:
        """About how many bytes each bin has when it travels (see `weighing`). What has none is elsewhere."""
        return self._scales.sizes(_of_bins(self._states), _of_bins(self._pending), bins)

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


def _of_bins(by_place: dict[Place, Any]) -> dict[int, Any]:
    return {place: value for place, value in by_place.items() if isinstance(place, int)}


def _departing(
    title: str, pieces: Iterator[Piece], state: Any, pending: dict[Time, list[Any]], forget: Callable[[], None]
) -> Iterator[Piece]:
    """Pieces of what leaves; it is forgotten before the last is given away. UnmovableState names what cannot move."""
    try:
        for piece in pieces:
            if piece.ends == BIN:
                forget()
            yield piece
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
