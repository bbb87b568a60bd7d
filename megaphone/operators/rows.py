"""Migratable operators on rows: records are any objects, and a bin's state is a Python object."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.operators.failing import Errors, separate
from dataflow.state.native_rows import machine
from dataflow.state.stores.row_folds import RightPostponer, one_input
from dataflow.state.stores.row_store import Apply, KeyOf, Postponer, Rows, RowStore
from dataflow.state.values import Key, Record, State
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from megaphone.assembly import INTERVAL, Assembly, CheckedMigratable, Migratable, assemble
from megaphone.control.arranging import Arrangement
from megaphone.control.updates import Update
from megaphone.host.s import S
from megaphone.keys.hashing import OwnBins, checked_bins, shift_of, spread_over
from megaphone.keys.keyspace import NoKeys, RowKeys
from megaphone.load.tally import HeavyRows
from megaphone.router.routing import Shared
from megaphone.router.rows import RowRouter

In = TypeVar("In")  # records of the (left) input
Right = TypeVar("Right")  # records of the right input
Held = TypeVar("Held")  # the state: of a bin, or of a key in a state machine
Out = TypeVar("Out")  # what comes out
K = TypeVar("K")  # keys of a state machine
V = TypeVar("V")  # and its values


def unary(
    control: Stream[Update],
    stream: Stream[In],
    *,
    key: Callable[[In], Key],
    fold: Callable[[Time, list[In], Held, Postponer], Iterable[Out]],
    state: Callable[[], Held] | None = None,
    by_key: bool = False,
    bins: int = 256,
    bin_of: Callable[[Key], int] | None = None,
    name: str = "unary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """One input. `state` makes the state of a bin: a dictionary, unless you say otherwise. `bin_of`: from a key to its
    bin; hashed, unless you say otherwise."""
    return _stateful(
        control,
        (stream,),
        (key,),
        _partitioned(name, bins, bin_of, by_key),
        state or dict,
        one_input(fold),
        name,
        interval,
    )


def binary(
    control: Stream[Update],
    left: Stream[In],
    right: Stream[Right],
    *,
    key: Callable[[In], Key],
    right_key: Callable[[Right], Key] | None = None,
    fold: Callable[[Time, list[In], list[Right], Held, Postponer, RightPostponer], Iterable[Out]],
    state: Callable[[], Held] | None = None,
    by_key: bool = False,
    bins: int = 256,
    bin_of: Callable[[Key], int] | None = None,
    name: str = "binary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """Two inputs over one state. `right_key` is `key`, unless you say otherwise."""

    def apply(time: Time, records: list[list[Record]], state: Held, postponer: Postponer) -> Iterable[Out]:
        return fold(time, records[0], records[1], state, postponer, RightPostponer(postponer))

    by: tuple[KeyOf, KeyOf] = (key, right_key or key)
    return _stateful(
        control, (left, right), by, _partitioned(name, bins, bin_of, by_key), state or dict, apply, name, interval
    )


def state_machine(
    control: Stream[Update],
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, Held | None], tuple[Held | None, Iterable[Out]]],
    ttl: int | Duration | None = None,
    errors: Errors = "raise",
    bins: int = 256,
    bin_of: Callable[[Key], int] | None = None,
    name: str = "state_machine",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """State by key, over a stream of (key, value) pairs. `ttl`: a key without a value for so long is forgotten.
    `errors`: "stream" gives a `CheckedMigratable`."""
    by = (operator.itemgetter(0),)
    apply = machine(fold, ttl, errors, stream.scope, name)
    out = _stateful(control, (stream,), by, _partitioned(name, bins, bin_of, by_key=True), dict, apply, name, interval)
    return CheckedMigratable(separate(out, name), out.handle) if errors == "stream" else out


class Partitioning(NamedTuple):
    """How many bins there are, and which keys are in which. `keys`: with `by_key`, single ones can be pinned."""

    bins: int
    keys: RowKeys


def _partitioned(name: str, bins: int, bin_of: Callable[[Key], int] | None, by_key: bool) -> Partitioning:
    space = RowKeys if by_key else NoKeys
    if bin_of is not None:
        if not callable(bin_of):
            raise ConstructionError(f"{name}: bin_of is a function from a key to the number of its bin, not {bin_of!r}")
        return Partitioning(bins, space(name, 0, OwnBins(bin_of, bins, name)))
    if checked_bins(bins) & (bins - 1):  # no power of two
        return Partitioning(bins, space(name, 0, spread_over(bins)))
    return Partitioning(bins, space(name, shift_of(bins)))


def _stateful(
    control: Stream[Update],
    streams: Sequence[Stream[Record]],
    keys: Sequence[KeyOf],
    partitioning: Partitioning,
    state: Callable[[], State],
    apply: Apply,
    name: str,
    interval: float | Duration | None,
) -> Migratable[Record]:
    """F and S for rows. If keys can be pinned, a bin's state is a dictionary by key."""
    _require_functions(name, keys, state)
    bins, space = partitioning
    if space.pinnable and not isinstance(made := state(), dict):
        kind = type(made).__name__
        raise ConstructionError(f"{name}: with by_key=True the state is a dictionary by key, not a {kind}")
    store = RowStore(name, bins, keys, space.bin_of, state, apply)

    def make_host(context: Context, shared: Shared[Rows]) -> Callable[[], None]:
        return S(context, shared, len(keys), interval, lambda: HeavyRows(keys)).step

    def make_router(context: Context, shared: Shared[Rows], initial: Arrangement) -> RowRouter:
        return RowRouter(context, shared, initial, keys, space)

    parts = Assembly(store, make_router, make_host, space, reports=interval is not None)
    return assemble(control, streams, bins, name, parts)


def _require_functions(name: str, keys: Sequence[object], state: object) -> None:
    for function, role in (*((key, "key") for key in keys), (state, "state (a function that makes one)")):
        if not callable(function):
            raise ConstructionError(f"{name} needs a function as its {role}, not {function!r}")
