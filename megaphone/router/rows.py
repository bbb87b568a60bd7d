"""F and S for rows: records are any objects, state is a Python object per bin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.state.stores.row_store import Apply, KeyOf, Rows, RowStore
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from megaphone.assembly import Assembly, Migratable, assemble
from megaphone.control.configuration import Table
from megaphone.host.host import S
from megaphone.keys.hashing import bin_of, shift_of
from megaphone.keys.keyspace import AnyKeys, AnyOverrides, NoKeys
from megaphone.load.tally import HeavyRows
from megaphone.router.routing import Parts, Router, Shared


class RowRouter(Router):
    """F for rows. A record goes with its place: the number of its bin; or its key, in a tuple, if that lives apart."""

    def __init__(
        self, context: Context, shared: Shared[Rows], initial: Sequence[int], key_of: Sequence[KeyOf], keys: AnyKeys
    ) -> None:
        super().__init__(context, shared, initial, len(key_of), keys)
        self._key_of = key_of  # one per data input
        self._keys = keys
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

    shift = shift_of(bins)
    store = RowStore(name, bins, keys, lambda key: bin_of(key, shift), state, apply)

    def make_host(context: Context, shared: Shared[Rows]) -> Callable[[], None]:
        return S(context, shared, len(keys), interval, lambda: HeavyRows(keys)).step

    def make_router(context: Context, shared: Shared[Rows], initial: Sequence[int]) -> Router:
        return RowRouter(context, shared, initial, keys, space)

    result = assemble(control, streams, bins, name, Assembly(store, make_router, make_host, space))
    result.handle.statistics.kept = interval is not None
    return result
