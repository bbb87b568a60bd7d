"""F and S for rows: records are any objects, state is a Python object per bin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dataflow import Stream
from dataflow.durations import Duration
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.order import Time
from megaphone.assembly import Assembly, Migratable, assemble
from megaphone.bins import RowBins
from megaphone.configuration import Migration, Table
from megaphone.hashing import bin_of, shift_of
from megaphone.keyspace import AnyKeys, AnyOverrides, NoKeys
from megaphone.pins import KeyMoves
from megaphone.portions import Piece
from megaphone.routing import Parts, Router, Shared
from megaphone.state import Apply, Host, Postponer

PIECE = 1 << 20  # bytes of state in one message


class RowRouter(Router):
    """F for rows. A record goes with its place: the number of its bin; or its key, in a tuple, if that lives apart."""

    def __init__(
        self, context: Context, shared: Shared, initial: Any, key_of: Sequence[Callable[[Any], Any]], keys: Any
    ) -> None:
        super().__init__(context, shared, initial, len(key_of), keys)
        self._key_of = key_of  # one per data input
        self._keys: AnyKeys = keys
        self._table: Table | None = None
        self._owners: list[int] = []  # of _table: a list is faster to look into, one by one

    def route(self, time: Time, port: int, batch: Any) -> Parts:
        owners, key_of, shift = self._owners_at(time), self._key_of[port], self._keys.shift
        overrides: AnyOverrides | None = self._configurations.overrides_at(time)
        parts = self._no_parts()
        if overrides is not None:
            batch = place_apart(batch, key_of, overrides.workers, parts)
        place(batch, key_of, shift, owners, parts)
        return Parts(parts)

    def _owners_at(self, time: Time) -> list[int]:
        table = self._configurations.at(time)
        if table is not self._table:
            self._table, self._owners = table, table.tolist()
        return self._owners

    def departures(self, migration: Migration) -> Iterator[tuple[Parts, int]]:
        """Small ones go together, in messages of about a megabyte."""
        parts, size = self._no_parts(), 0
        for destination, piece in self._departing(migration):
            if size and size + len(piece.data) > PIECE:
                yield Parts(parts), size
                parts, size = self._no_parts(), 0
            parts[destination].append(tuple(piece))
            size += len(piece.data)
        if size:
            yield Parts(parts), size

    def _departing(self, migration: Migration) -> Iterator[tuple[int, Piece]]:
        """Pieces of what leaves, and to which worker."""
        if migration.keys is not None:
            yield from self._departing_keys(migration.keys)  # first: a key that is apart does not leave with its bin
        mine = migration.origins == self._context.worker
        for number, destination in zip(
            migration.bins[mine].tolist(), migration.destinations[mine].tolist(), strict=True
        ):
            for piece in self._shared.bins.depart(number, PIECE):
                yield destination, piece

    def _departing_keys(self, moves: KeyMoves) -> Iterator[tuple[int, Piece]]:
        store: RowBins = self._shared.bins
        bins = self._keys.bins_of(moves.keys).tolist()
        for i in np.flatnonzero(moves.origins == self._context.worker).tolist():
            key, to, home = moves.keys[i], int(moves.destinations[i]), None if moves.apart[i] else bins[i]
            if moves.were_apart[i]:
                pieces = store.depart((key,), PIECE, home)
            else:
                pieces = store.depart_key(bins[i], key, self._key_of, PIECE)
            for piece in pieces:
                yield to, piece

    def _no_parts(self) -> list[list[Any]]:
        return [[] for _ in range(self._context.peers)]


def place(batch: Any, key_of: Callable[[Any], Any], shift: int, owners: list[int], parts: list[list[Any]]) -> None:
    """Puts records with the bins of their keys where those are."""
    for record in batch:
        number = bin_of(key_of(record), shift)
        parts[owners[number]].append((number, record))


def place_apart(
    batch: Any, key_of: Callable[[Any], Any], workers: dict[Any, int], parts: list[list[Any]]
) -> Iterator[Any]:
    """Puts records whose keys live apart where they do; the others."""
    for record in batch:
        key = key_of(record)
        try:
            worker = workers.get(key)
        except TypeError:  # a key that has no hash: the others' hashing says so in more words
            worker = None
        if worker is None:
            yield record
        else:
            parts[worker].append(((key,), record))


class RightPostponer:
    """The notificator of the second input."""

    __slots__ = ("_postponer",)

    def __init__(self, postponer: Postponer) -> None:
        self._postponer = postponer

    def notify_at(self, time: Time, record: Any) -> None:
        """Presents `record` to the fold again as a right one, at a later time."""
        self._postponer.notify_at(time, record, 1)


def folding(fold: Callable[[Any, Any, Any], tuple[Any, Iterable[Any]]]) -> Apply:
    """A fold over the state of one key, as one over a bin's dictionary of them."""

    def apply(time: Time, records: list[list[Any]], states: Any, _: Postponer) -> Iterable[Any]:
        results: list[Any] = []
        for key, value in records[0]:
            try:
                new, out = fold(key, value, states.get(key))
            except Exception as error:
                error.add_note(f"for the key {key!r}")
                raise
            if new is None:
                states.pop(key, None)
            else:
                states[key] = new
            results.extend(out)
        return results

    return apply


def stateful(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    keys: Sequence[Any],
    bins: int,
    state: Any,
    apply: Apply,
    name: str,
    interval: float | Duration | None,
    by_key: bool,
) -> Migratable:
    """F and S for rows. `by_key`: a bin's state is a dictionary by key, so that single keys can be pinned."""
    for function, role in (*((key, "key") for key in keys), (state, "state (a function that makes one)")):
        if not callable(function):
            raise ConstructionError(f"{name} needs a function as its {role}, not {function!r}")
    if by_key and not isinstance(made := state(), dict):
        kind = type(made).__name__
        raise ConstructionError(f"{name}: with by_key=True the state is a dictionary by key, not a {kind}")
    space = (AnyKeys if by_key else NoKeys)(name, shift_of(bins))

    def make_host(context: Context, shared: Shared) -> Callable[[], None]:
        return Host(context, shared, keys, apply, bins, interval).step

    def make_router(context: Context, shared: Shared, initial: Any) -> Router:
        return RowRouter(context, shared, initial, keys, space)

    store = RowBins(state)
    result = assemble(control, streams, bins, name, Assembly(store, make_router, make_host, space))
    result.handle.statistics.kept = interval is not None
    if by_key:
        result.handle.apart = lambda: store.apart
    return result
