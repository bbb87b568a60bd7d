"""Native stateful operators on columns: an exchange by key, and a table that outlives times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.columns.batch import Columns
from dataflow.columns.pact import ExchangeBinsOfColumns
from dataflow.columns.schema import Schema
from dataflow.errors import ConstructionError
from dataflow.events.moments import ticks
from dataflow.state.durable import DurableStore
from dataflow.state.folds.fold import Fold
from dataflow.state.host import Host
from dataflow.state.kept import Dealt, KeptState
from dataflow.state.looking import StoreLookup
from dataflow.state.stores.batch_store import BatchFold, BatchStore
from dataflow.state.stores.column_store import ColumnStore
from dataflow.state.stores.fold_store import FoldStore, Side
from dataflow.state.stores.join_store import JoinStore
from dataflow.state.stores.spelled import WORD, Spelled, SpelledJoin, with_spelled_keys
from dataflow.state.tables.table import Dense
from dataflow.time.durations import Duration
from dataflow.time.timestamp import unit_of

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

_SEGMENTS = 256  # of a native table: they make growth gradual, and mean nothing else


def state_machine(
    stream: Stream[Columns],
    *,
    key: str | Sequence[str],
    value: str | Sequence[str] | None = None,
    fold: Fold,
    due: Fold | None = None,
    order: Sequence[str] = (),
    keys: Dense | Spelled | None = None,
    name: str = "state_machine",
) -> Stream[Columns]:
    """State by key, changed by a compiled fold: see `dataflow.state.native.state_machine`."""
    return _stateful((stream,), (Side(key, value, fold, order),), due, keys, name)


def expiring(fold: Fold, ttl: int | Duration, due: Fold | None, scope: Scope, name: str) -> Fold:
    """A fold whose keys expire, in the units of a scope's times."""
    if due is not None:
        raise ConstructionError(f"{name}: ttl= and due= do not go together: forget the key in `due`")
    return fold.expiring(ticks(ttl, unit_of(scope.domain), f"{name}: ttl", least=1))


def binary(
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str | Sequence[str],
    right_key: str | Sequence[str] | None = None,
    value: str | Sequence[str] | None = None,
    right_value: str | Sequence[str] | None = None,
    fold: Fold,
    right_fold: Fold,
    due: Fold | None = None,
    keys: Dense | Spelled | None = None,
    name: str = "binary",
) -> Stream[Columns]:
    """Two inputs over one state: see `dataflow.state.native.binary`."""
    sides = (Side(key, value, fold), Side(right_key or key, right_value, right_fold))
    return _stateful((left, right), sides, due, keys, name)


def unary(
    stream: Stream[Columns],
    *,
    key: str,
    fold: BatchFold,
    state: Schema,
    pending: Schema | None = None,
    keys: Dense | None = None,
    name: str = "unary",
) -> Stream[Columns]:
    """State by key that a function of whole batches changes: see `dataflow.state.native.unary`."""
    unit = unit_of(stream.scope.domain)
    return native((stream,), (key,), BatchStore(name, (key,), fold, state, pending, _SEGMENTS, keys, unit), name)


def join(
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str | Sequence[str],
    right_key: str | Sequence[str] | None = None,
    value: Sequence[str] = (),
    right_value: Sequence[str] = (),
    unique: str | None = None,
    keys: Spelled | None = None,
    name: str = "join",
) -> Stream[Columns]:
    """Every pair of records with equal keys: see `dataflow.state.native.join`."""
    if isinstance(key, str) and isinstance(right_key, str | None) and keys is None:
        by = (key, right_key or key)
        return native((left, right), by, JoinStore(name, by, (value, right_value), unique, _SEGMENTS), name)
    spelled = SpelledJoin(name, (key, right_key or key), (value, right_value), keys)
    store = JoinStore(name, (WORD, WORD), spelled.values, unique, _SEGMENTS)
    return spelled.behind(native(spelled.before((left, right)), (WORD, WORD), store, name))


def _stateful(
    streams: Sequence[Stream[Columns]],
    sides: Sequence[Side],
    due: Fold | None,
    keys: Dense | Spelled | None,
    name: str,
) -> Stream[Columns]:
    streams, sides, due, dense = with_spelled_keys(streams, sides, due, keys, name)
    return native(streams, [side.by for side in sides], FoldStore(name, sides, due, _SEGMENTS, dense), name)


def native(streams: Sequence[Stream[Columns]], keys: Sequence[str], store: ColumnStore, name: str) -> Stream[Columns]:
    """An operator that hosts a store, behind an exchange by the key of each stream."""
    scope = streams[0].scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    builder = OperatorBuilder(scope, name)
    table = store.table
    for stream, key in zip(streams, keys, strict=True):
        by = table.bins - 1 if table.dense else table.shift
        builder.add_input(stream, ExchangeBinsOfColumns(key, table.bins, by, table.dense))
    builder.add_output(initial=scope.dataflow.recovers, entry=False)
    lookup = StoreLookup(store, lambda key: int(table.bins_of(store.word_of(key))[0]))
    scope.dataflow.hooks.register(name, DurableStore(store), lookup=lookup)
    kept = KeptState(name, store, Dealt(scope.worker, scope.peers), scope.dataflow)

    def make(context: Context) -> Step:
        context.stay("use megaphone's operator of the same name, whose state can move")
        return Host(context, store, context.inputs, kept=kept).step

    (out,) = builder.build(make, frontier=True, keeps=Keeps.SHARE)
    return out
