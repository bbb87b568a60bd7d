"""`unary`, `binary` and `state_machine`: stateful operators that can be migrated (Listing 1), each an F and an S.

Each works on rows, where `key` is a function of a record and state is any Python object, or on columns, where `key`
names a column and state is typed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.state.stores.row_folds import RightPostponer, folding, one_input
from dataflow.state.stores.row_store import Postponer
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from megaphone.assembly import INTERVAL, Migratable
from megaphone.router import rows

if TYPE_CHECKING:
    from dataflow.state.folds.fold import Fold
    from dataflow.state.tables.table import Dense


def unary(
    control: Stream[Any],
    stream: Stream[Any],
    *,
    key: Callable[[Any], Any] | str,
    fold: Callable[..., Any],
    bins: int = 256,
    state: Callable[[], Any] | Mapping[str, Any] | None = None,
    by_key: bool = False,
    pending: Mapping[str, Any] | None = None,
    keys: Dense | None = None,
    name: str = "unary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable:
    """A stateful operator whose bins of keys move as the control stream says.

    Rows: at each time, in the order of times, `fold(time, records, state, notificator)` is called for each bin that has
    records, and everything it yields comes out at that time. `state` is the bin's, made by the function `state` (a
    dictionary unless you say) and shared by all keys of the bin: keep things by key. `notificator.notify_at(later,
    record)` has a record presented again. `by_key=True` promises that the state is a dictionary with an entry for each
    key and nothing else, and that records that are put off have their key, too: then single keys can be pinned.

    Columns (`key` is a column's name): `fold(time, batch, state, notificator)` is called once per time with all records
    of this worker, and returns columns or None. `state` is a table, typed by the mapping `state`; `notificator`
    post-dates records with the columns of `pending`, and has those that are due now. See `stores.batch_store`.

    `interval`: seconds between reports of statistics by bin; None for none.
    """
    if isinstance(key, str):
        from megaphone.router import columns

        _refuse_rows(name, by_key)
        return columns.unary(control, (stream,), (key,), fold, bins, state, pending, keys, name, interval)
    _refuse_columns(name, pending=pending, keys=keys)

    return rows.stateful(control, (stream,), (key,), bins, state or dict, one_input(fold), name, interval, by_key)


def binary(
    control: Stream[Any],
    left: Stream[Any],
    right: Stream[Any],
    *,
    key: Callable[[Any], Any] | str,
    right_key: Callable[[Any], Any] | str | None = None,
    fold: Callable[..., Any],
    right_fold: Fold | None = None,
    value: str | Sequence[str] | None = None,
    right_value: str | Sequence[str] | None = None,
    due: Fold | None = None,
    bins: int = 256,
    state: Callable[[], Any] | Mapping[str, Any] | None = None,
    by_key: bool = False,
    pending: Mapping[str, Any] | None = None,
    keys: Dense | None = None,
    name: str = "binary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable:
    """The same with two inputs, in the order of their times.

    Rows: `fold(time, left, right, state, notificator, notificator2)`; `notificator` presents records as left ones,
    `notificator2` as right ones; `by_key` as in `unary`.

    Columns: either two compiled folds, `fold` for records of the left and `right_fold` for those of the right, over one
    state, with `due` for what they post-date (at one time the left ones come first); or one function of batches,
    `fold(time, left, right, state, notificator)`.
    """
    if isinstance(key, str):
        from megaphone.router import columns

        _refuse_rows(name, by_key)
        other = key if right_key is None else right_key
        if not isinstance(other, str):
            raise ConstructionError(f"{name}: both keys must be names of columns, or both functions of a record")
        if right_fold is None:
            return columns.unary(control, (left, right), (key, other), fold, bins, state, pending, keys, name, interval)
        sides = ((key, value, fold, ()), (other, right_value, right_fold, ()))
        return columns.folded(control, (left, right), sides, due, bins, keys, name, interval)
    _refuse_columns(
        name, right_fold=right_fold, value=value, right_value=right_value, due=due, pending=pending, keys=keys
    )

    def apply(time: Time, records: list[list[Any]], state: Any, postponer: Postponer) -> Any:
        return fold(time, records[0], records[1], state, postponer, RightPostponer(postponer))

    by = (key, right_key or key)
    return rows.stateful(control, (left, right), by, bins, state or dict, apply, name, interval, by_key)


def state_machine(
    control: Stream[Any],
    stream: Stream[Any],
    *,
    fold: Callable[..., Any],
    key: str | None = None,
    value: str | Sequence[str] | None = None,
    due: Fold | None = None,
    order: Sequence[str] = (),
    bins: int = 256,
    keys: Dense | None = None,
    name: str = "state_machine",
    interval: float | Duration | None = INTERVAL,
) -> Migratable:
    """State by key.

    Rows, a stream of (key, value) pairs: `fold(key, value, state)` returns the new state and what comes out. A key's
    first state is None; a key whose new state is None is forgotten. The values of a key at one time come in no
    particular order.

    Columns: `key` and `value` name columns, and `fold` is made with `megaphone.fold`. `due` takes what it post-dates;
    `order` names columns by which the records of a time are sorted first.
    """
    if key is not None:
        from megaphone.router import columns

        return columns.folded(control, (stream,), ((key, value, fold, order),), due, bins, keys, name, interval)
    _refuse_columns(name, value=value, due=due, order=order or None, keys=keys)
    by = (operator.itemgetter(0),)
    return rows.stateful(control, (stream,), by, bins, dict, folding(fold), name, interval, by_key=True)


def dense(domain: int) -> Dense:
    """Keys are the integers from 0 up to `domain`, most of which occur: bin = key mod bins, and nothing is hashed."""
    from dataflow.state.tables.table import Dense

    return Dense(domain)


def _refuse_columns(name: str, **given: Any) -> None:
    for option, value in given.items():
        if value is not None:
            raise ConstructionError(f"{name}: {option}= is for columns, where key= is the name of a column")


def _refuse_rows(name: str, by_key: bool) -> None:
    if by_key:
        raise ConstructionError(f"{name}: by_key= is for rows; keys of columns can be pinned as they are")
