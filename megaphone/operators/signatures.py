"""`unary`, `binary` and `state_machine` as users call them.

Each works on rows, where `key` is a function of a record and state is any Python object, or on columns, where `key`
names a column and state is typed. Each side has its own signature here and its own function in `rows` or `columns`;
what `key` is decides which one is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.state.stores.row_folds import RightPostponer
from dataflow.state.stores.row_store import Postponer
from dataflow.state.values import Key, Record, State
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from megaphone.assembly import CheckedMigratable, Migratable
from megaphone.control.updates import Update
from megaphone.operators import rows
from megaphone.operators.rows import Held, In, K, Out, Right, V

if TYPE_CHECKING:
    from dataflow.columns import Columns
    from dataflow.columns.schema import Schema
    from dataflow.state.folds.fold import Fold
    from dataflow.state.stores.spelled import Spelled
    from dataflow.state.tables.table import Dense
    from megaphone.operators.columns import BatchFold, BatchFold2, Names

_OF_COLUMNS = ("pending", "keys", "right_fold", "value", "right_value", "due", "order")
_OF_FOLDS = ("right_fold", "value", "right_value", "due")


@overload
def unary(
    control: Stream[Update],
    stream: Stream[Columns],
    *,
    key: str,
    fold: BatchFold,
    state: Schema,
    pending: Schema | None = ...,
    keys: Dense | None = ...,
    bins: int | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Columns]: ...


@overload
def unary(
    control: Stream[Update],
    stream: Stream[In],
    *,
    key: Callable[[In], Key],
    fold: Callable[[Time, list[In], Held, Postponer], Iterable[Out]],
    state: Callable[[], Held],
    by_key: bool = ...,
    bins: int = ...,
    bin_of: Callable[[Key], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Out]: ...


@overload
def unary(
    control: Stream[Update],
    stream: Stream[In],
    *,
    key: Callable[[In], Key],
    fold: Callable[[Time, list[In], dict[Key, State], Postponer], Iterable[Out]],
    by_key: bool = ...,
    bins: int = ...,
    bin_of: Callable[[Key], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Out]: ...


def unary(
    control: Stream[Update], stream: Stream[Record], *, key: str | Callable[[Record], Key], **options: Any
) -> Migratable[Record]:
    """A stateful operator whose bins of keys move as the control stream says.

    Rows: at each time, in the order of times, `fold(time, records, state, notificator)` is called for each bin that has
    records, and everything it yields comes out at that time. `state` is the bin's, made by the function `state` (a
    dictionary unless you say) and shared by all keys of the bin: keep things by key. `notificator.notify_at(later,
    record)` has a record presented again. `by_key=True` promises that the state is a dictionary with an entry for each
    key and nothing else, and that records that are put off have their key, too: then single keys can be pinned.

    Columns (`key` is a column's name): `fold(time, batch, state, notificator)` is called once per time with all records
    of this worker, and returns columns or None. `state` is a table, typed by the mapping `state`; `notificator`
    post-dates records with the columns of `pending`, and has those that are due now. See `stores.batch_store`.

    `bins`: how many; of columns a power of two. Without it columns begin with a few bins, which split as need be, and
    rows with 256. `bin_of` (rows): from a key to the number of its bin, such as that of its first letter or of a range;
    the same on every worker and in every run. `interval`: seconds between reports of statistics by bin; None for none.
    """
    if isinstance(key, str):
        from megaphone.operators import columns

        _keep_for_columns("unary", options)
        return columns.unary(control, stream, key=key, **{"state": None, **options})
    _keep_for_rows("unary", options)
    return rows.unary(control, stream, key=key, **options)


@overload
def binary(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str | Sequence[str],
    right_key: str | Sequence[str] | None = ...,
    fold: Fold,
    right_fold: Fold,
    value: Names = ...,
    right_value: Names = ...,
    due: Fold | None = ...,
    keys: Dense | Spelled | None = ...,
    bins: int | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Columns]: ...


@overload
def binary(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    *,
    key: str,
    right_key: str | None = ...,
    fold: BatchFold2,
    state: Schema,
    pending: Schema | None = ...,
    keys: Dense | None = ...,
    bins: int | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Columns]: ...


@overload
def binary(
    control: Stream[Update],
    left: Stream[In],
    right: Stream[Right],
    *,
    key: Callable[[In], Key],
    right_key: Callable[[Right], Key] | None = ...,
    fold: Callable[[Time, list[In], list[Right], Held, Postponer, RightPostponer], Iterable[Out]],
    state: Callable[[], Held],
    by_key: bool = ...,
    bins: int = ...,
    bin_of: Callable[[Key], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Out]: ...


@overload
def binary(
    control: Stream[Update],
    left: Stream[In],
    right: Stream[Right],
    *,
    key: Callable[[In], Key],
    right_key: Callable[[Right], Key] | None = ...,
    fold: Callable[[Time, list[In], list[Right], dict[Key, State], Postponer, RightPostponer], Iterable[Out]],
    by_key: bool = ...,
    bins: int = ...,
    bin_of: Callable[[Key], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Out]: ...


def binary(
    control: Stream[Update],
    left: Stream[Record],
    right: Stream[Record],
    *,
    key: str | Sequence[str] | Callable[[Record], Key],
    **options: Any,
) -> Migratable[Record]:
    """The same with two inputs, in the order of their times.

    Rows: `fold(time, left, right, state, notificator, notificator2)`; `notificator` presents records as left ones,
    `notificator2` as right ones; `by_key` as in `unary`.

    Columns: either two compiled folds, `fold` for records of the left and `right_fold` for those of the right, over one
    state, with `due` for what they post-date (at one time the left ones come first); or one function of batches,
    `fold(time, left, right, state, notificator)`.
    """
    if not callable(key):
        from megaphone.operators import columns

        _keep_for_columns("binary", options)
        if callable(options.get("right_key", key)):
            name = options.get("name", "binary")
            raise ConstructionError(f"{name}: both keys must be names of columns, or both functions of a record")
        if options.get("right_fold") is not None:
            _refuse("binary", options, ("state", "pending"), "a function of batches: a compiled fold declares its own")
            return columns.binary(control, left, right, key=key, **options)
        _refuse("binary", options, _OF_FOLDS, "two compiled folds: say right_fold=, too")
        if not isinstance(key, str):
            name = options.get("name", "binary")
            raise ConstructionError(f"{name}: a function of batches has keys of one column of integers, not {key!r}")
        return columns.binary_batches(control, left, right, key=key, **{"state": None, **options})
    _keep_for_rows("binary", options)
    return rows.binary(control, left, right, key=key, **options)


@overload
def state_machine(
    control: Stream[Update],
    stream: Stream[Columns],
    *,
    key: str | Sequence[str],
    fold: Fold,
    value: Names = ...,
    due: Fold | None = ...,
    order: Sequence[str] = ...,
    keys: Dense | Spelled | None = ...,
    ttl: int | Duration | None = ...,
    bins: int | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Columns]: ...


@overload
def state_machine(
    control: Stream[Update],
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, Held | None], tuple[Held | None, Iterable[Out]]],
    ttl: int | Duration | None = ...,
    errors: Literal["raise"] = ...,
    bins: int = ...,
    bin_of: Callable[[K], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> Migratable[Out]: ...


@overload
def state_machine(
    control: Stream[Update],
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, Held | None], tuple[Held | None, Iterable[Out]]],
    ttl: int | Duration | None = ...,
    errors: Literal["stream"],
    bins: int = ...,
    bin_of: Callable[[K], int] | None = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
) -> CheckedMigratable[Out]: ...


def state_machine(
    control: Stream[Update], stream: Stream[Record], *, key: str | Sequence[str] | None = None, **options: Any
) -> Migratable[Record]:
    """State by key.

    Rows, a stream of (key, value) pairs: `fold(key, value, state)` returns the new state and what comes out. A key's
    first state is None; a key whose new state is None is forgotten. The values of a key at one time come in no
    particular order. `ttl`: a key that has had no value for so long (by the dataflow's time) is forgotten.
    `errors="stream"`: a pair at which the fold raises is passed over, and comes with what was raised on the stream
    `.errors`; the key's state stays as it was, unless the fold has changed it in place.

    Columns: `key` and `value` name columns, and `fold` is made with `megaphone.fold`. A key that is no integer, or of
    several columns, is spelled out (`megaphone.spelled`). `due` takes what the fold post-dates;
    `order` names columns by which the records of a time are sorted first.
    """
    if key is not None:
        from megaphone.operators import columns

        if options.pop("errors", "raise") != "raise":
            name = options.get("name", "state_machine")
            raise ConstructionError(f"{name}: errors= is for rows; a compiled fold cannot go on behind what it raises")
        _keep_for_columns("state_machine", options)
        return columns.state_machine(control, stream, key=key, **options)
    _keep_for_rows("state_machine", options)
    return rows.state_machine(control, stream, **options)


def dense(domain: int) -> Dense:
    """Keys are the integers from 0 up to `domain`, most of which occur: bin = key mod bins, and nothing is hashed."""
    from dataflow.state.tables.table import Dense

    return Dense(domain)


def spelled(bytes: int) -> Spelled:
    """Keys of compiled folds that are no single integer (strings, bytes, dates, several columns) are spelled out in at
    most so many bytes: those of the strings, and eight for each column of anything else. Without it, they are where the
    key has several columns (`key=["country", "city"]`) or a fold declares a column of its output to be the "key", in 21
    bytes for each column."""
    from dataflow.state.stores.spelled import Spelled

    return Spelled(bytes)


def _refuse(operator: str, options: dict[str, Any], refused: Sequence[str], whose: str) -> None:
    """Takes options out that are for others. They may say nothing; ConstructionError if one says something."""
    for option in refused:
        value = options.pop(option, None)
        if value is not None and value != ():
            raise ConstructionError(f"{options.get('name', operator)}: {option}= is for {whose}")


def _keep_for_rows(operator: str, options: dict[str, Any]) -> None:
    _refuse(operator, options, _OF_COLUMNS, "columns, where key= is the name of a column")


def _keep_for_columns(operator: str, options: dict[str, Any]) -> None:
    _refuse(operator, options, ("bin_of",), "rows: bins of columns are found by compiled code")
    if options.pop("by_key", False):
        name = options.get("name", operator)
        raise ConstructionError(f"{name}: by_key= is for rows; keys of columns can be pinned as they are")
