"""Migratable operators on rows: records are any objects, and a bin's state is a Python object."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

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
from megaphone.keys.hashing import bin_of, shift_of
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
    name: str = "unary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """One input. `state` makes the state of a bin: a dictionary, unless you say otherwise."""
    return _stateful(control, (stream,), (key,), bins, state or dict, one_input(fold), name, interval, by_key)


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
    name: str = "binary",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """Two inputs over one state. `right_key` is `key`, unless you say otherwise."""

    def apply(time: Time, records: list[list[Record]], state: Held, postponer: Postponer) -> Iterable[Out]:
        return fold(time, records[0], records[1], state, postponer, RightPostponer(postponer))

    by: tuple[KeyOf, KeyOf] = (key, right_key or key)
    return _stateful(control, (left, right), by, bins, state or dict, apply, name, interval, by_key)


def state_machine(
    control: Stream[Update],
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, Held | None], tuple[Held | None, Iterable[Out]]],
    ttl: int | Duration | None = None,
    errors: Errors = "raise",
    bins: int = 256,
    name: str = "state_machine",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Out]:
    """State by key, over a stream of (key, value) pairs. `ttl`: a key without a value for so long is forgotten.
    `errors`: "stream" gives a `CheckedMigratable`."""
    by = (operator.itemgetter(0),)
    apply = machine(fold, ttl, errors, stream.scope, name)
    out = _stateful(control, (stream,), by, bins, dict, apply, name, interval, by_key=True)
    return CheckedMigratable(separate(out, name), out.handle) if errors == "stream" else out


def _stateful(
    control: Stream[Update],
    streams: Sequence[Stream[Record]],
    keys: Sequence[KeyOf],
    bins: int,
    state: Callable[[], State],
    apply: Apply,
    name: str,
    interval: float | Duration | None,
    by_key: bool,
) -> Migratable[Record]:
    """F and S for rows. `by_key`: a bin's state is a dictionary by key, so that single keys can be pinned."""
    _require_functions(name, keys, state)
    if by_key and not isinstance(made := state(), dict):
        kind = type(made).__name__
        raise ConstructionError(f"{name}: with by_key=True the state is a dictionary by key, not a {kind}")
    shift = shift_of(bins)
    space = (RowKeys if by_key else NoKeys)(name, shift)
    store = RowStore(name, bins, keys, lambda key: bin_of(key, shift), state, apply)

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
