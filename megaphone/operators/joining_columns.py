"""`window_join` on columns. Imported on demand, since it compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.state.folds.fold import FoldError
from dataflow.state.folds.predicates import check_filter
from dataflow.state.store import Key, Numbers, Store
from dataflow.time.durations import Duration
from megaphone.assembly import Assembly, Migratable, assemble
from megaphone.control.arranging import Arrangement
from megaphone.control.updates import Update
from megaphone.host.s import S
from megaphone.keys.keyspace import WordKeys
from megaphone.keys.pinning import PinningStore
from megaphone.keys.pins import Keys
from megaphone.load.heavy import HeavyKeys
from megaphone.operators.joining import bins_of_plan, named_inputs, no_pins
from megaphone.plans.columns.pairs import PairStore
from megaphone.plans.columns.store import PlanColumnStore
from megaphone.plans.query import Query
from megaphone.plans.spaces import TreeSpace
from megaphone.router.columns import ColumnRouter, KeylessRouter, Wanted
from megaphone.router.routing import Shared

In = TypeVar("In")


def _check_predicates(name: str, query: Query) -> None:
    """Refuses what cannot be compiled, as far as that is known before records come."""
    for pair, predicate in query.where.items():
        try:
            check_filter(predicate)
        except FoldError as error:
            raise ConstructionError(
                f"{name}: the predicate of {' and '.join(pair)}: {error}; or say compiled=False, which is slow"
            ) from None


def window_join_columns(
    control: Stream[Update],
    streams: Mapping[str, Stream[In]],
    query: Query,
    plan: str,
    bins: int | None,
    budget: int,
    name: str,
    interval: float | Duration | None,
    compiled: bool,
) -> Migratable[Columns]:
    """F and S for windowed joins in columns."""
    inputs = named_inputs(name, streams, query.streams)
    key = query.on if isinstance(query.on, str) else None
    count = bins_of_plan(name, bins, key is not None)
    if key is not None and count < 2:
        raise ConstructionError(f"{name}: joins of columns have two bins at least, not {count}")
    if type(budget) is not int or budget < 1:
        raise ConstructionError(f"{name}: a budget is a positive number, not {budget!r}")
    tree = query.plan(plan)
    if compiled:
        _check_predicates(name, query)
    store: Store[Columns]
    home: PlanColumnStore
    if key is not None and len(inputs) == 2:
        both = PinningStore(lambda apart: PairStore(name, count, query, compiled))
        store, home = both, both.home
        keys = WordKeys(name, home.bins_of)
    else:
        store = home = PlanColumnStore(name, count, query, tree, compiled)
        keys = WordsOfAPlan(name, home.bins_of)
    wanted = [Wanted(key or "", None) for _ in inputs]
    make = ColumnRouter if key is not None else KeylessRouter

    def make_host(context: Context, shared: Shared[Columns]) -> Callable[[], None]:
        heavy = _Nothing if key is None else lambda: HeavyKeys([key] * len(inputs))
        return S(context, shared, len(inputs), interval, heavy, budget).step

    def make_router(context: Context, shared: Shared[Columns], initial: Arrangement) -> ColumnRouter:
        return make(context, shared, initial, wanted, keys, home)

    parts = Assembly(store, make_router, make_host, keys, interval is not None, TreeSpace(name, query, tree))
    return assemble(control, inputs, count, name, parts)


class WordsOfAPlan(WordKeys):
    """A key of a plan has its state in several places of its bin, and cannot leave it."""

    pinnable = False

    def check(self, keys: Keys) -> NoReturn:
        raise no_pins(self._name)


class _Nothing:
    """Heavy keys, where there are no keys."""

    def watch(self, batches: Sequence[Sequence[Columns]]) -> None:
        """Nothing to see."""

    def take(self) -> tuple[Numbers, Numbers, Numbers]:
        """None."""
        return (np.empty(0, np.int64),) * 3

    def names(self, keys: Sequence[Key] | Numbers) -> Sequence[Key]:
        """None."""
        return ()
