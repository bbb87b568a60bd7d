"""State and pending records by bin, as Python objects: what F takes from S, and S installs.

A bin that nobody has written to does not exist: 2^20 bins cost nothing until there are keys in them. A key that lives
apart from its bin has a place of its own beside the bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from sortedcontainers import SortedDict

from dataflow.comm import codec
from dataflow.state.arrays import Ints
from dataflow.state.pieces import Piece
from dataflow.state.store import UnmovableState
from dataflow.state.stores.portions import BIN, NO_STATE, Address, Arriving, Place, address_of, depart
from dataflow.state.stores.weighing import Scales
from dataflow.state.values import Key, Record, State, Value
from dataflow.time.order import Time

T = TypeVar("T")


class RowBins:
    """The bins of one worker, and its keys that live apart. Pending (post-dated) records belong to their place, and are
    found by time.

    Costs: everything O(1) or O(log pending times), but for `depart` and `arrive`, O(what travels), and `depart_key`,
    O(what the key's bin has pending).
    """

    def __init__(self, initial: Callable[[], State]) -> None:
        self._initial = initial
        self._states: dict[Place, State] = {}
        self._pending: dict[Place, dict[Time, list[Record]]] = {}  # by place and time
        self._by_time: SortedDict[Time, set[Place]] = SortedDict()  # invariant: the places with something pending then
        self._scales = Scales()
        self.arriving: dict[Place, Arriving] = {}  # places of which pieces are missing: they are not here yet

    def state(self, place: Place) -> State:
        """The state of a place, made when it is first asked for."""
        if place not in self._states:
            self._states[place] = self._initial()
        return self._states[place]

    def put_off(self, place: Place, time: Time, records: Iterable[Record]) -> None:
        """Keeps records of a place until a later time."""
        self._pending.setdefault(place, {}).setdefault(time, []).extend(records)
        if time not in self._by_time:
            self._by_time[time] = set()
        self._by_time[time].add(place)

    @property
    def least_pending(self) -> Time | None:
        """The least time at which anything is pending."""
        return self._by_time.peekitem(0)[0] if self._by_time else None

    def due(self, time: Time) -> dict[Place, list[Record]]:
        """Takes out what is pending at a time, by place: bins, then keys that live apart."""
        return {place: self._forget(place, time) for place in self.due_places(time)}

    def due_places(self, time: Time) -> list[Place]:
        """Where something is pending at a time: bins, then keys that live apart."""
        return sorted(self._by_time.get(time, ()), key=_rank)

    def _forget(self, place: Place, time: Time) -> list[Record]:
        times = self._pending[place]
        records = times.pop(time)
        if not times:
            del self._pending[place]
        self._by_time[time].discard(place)
        if not self._by_time[time]:
            del self._by_time[time]
        return records

    def depart(self, to: Address, limit: int) -> Iterator[Piece]:
        """Takes out a place, with its pending records, in pieces of at most `limit` words; none if nothing is in it.

        The place is forgotten when all of it has been encoded: what cannot move stays, whole. Nobody may change it
        before the last piece has been asked for.
        """
        state, pending = self._at(to.place)

        def forget() -> None:
            self._states.pop(to.place, None)
            for time in [*pending]:
                self._forget(to.place, time)

        yield from _departing(depart(to, state, pending, limit), to.place, state, pending, forget)

    def copy(self, to: Address, limit: int) -> Iterator[Piece]:
        """The same pieces of a place that stays."""
        state, pending = self._at(to.place)
        yield from _departing(depart(to, state, pending, limit), to.place, state, pending, lambda: None)

    def _at(self, place: Place) -> tuple[State, dict[Time, list[Record]]]:
        return self._states.get(place, NO_STATE), self._pending.get(place, {})

    def depart_key(self, to: Address, key_of: Sequence[Callable[[Record], Key]], limit: int) -> Iterator[Piece]:
        """Takes one key out of a bin whose state is a dictionary by key, in the same way: it will live apart.

        `key_of`: by input, the key of a record.
        """
        assert to.key is not None
        number, (key,) = to.bin, to.key
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

        yield from _departing(depart(to, part, pending, limit), to.key, part, pending, forget)

    def arrive(self, piece: Piece) -> None:
        """Takes in a piece of what left elsewhere. They come in any order; with the last, all of it is installed."""
        to = address_of(piece)
        returns = to.key is not None and not to.apart
        if not returns and (to.place in self._states or to.place in self._pending):
            raise AssertionError(f"{_title(to.place)} is here already")
        arriving = self.arriving.setdefault(to.place, Arriving())
        if not arriving.add(piece):
            return
        del self.arriving[to.place]
        if returns:
            self.install_key(to.bin, arriving)
        else:
            self._install(to.place, arriving)

    def _install(self, place: Place, arrived: Arriving) -> None:
        if arrived.state is not NO_STATE:
            self._states[place] = arrived.state
        for time, records in arrived.pending:
            self.put_off(place, time, records)

    def install_key(self, number: int, arrived: Arriving) -> None:
        """Puts a key back into a bin, whose state is a dictionary by key."""
        if arrived.state is not NO_STATE:
            self.state(number).update(arrived.state)
        for time, records in arrived.pending:
            self.put_off(number, time, records)

    def look(self, place: Place) -> tuple[State, list[tuple[Time, Record]]]:
        """The state of a place (None if it has none) and its pending records, in the order of their times."""
        state, pending = self._at(place)
        records = [(time, record) for time in sorted(pending) for _, record in pending[time]]
        return (None if state is NO_STATE else state), records

    def sizes(self, bins: int) -> Ints:
        """About how many bytes each bin has when it travels (see `weighing`). What has none is elsewhere."""
        return self._scales.sizes(_of_bins(self._states), _of_bins(self._pending), bins)

    @property
    def numbers(self) -> set[int]:
        """The bins that have something in them."""
        return {place for place in (*self._states, *self._pending) if isinstance(place, int)}

    @property
    def key_count(self) -> int:
        """How many keys bins have, where their state is by key; else how many bins have state."""
        return sum(len(state) if isinstance(state, dict) else 1 for state in _of_bins(self._states).values())

    @property
    def apart_keys(self) -> list[Key]:
        """The keys that live apart and have something here."""
        places = dict.fromkeys(place for place in (*self._states, *self._pending) if isinstance(place, tuple))
        return [place[0] for place in places]

    @property
    def apart(self) -> dict[Key, State]:
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


def _of_bins(by_place: dict[Place, T]) -> dict[int, T]:
    return {place: value for place, value in by_place.items() if isinstance(place, int)}


def _departing(
    pieces: Iterator[Piece], place: Place, state: State, pending: dict[Time, list[Record]], forget: Callable[[], None]
) -> Iterator[Piece]:
    """Pieces of what leaves; it is forgotten before the last is given away. UnmovableState names what cannot move."""
    try:
        for piece in pieces:
            if piece.head[0] == BIN:
                forget()
            yield piece
    except TypeError as error:
        raise UnmovableState(f"{_title(place)}{_culprit(state, pending)} cannot move: {error}") from None


def _culprit(state: State, pending: dict[Time, list[Record]]) -> str:
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


def _movable(value: Value) -> bool:
    try:
        codec.encode(value)
    except TypeError:
        return False
    return True
