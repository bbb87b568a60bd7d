"""Native stateful operators: state by key that stays on its worker, behind an exchange.

Each works on rows, where `key` is a function of a record and state is any Python object, or on columns, where `key`
names a column and state is typed. The parameters are those of `megaphone` without the control stream: a query that
takes its operators as arguments runs on either. What is in the state goes through the same door for both (`store`),
so native state can be looked at, copied and put into another store, too.

Operators on columns are imported when they are first used: rows need no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, overload

from dataflow.columns.batch import Columns
from dataflow.columns.schema import Schema
from dataflow.errors import ConstructionError
from dataflow.state import native_rows
from dataflow.state.native_rows import K, R, S, V
from dataflow.state.stores.row_store import Postponer
from dataflow.state.values import Value
from dataflow.time.durations import Duration
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.operators.failing import CheckedStream
    from dataflow.state.folds.fold import Fold
    from dataflow.state.stores.batch_store import BatchFold
    from dataflow.state.stores.spelled import Spelled
    from dataflow.state.tables.table import Dense


@overload
def state_machine(
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, S | None], tuple[S | None, Iterable[R]]],
    ttl: int | Duration | None = ...,
    errors: Literal["raise"] = ...,
    name: str = ...,
) -> Stream[R]: ...


@overload
def state_machine(
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, S | None], tuple[S | None, Iterable[R]]],
    ttl: int | Duration | None = ...,
    errors: Literal["stream"],
    name: str = ...,
) -> CheckedStream[R]: ...


@overload
def state_machine(
    stream: Stream[Columns],
    *,
    key: str | Sequence[str],
    value: str | Sequence[str] | None = None,
    fold: Fold,
    due: Fold | None = None,
    order: Sequence[str] = (),
    keys: Dense | Spelled | None = None,
    ttl: int | Duration | None = ...,
    name: str = ...,
) -> Stream[Columns]: ...


def state_machine(
    stream: Stream[Value],
    *,
    fold: Callable[..., Value],
    key: str | Sequence[str] | None = None,
    value: str | Sequence[str] | None = None,
    due: Fold | None = None,
    order: Sequence[str] = (),
    keys: Dense | Spelled | None = None,
    ttl: int | Duration | None = None,
    errors: Literal["raise", "stream"] = "raise",
    name: str = "state_machine",
) -> Stream[Value]:
    """State by key.

    Rows, a stream of (key, value) pairs: `fold(key, value, state)` returns the new state and what comes out. A key's
    first state is None; a key whose new state is None is forgotten. The values of a key at one time come in no
    particular order. `ttl`: a key that has had no value for so long (by the dataflow's time) is forgotten.
    `errors="stream"`: a pair at which the fold raises is passed over, and comes with what was raised on the stream
    `.errors`; the key's state stays as it was, unless the fold has changed it in place.

    Columns: `key` and `value` name columns, and `fold` (made with `megaphone.fold`) is called for each record, `due`
    for what it post-dates. A key that is no integer, or of several columns, is spelled out: see `megaphone.spelled`.
    `order` names columns by which the records of one time are sorted first; without it their order is not defined.
    """
    if key is None:
        _refuse_columns(name, value=value, due=due, order=order or None, keys=keys)
        return native_rows.state_machine(stream, fold=fold, ttl=ttl, errors=errors, name=name)
    if errors != "raise":
        raise ConstructionError(f"{name}: errors= is for rows; a compiled fold cannot go on behind what it raises")
    from dataflow.state import native_columns
    from dataflow.state.folds.fold import Fold

    if not isinstance(fold, Fold):
        raise ConstructionError(f"{name}: columns need a fold made with megaphone.fold(...), not {fold!r}")
    if ttl is not None:
        fold = native_columns.expiring(fold, ttl, due, stream.scope, name)
    return native_columns.state_machine(
        stream, key=key, value=value, fold=fold, due=due, order=order, keys=keys, name=name
    )


@overload
def unary(
    stream: Stream[V],
    *,
    key: Callable[[V], K],
    fold: Callable[[Time, list[V], S, Postponer], Iterable[R]],
    state: Callable[[], S] = ...,
    name: str = ...,
) -> Stream[R]: ...


@overload
def unary(
    stream: Stream[Columns],
    *,
    key: str,
    fold: BatchFold,
    state: Schema,
    pending: Schema | None = None,
    keys: Dense | None = None,
    name: str = ...,
) -> Stream[Columns]: ...


def unary(
    stream: Stream[Value],
    *,
    key: Callable[[Value], Value] | str,
    fold: Callable[..., Value],
    state: Callable[[], Value] | Schema | None = None,
    pending: Schema | None = None,
    keys: Dense | None = None,
    name: str = "unary",
) -> Stream[Value]:
    """State that a function of many records changes.

    Rows: at each time, in the order of times, `fold(time, records, state, notificator)` is called for each bin of keys
    that has records, and everything it yields comes out at that time. `state` is the bin's, made by the function
    `state` (a dictionary unless you say) and shared by all keys of the bin: keep things by key.
    `notificator.notify_at(later, record)` has a record presented again.

    Columns: `fold(time, batch, state, notificator)` is called once per time with all records of this worker, and
    returns columns or None. `state` is a table, typed by the mapping `state`; `notificator` post-dates records with the
    columns of `pending`, and has those that are due now. See `dataflow.state.stores.batch_store`.
    """
    if not isinstance(key, str):
        _refuse_columns(name, pending=pending, keys=keys)
        if state is not None and not callable(state):
            raise ConstructionError(f"{name}: on rows, state is a function that makes one, not {state!r}")
        return native_rows.unary(stream, key=key, fold=fold, state=state or dict, name=name)
    from dataflow.state import native_columns

    if state is None or callable(state):
        raise ConstructionError(f"{name}: say what its state is, such as state={{'count': 'i8'}}")
    return native_columns.unary(stream, key=key, fold=fold, state=state, pending=pending, keys=keys, name=name)


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
    """Two inputs of columns over one state, in the order of times; at one time the left one's records come first."""
    from dataflow.state import native_columns

    return native_columns.binary(
        left, right, key=key, right_key=right_key, value=value, right_value=right_value, fold=fold,
        right_fold=right_fold, due=due, keys=keys, name=name,
    )  # fmt: skip


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
    """Every pair of records of columns with equal keys, whenever they come: `key` and the value columns of both. See
    `dataflow.state.stores.join_store`. With `keys=megaphone.spelled(21)`, or several key columns, keys may be strings,
    bytes, dates and so on."""
    from dataflow.state import native_columns

    return native_columns.join(
        left, right, key=key, right_key=right_key, value=value, right_value=right_value, unique=unique, keys=keys,
        name=name,
    )  # fmt: skip


def _refuse_columns(name: str, **given: object) -> None:
    """What only columns have makes no sense with rows."""
    wrong = [option for option, value in given.items() if value is not None]
    if wrong:
        raise ConstructionError(f"{name}: {wrong[0]}= is for columns, where key= is the name of one")
