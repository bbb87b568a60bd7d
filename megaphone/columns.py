"""F and S for columns: records are rows of arrays, state is typed and lies in segments, one per bin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.columns.batches import KeyedBatches
from dataflow.columns.fold import Fold
from dataflow.columns.hashing import as_words, route_dense, route_hashed, split
from dataflow.columns.joining import KeyedJoin
from dataflow.columns.kernels import RECORDS
from dataflow.columns.keyed import Keyed, Side
from dataflow.columns.pacts import require_columns
from dataflow.columns.stateful import Host
from dataflow.columns.table import Dense
from dataflow.lowlevel import Context, InputPort, MessageCapability
from dataflow.order import Time
from megaphone.assembly import INTERVAL, Assembly, Migratable, assemble
from megaphone.configuration import Migration
from megaphone.pieces import arrive, depart, unpack
from megaphone.routing import Parts, Router, Shared
from megaphone.statistics import Reporter

PIECE = 1 << 17  # words of a bin in one message: a megabyte


class ColumnRouter(Router):
    """F for columns. `wanted` has the columns of each input that S needs, the key first: others stay behind. An
    ellipsis stands for all others."""

    def __init__(self, context: Context, shared: Shared, initial: Any, wanted: Sequence[Sequence[Any]]) -> None:
        super().__init__(context, shared, initial, len(wanted))
        self._wanted = wanted
        table = shared.bins.table
        self._find = route_dense if table.dense else route_hashed
        self._by = table.bins - 1 if table.dense else table.shift
        self._peers = context.peers

    def route(self, time: Time, port: int, batch: Any) -> Parts:
        wanted = self._wanted[port]
        columns = require_columns(batch, self._context.name)
        if wanted[-1] is not ...:
            columns = columns.select(wanted)
        if self._peers == 1:
            return Parts([columns])
        keys = as_words(columns[wanted[0]], wanted[0])
        order, ends = np.empty(len(keys), np.int64), np.zeros(self._peers, np.int64)
        self._find(keys, self._by, self._configurations.at(time), order, ends)
        return Parts(split(columns, order, ends))

    def departures(self, migration: Migration) -> Iterator[tuple[Parts, int]]:
        mine = migration.origins == self._context.worker
        store = self._shared.bins
        for bin, destination in zip(migration.bins[mine].tolist(), migration.destinations[mine].tolist(), strict=True):
            for words in depart(store.movable, bin, PIECE):
                parts: list[Any] = [()] * self._peers
                parts[destination] = Columns.trusted({"words": words}, len(words))
                yield Parts(parts), words.nbytes


class ColumnHost(Host):
    """S for columns: a host of `Keyed`, where bins arrive."""

    def __init__(self, context: Context, shared: Shared, ports: int, interval: float | None) -> None:
        super().__init__(context, shared.bins, context.inputs[:ports])
        self._arrivals: InputPort = context.inputs[ports]
        self._reporter = Reporter(context, context.outputs[1], shared.bins.table.bins, interval, self._counted)
        shared.state_changed = context.activate

    def step(self) -> None:
        """State first."""
        self._install_arrivals()
        super().step()

    def _install_arrivals(self) -> None:
        for message, batch in self._arrivals:
            arrive(self._keyed.movable, unpack(batch["words"]))
            self._hold_from(message)

    def saw(self, message: MessageCapability) -> None:
        self._reporter.saw(message)

    def apply(self, time: Time, batches: list[list[Columns]]) -> list[Columns]:
        began = perf_counter_ns()
        results = super().apply(time, batches)
        self._reporter.spent(perf_counter_ns() - began)
        self._reporter.report()
        return results

    def _counted(self) -> tuple[Any, Any]:
        sizes = sum(part.segments.sizes for part in self._keyed.movable)
        return self._keyed.table.meta[:, RECORDS].astype(np.int64), sizes


def folded(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    sides: Sequence[tuple[Any, Any, Any, Any]],
    due: Fold | None,
    bins: int,
    keys: Dense | None,
    name: str,
    interval: float | None,
) -> Migratable:
    """F and S for compiled folds."""
    made = [Side(*side) for side in sides]
    wanted = [list(dict.fromkeys((side.key, *side.names, *side.order))) for side in made]
    return stateful(control, streams, Keyed(name, made, due, bins, keys), wanted, bins, name, interval)


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
    interval: float | None = INTERVAL,
) -> Migratable:
    """Every pair of records with equal keys, whenever they come: `key` and the value columns of both.

    A pair comes out at the later of its times. `unique`: "left" or "right", the side on which a key occurs at most
    once; records of the other side are then forgotten when they have met.
    """
    by = (key, right_key or key)
    wanted = [list(dict.fromkeys((name, *columns))) for name, columns in zip(by, (value, right_value), strict=True)]
    store = KeyedJoin(name, by, (value, right_value), unique, bins)
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
    interval: float | None,
) -> Migratable:
    """F and S for a function of batches; all columns of the inputs reach it."""
    store = KeyedBatches(name, by, fold, state, pending, bins, keys)
    return stateful(control, streams, store, [(key, ...) for key in by], bins, name, interval)


def stateful(
    control: Stream[Any],
    streams: Sequence[Stream[Any]],
    store: Any,
    wanted: Sequence[Sequence[Any]],
    bins: int,
    name: str,
    interval: float | None,
) -> Migratable:
    """F and S around a store of bins in columns."""

    def make_host(context: Context, shared: Shared) -> Callable[[], None]:
        return ColumnHost(context, shared, len(streams), interval).step

    parts = Assembly(store, lambda context, shared, initial: ColumnRouter(context, shared, initial, wanted), make_host)
    return assemble(control, streams, bins, name, parts)
