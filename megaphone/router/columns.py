"""F and S for columns: records are rows of arrays, state is typed and lies in segments, one per bin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.columns.batch import Array
from dataflow.columns.hashing import Owners, as_words, route_apart, route_dense, route_hashed
from dataflow.columns.pact import require_columns
from dataflow.columns.scatter import split
from dataflow.lowlevel import Capability, Context, OutputPort
from dataflow.state.folds.fold import Fold
from dataflow.state.stores.batch_store import BatchStore
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.tables.table import Dense, DenseTable, Table
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from dataflow.time.timestamp import unit_of
from megaphone.assembly import INTERVAL, Assembly, Migratable, assemble
from megaphone.host.host import S
from megaphone.keys.keyspace import KeySpace, WordKeys, WordOverrides
from megaphone.keys.pinning import PinningStore, mark
from megaphone.load.heavy import HeavyKeys
from megaphone.router.routing import Parts, Router, Shared

FEW = 1 << 12  # records: batches of fewer are routed together, since each costs as much as many records


class Gathered:
    """Small batches of one input, of several times, that are routed together."""

    def __init__(self, peers: int) -> None:
        self.times: list[Time] = []
        self.batches: list[Columns] = []
        self._table: Any = None  # the configuration at all of these times
        self._capability: Capability | None = None  # at the least of them, which is the first
        self._rows = 0
        self._most = (1 << 16) // peers  # batches: what goes to whom is numbered in 16 bits

    def has_room(self, time: Time, table: Any, batch: Columns) -> bool:
        """Whether a batch can be added to those that are here."""
        if not self.batches:
            return True
        few = self._rows + len(batch) <= FEW and len(self.batches) < self._most
        return few and table is self._table and time >= self.times[0] and Columns.alike([self.batches[0], batch])

    def add(self, capability: Any, time: Time, table: Any, batch: Columns, output: OutputPort) -> None:
        """Keeps a batch, for which there is room."""
        if self._capability is None:
            own = isinstance(capability, Capability)
            self._capability = capability.clone() if own else capability.retain(output.number)
        self._table = table
        self._rows += len(batch)
        self.times.append(time)
        self.batches.append(batch)

    @contextmanager
    def taken(self) -> Iterator[Capability]:
        """The right to send all of them; when that is done there is none any more."""
        assert self._capability is not None
        with self._capability as capability:
            yield capability
        self.times, self.batches, self._capability, self._rows = [], [], None, 0


class ColumnRouter(Router):
    """F for columns. `wanted` has the columns of each input that S needs, the key first: others stay behind. An
    ellipsis stands for all others."""

    def __init__(
        self,
        context: Context,
        shared: Shared[Columns],
        initial: Sequence[int],
        wanted: Sequence[Sequence[Any]],
        keys: KeySpace,
        table: Table,
    ) -> None:
        super().__init__(context, shared, initial, len(wanted), keys)
        self._wanted = wanted
        self._gathered = [Gathered(context.peers) for _ in wanted]
        self._dense = table.dense
        self._find = route_dense if table.dense else route_hashed
        self._by = table.bins - 1 if table.dense else table.shift
        self._peers = context.peers
        self._table: Any = None  # the configuration that was used last, and the same packed
        self._owners = Owners(np.zeros(0, np.uint16), 1)

    def give(self, capability: Any, time: Time, port: int, batch: Any) -> None:
        overrides = self._configurations.overrides_at(time)
        if overrides is None:
            gathered = self._gathered[port]
            if self._peers > 1 and len(batch) < FEW and (gathered.batches or self._data[port].queue):
                table = self._configurations.at(time)
                columns = self._select(port, batch)
                if not gathered.has_room(time, table, columns):
                    self.give_rest(port)
                gathered.add(capability, time, table, columns, self._records[port])
            else:
                super().give(capability, time, port, batch)
            return
        for parts in self._divide(time, port, self._select(port, batch), overrides):
            if len(parts):
                self._records[port].give(capability, parts)

    def give_rest(self, port: int) -> None:
        """Routes what was gathered, all of it at once, and sends each part at its own time."""
        gathered = self._gathered[port]
        if gathered.batches:
            peers, times = self._peers, gathered.times
            columns = Columns.concat(gathered.batches)
            to = self._owners_of(times[0], port, columns)
            firsts = np.arange(0, len(times) * peers, peers, dtype=np.uint16)
            to += np.repeat(firsts, [len(batch) for batch in gathered.batches])
            parts = split(columns, to, len(times) * peers)
            with gathered.taken() as capability:
                for number, time in enumerate(times):
                    self._records[port].give(capability, Parts(parts[number * peers : (number + 1) * peers]), at=time)

    def _select(self, port: int, batch: Any) -> Columns:
        wanted = self._wanted[port]
        columns = require_columns(batch, self._context.name)
        return columns if wanted[-1] is ... else columns.select(wanted)

    def _divide(self, time: Time, port: int, columns: Columns, overrides: WordOverrides) -> tuple[Parts, Parts]:
        """The records whose keys are in their bins, and those whose keys are apart."""
        name = self._wanted[port][0]
        keys = as_words(columns[name], name)
        to = np.empty(len(keys), np.uint16)
        owners = self._owners_at(time)
        route_apart(
            keys, self._dense, self._by, owners.words, owners.width, overrides.slots, overrides.owners, self._peers, to
        )
        parts = split(columns, to, 2 * self._peers)
        return Parts(parts[: self._peers]), Parts([mark(part) for part in parts[self._peers :]])

    def route(self, time: Time, port: int, batch: Any) -> Parts:
        columns = self._select(port, batch)
        if self._peers == 1:
            return Parts([columns])
        return Parts(split(columns, self._owners_of(time, port, columns), self._peers))

    def _owners_of(self, time: Time, port: int, columns: Columns) -> Array:
        """To whom each record goes."""
        name = self._wanted[port][0]
        keys = as_words(columns[name], name)
        to = np.empty(len(keys), np.uint16)
        owners = self._owners_at(time)
        self._find(keys, self._by, owners.words, owners.width, to)
        return to

    def _owners_at(self, time: Time) -> Owners:
        table = self._configurations.at(time)
        if table is not self._table:  # tables are never changed: of each there is one packed form
            self._table, self._owners = table, Owners(table, self._peers)
        return self._owners


def folded(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    sides: Sequence[tuple[Any, Any, Any, Any]],
    due: Fold | None,
    bins: int,
    keys: Dense | None,
    name: str,
    interval: float | Duration | None,
) -> Migratable:
    """F and S for compiled folds."""
    made = [Side(*side) for side in sides]
    wanted = [list(dict.fromkeys((side.key, *side.names, *side.order))) for side in made]
    here = _among_workers(keys, streams)
    once = interval is not None
    store = PinningStore(lambda apart: FoldStore(name, made, due, bins, None if apart else here, once and not apart))
    return stateful(control, streams, store, wanted, bins, name, interval)


def join(
    control: Stream[Any],
    left: Stream[Any],
    right: Stream[Any],
    *,
    key: str,
    right_key: str | None = None,
    value: Sequence[str] = (),
    right_value: Sequence[str] = (),
    unique: str | None = None,
    bins: int = 256,
    name: str = "join",
    interval: float | Duration | None = INTERVAL,
) -> Migratable:
    """Every pair of records with equal keys, whenever they come: `key` and the value columns of both.

    A pair comes out at the later of its times. `unique`: "left" or "right", the side on which a key occurs at most
    once; records of the other side are then forgotten when they have met.
    """
    by = (key, right_key or key)
    wanted = [list(dict.fromkeys((name, *columns))) for name, columns in zip(by, (value, right_value), strict=True)]
    store = PinningStore(lambda apart: JoinStore(name, by, (value, right_value), unique, bins))
    return stateful(control, (left, right), store, wanted, bins, name, interval)


def unary(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    by: Sequence[str],
    fold: Any,
    bins: int,
    state: Any,
    pending: Any,
    keys: Dense | None,
    name: str,
    interval: float | Duration | None,
) -> Migratable:
    """F and S for a function of batches; all columns of the inputs reach it."""
    here = _among_workers(keys, streams)
    unit = unit_of(streams[0].scope.domain)
    store = PinningStore(lambda apart: BatchStore(name, by, fold, state, pending, bins, None if apart else here, unit))
    return stateful(control, streams, store, [(key, ...) for key in by], bins, name, interval)


def _among_workers(keys: Dense | None, streams: Sequence[Stream[Any]]) -> Dense | None:
    """Dense keys whose bins begin at as many workers as there are."""
    return None if keys is None else replace(keys, workers=streams[0].scope.peers)


def stateful(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    store: PinningStore,
    wanted: Sequence[Sequence[Any]],
    bins: int,
    name: str,
    interval: float | Duration | None,
) -> Migratable:
    """F and S around a store of bins in columns."""

    by = [columns[0] for columns in wanted]

    def make_host(context: Context, shared: Shared[Columns]) -> Callable[[], None]:
        return S(context, shared, len(by), interval, lambda: HeavyKeys(by)).step

    def make_router(context: Context, shared: Shared[Columns], initial: Sequence[int]) -> Router:
        return ColumnRouter(context, shared, initial, wanted, keys, store.table)

    keys = WordKeys(name, store.table.bins_of, store.table.domain if isinstance(store.table, DenseTable) else None)
    result = assemble(control, streams, bins, name, Assembly(store, make_router, make_host, keys))
    result.handle.statistics.kept = interval is not None
    return result
