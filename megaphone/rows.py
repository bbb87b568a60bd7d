"""F and S for rows: records are any objects, state is a Python object per bin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.order import Time
from megaphone.assembly import Assembly, Migratable, assemble
from megaphone.bins import RowBins
from megaphone.configuration import Migration, Table
from megaphone.hashing import bin_of, shift_of
from megaphone.routing import Parts, Router, Shared
from megaphone.state import Apply, Host, Postponer

PIECE = 1 << 20  # bytes of state in one message


class RowRouter(Router):
    """F for rows."""

    def __init__(self, context: Context, shared: Shared, initial: Any, bin_of: Sequence[Callable[[Any], int]]) -> None:
        super().__init__(context, shared, initial, len(bin_of))
        self._bin_of = bin_of  # one per data input
        self._table: Table | None = None
        self._owners: list[int] = []  # of _table: a list is faster to look into, one by one

    def route(self, time: Time, port: int, batch: Any) -> Parts:
        owners, bin_of = self._owners_at(time), self._bin_of[port]
        parts = self._no_parts()
        for record in batch:
            number = bin_of(record)
            parts[owners[number]].append((number, record))
        return Parts(parts)

    def _owners_at(self, time: Time) -> list[int]:
        table = self._configurations.at(time)
        if table is not self._table:
            self._table, self._owners = table, table.tolist()
        return self._owners

    def departures(self, migration: Migration) -> Iterator[tuple[Parts, int]]:
        mine = migration.origins == self._context.worker
        parts, size = self._no_parts(), 0
        for number, destination in zip(
            migration.bins[mine].tolist(), migration.destinations[mine].tolist(), strict=True
        ):
            for piece in self._shared.bins.depart(number, PIECE):
                if size and size + len(piece.data) > PIECE:
                    yield Parts(parts), size
                    parts, size = self._no_parts(), 0
                parts[destination].append(tuple(piece))
                size += len(piece.data)
        if size:
            yield Parts(parts), size

    def _no_parts(self) -> list[list[Any]]:
        return [[] for _ in range(self._context.peers)]


class RightPostponer:
    """The notificator of the second input."""

    __slots__ = ("_postponer",)

    def __init__(self, postponer: Postponer) -> None:
        self._postponer = postponer

    def notify_at(self, time: Time, record: Any) -> None:
        """Presents `record` to the fold again as a right one, at a later time."""
        self._postponer.notify_at(time, record, 1)


def by_key(fold: Callable[[Any, Any, Any], tuple[Any, Iterable[Any]]]) -> Apply:
    """A fold over the state of one key, as one over a bin's dictionary of them."""

    def apply(time: Time, number: int, records: list[list[Any]], states: Any, _: Postponer) -> Iterable[Any]:
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
    interval: float | None,
) -> Migratable:
    """F and S for rows."""
    for function, role in (*((key, "key") for key in keys), (state, "state (a function that makes one)")):
        if not callable(function):
            raise ConstructionError(f"{name} needs a function as its {role}, not {function!r}")
    shift = shift_of(bins)

    def bin_by(key: Callable[[Any], Any]) -> Callable[[Any], int]:
        return lambda record: bin_of(key(record), shift)

    def make_host(context: Context, shared: Shared) -> Callable[[], None]:
        return Host(context, shared, keys, apply, bins, interval).step

    parts = Assembly(
        RowBins(state),
        lambda context, shared, initial: RowRouter(context, shared, initial, [*map(bin_by, keys)]),
        make_host,
    )
    result = assemble(control, streams, bins, name, parts)
    result.handle.statistics.kept = interval is not None
    return result
