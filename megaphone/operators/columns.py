"""Migratable operators on columns: records are rows of arrays, and state is typed and lies in segments, one per bin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.columns.batch import Column
from dataflow.columns.schema import Schema
from dataflow.lowlevel import Context
from dataflow.state.folds.fold import Fold
from dataflow.state.native_columns import expiring
from dataflow.state.stores.batch_store import BatchNotificator, BatchStore
from dataflow.state.stores.column_store import ColumnStore
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.stores.spelled import WORD, Spelled, SpelledJoin, with_spelled_keys
from dataflow.state.tables.table import Dense, DenseTable, Table
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from dataflow.time.timestamp import unit_of
from megaphone.assembly import INTERVAL, Assembly, Migratable, assemble
from megaphone.control.arranging import Arrangement
from megaphone.control.updates import Update
from megaphone.host.s import S
from megaphone.keys.keyspace import WordKeys
from megaphone.keys.pinning import K, PinningStore
from megaphone.load.heavy import HeavyKeys
from megaphone.router.columns import ColumnRouter, Wanted
from megaphone.router.routing import Shared

Emitted: TypeAlias = Columns | Mapping[str, Column] | None
"""What a function of batches returns."""
BatchFold: TypeAlias = Callable[[Time, Columns, Table, BatchNotificator], Emitted]
BatchFold2: TypeAlias = Callable[[Time, Columns, Columns, Table, BatchNotificator], Emitted]
Names: TypeAlias = str | Sequence[str] | None
"""The value columns of an input. To the fold, `value` is the column's for one name, and a tuple for several."""

FINEST = 1 << 12  # bins at the finest where nobody says: a hundred million keys have 24,000 in each
EACH = 16  # bins of a worker at first


def unary(
    control: Stream[Update],
    stream: Stream[Columns],
    *,
    key: str,
    fold: BatchFold,
    state: Schema,
    pending: Schema | None = None,
    keys: Dense | None = None,
    bins: int | None = None,
    name: str = "unary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """One input, and a function of batches; all columns of the input reach it."""
    return _batches(control, (stream,), (key,), fold, state, pending, keys, bins, name, interval)


def binary_batches(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str,
    right_key: str | None = None,
    fold: BatchFold2,
    state: Schema,
    pending: Schema | None = None,
    keys: Dense | None = None,
    bins: int | None = None,
    name: str = "binary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """Two inputs, and a function of batches; all columns of the inputs reach it."""
    by = (key, key if right_key is None else right_key)
    return _batches(control, (left, right), by, fold, state, pending, keys, bins, name, interval)


def binary(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str | Sequence[str],
    right_key: str | Sequence[str] | None = None,
    fold: Fold,
    right_fold: Fold,
    value: Names = None,
    right_value: Names = None,
    due: Fold | None = None,
    keys: Dense | Spelled | None = None,
    bins: int | None = None,
    name: str = "binary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """Two inputs, and a compiled fold for each, over one state."""
    sides = (Side(key, value, fold), Side(key if right_key is None else right_key, right_value, right_fold))
    return _folded(control, (left, right), sides, due, bins, keys, name, interval)


def state_machine(
    control: Stream[Update],
    stream: Stream[Columns],
    *,
    key: str | Sequence[str],
    fold: Fold,
    value: Names = None,
    due: Fold | None = None,
    order: Sequence[str] = (),
    keys: Dense | Spelled | None = None,
    ttl: int | Duration | None = None,
    bins: int | None = None,
    name: str = "state_machine",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """One input, and a compiled fold over the state of a key. `ttl`: a key without a record for so long is
    forgotten."""
    if ttl is not None:
        fold = expiring(fold, ttl, due, stream.scope, name)
    return _folded(control, (stream,), (Side(key, value, fold, order),), due, bins, keys, name, interval)


def join(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str | Sequence[str],
    right_key: str | Sequence[str] | None = None,
    value: Sequence[str] = (),
    right_value: Sequence[str] = (),
    unique: str | None = None,
    keys: Spelled | None = None,
    bins: int | None = None,
    name: str = "join",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """Every pair of records with equal keys, whenever they come: `key` and the value columns of both.

    A pair comes out at the later of its times. `unique`: "left" or "right", the side on which a key occurs at most
    once; records of the other side are then forgotten when they have met. With `keys=megaphone.spelled(21)`, or several
    key columns, keys may be strings, bytes, dates and so on: those of several come out under their own names.
    """
    if not (isinstance(key, str) and isinstance(right_key, str | None) and keys is None):
        spelled = SpelledJoin(name, (key, right_key or key), (value, right_value), keys)
        pairs = join(
            control, *spelled.before((left, right)), key=WORD, value=spelled.values[0], right_value=spelled.values[1],
            unique=unique, bins=bins, name=name, interval=interval,
        )  # fmt: skip
        return Migratable(spelled.behind(pairs), pairs.handle)
    by = (key, right_key or key)
    wanted = [Wanted.of(name, columns) for name, columns in zip(by, (value, right_value), strict=True)]
    finest = _finest(bins)
    store = PinningStore(lambda apart: JoinStore(name, by, (value, right_value), unique, finest))
    return _stateful(control, (left, right), store, wanted, bins, name, interval)


def _folded(
    control: Stream[Update],
    streams: Sequence[Stream[Columns]],
    sides: Sequence[Side],
    due: Fold | None,
    bins: int | None,
    keys: Dense | Spelled | None,
    name: str,
    interval: float | Duration | None,
) -> Migratable[Columns]:
    """F and S for compiled folds."""
    streams, sides, due, dense = with_spelled_keys(streams, sides, due, keys, name)
    wanted = [Wanted.of(side.by, (*side.names, *side.order, *side.spelling, *side.carried)) for side in sides]
    here, finest = _among_workers(dense, streams, bins), _finest(bins)
    once = interval is not None
    store = PinningStore(lambda apart: FoldStore(name, sides, due, finest, None if apart else here, once and not apart))
    return _stateful(control, streams, store, wanted, bins, name, interval)


def _batches(
    control: Stream[Update],
    streams: Sequence[Stream[Columns]],
    by: Sequence[str],
    fold: BatchFold | BatchFold2,
    state: Schema,
    pending: Schema | None,
    keys: Dense | None,
    bins: int | None,
    name: str,
    interval: float | Duration | None,
) -> Migratable[Columns]:
    """F and S for a function of batches."""
    here, finest = _among_workers(keys, streams, bins), _finest(bins)
    unit = unit_of(streams[0].scope.domain)
    store = PinningStore(
        lambda apart: BatchStore(name, by, fold, state, pending, finest, None if apart else here, unit)
    )
    return _stateful(control, streams, store, [Wanted(key, None) for key in by], bins, name, interval)


def _finest(bins: int | None) -> int:
    return FINEST if bins is None else bins


def _among_workers(keys: Dense | None, streams: Sequence[Stream[Columns]], bins: int | None) -> Dense | None:
    """Dense keys whose bins begin at as many workers as there are. Where bins begin coarse, each has neighbours."""
    return None if keys is None else replace(keys, workers=1 if bins is None else streams[0].scope.peers)


def _stateful(
    control: Stream[Update],
    streams: Sequence[Stream[Columns]],
    store: PinningStore[K],
    wanted: Sequence[Wanted],
    bins: int | None,
    name: str,
    interval: float | Duration | None,
) -> Migratable[Columns]:
    """F and S around a store of bins in columns."""
    by = [each.key for each in wanted]
    table = store.table
    domain = table.domain if isinstance(table, DenseTable) else None
    home = store.home
    word_of = home.word_of if isinstance(home, ColumnStore) and home.is_spelled else None
    keys = WordKeys(name, table.bins_of, domain, word_of)
    names_of = None if word_of is None else store.names_of

    def make_host(context: Context, shared: Shared[Columns]) -> Callable[[], None]:
        return S(context, shared, len(by), interval, lambda: HeavyKeys(by, names_of)).step

    def make_router(context: Context, shared: Shared[Columns], initial: Arrangement) -> ColumnRouter:
        return ColumnRouter(context, shared, initial, wanted, keys, table)

    first = bins_at_first(streams[0].scope.peers) if bins is None else None
    parts = Assembly(store, make_router, make_host, keys, reports=interval is not None, first=first)
    return assemble(control, streams, _finest(bins), name, parts)


def bins_at_first(workers: int) -> int:
    """How many bins there are at first where nobody says.

    >>> bins_at_first(2), bins_at_first(3), bins_at_first(1000)
    (32, 64, 4096)
    """
    return min(FINEST, 1 << (EACH * workers - 1).bit_length())
