"""`window_join` and `opaque`: operators on several streams whose plan changes while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar, overload

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Context
from dataflow.state.stores.row_store import KeyOf, Rows
from dataflow.state.values import Record
from dataflow.time.durations import Duration
from dataflow.time.timestamp import Checked, Integers
from megaphone.assembly import INTERVAL, Assembly, Migratable, assemble
from megaphone.control.arranging import Arrangement
from megaphone.control.replans import PlanSpace
from megaphone.control.updates import Update
from megaphone.errors import ControlError
from megaphone.host.s import BUDGET, S
from megaphone.keys.hashing import shift_of
from megaphone.keys.keyspace import NoKeys
from megaphone.keys.pins import Keys
from megaphone.load.tally import HeavyRows
from megaphone.plans.bins import BinMaker
from megaphone.plans.general import Opaque, OpaqueBins
from megaphone.plans.join_bin import JoinBins
from megaphone.plans.query import Query
from megaphone.plans.row_store import PlanRowStore
from megaphone.plans.spaces import NamedPlans, TreeSpace
from megaphone.router.routing import Shared
from megaphone.router.rows import RowRouter

In = TypeVar("In")
_BINS = 256


@overload
def window_join(  # type: ignore[overload-overlap]
    control: Stream[Update],
    streams: Mapping[str, Stream[Columns]],
    query: Query,
    *,
    plan: str,
    bins: int | None = ...,
    budget: int = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
    columns: bool | None = ...,
    compiled: bool = ...,
) -> Migratable[Columns]: ...


@overload
def window_join(
    control: Stream[Update],
    streams: Mapping[str, Stream[In]],
    query: Query,
    *,
    plan: str,
    bins: int | None = ...,
    budget: int = ...,
    name: str = ...,
    interval: float | Duration | None = ...,
    columns: bool | None = ...,
    compiled: bool = ...,
) -> Migratable[tuple[In, ...]]: ...


def window_join(
    control: Stream[Update],
    streams: Mapping[str, Stream[In]],
    query: Query,
    *,
    plan: str,
    bins: int | None = None,
    budget: int = BUDGET,
    name: str = "window_join",
    interval: float | Duration | None = INTERVAL,
    columns: bool | None = None,
    compiled: bool = True,
) -> Migratable[Record]:
    """Every combination of a record of each stream that the query allows, at the latest of their times. In rows it is
    the tuple of its records in the order of the query's streams; in columns it has all columns, prefixed by their
    stream (`a_price`).

    `plan`: the join order with which it begins, such as "((a b) c) d"; a `Replan` on the control stream changes it.
    `bins`: 256, unless you say; without a key there is one. `budget`: about how many pairs the background looks at in
    a step, while a plan migrates by HybMig. `columns`: whether records are rows of columns; known where the query's
    `on` names one. `compiled=False` runs predicates over columns uncompiled.
    """
    if not isinstance(query, Query):
        raise ConstructionError(f"{name} needs a megaphone.plans.Query, not {query!r}")
    named = isinstance(query.on, str)
    if columns is None:
        columns = named
    if columns and query.on is not None and not named:
        raise ConstructionError(f"{name}: in columns on= names a column, and it is {query.on!r}")
    if columns:
        from megaphone.operators.joining_columns import window_join_columns  # which compiles: rows do without

        return window_join_columns(control, streams, query, plan, bins, budget, name, interval, compiled)
    if named:
        raise ConstructionError(
            f"{name}: on={query.on!r} names a column, and this joins rows: give a function or the position of a field"
        )
    tree = query.plan(plan)
    maker = JoinBins(query, tree)
    return _planned(control, streams, maker, query.key, bins, TreeSpace(name, query, tree), budget, name, interval)


def opaque(
    control: Stream[Update],
    streams: Mapping[str, Stream[In]],
    plans: Opaque,
    *,
    plan: str,
    bins: int | None = None,
    budget: int = BUDGET,
    name: str = "opaque",
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Record]:
    """What a plan gives, of which nothing is known but its reach. A `Replan` changes it for another of the same
    results. `plan`: the name of the first one. `budget`: how many records the background feeds to a new plan in a step.
    """
    if not isinstance(plans, Opaque):
        raise ConstructionError(f"{name} needs a megaphone.plans.Opaque, not {plans!r}")
    if plan not in plans.plans:
        raise ConstructionError(f"{name}: there is no plan {plan!r}: there are {', '.join(plans.plans)}")
    maker = OpaqueBins(plans, plan)
    return _planned(control, streams, maker, plans.key, bins, NamedPlans(name, plans, plan), budget, name, interval)


def _planned(
    control: Stream[Update],
    streams: Mapping[str, Stream[In]],
    maker: BinMaker,
    keyed: KeyOf | None,
    bins: int | None,
    space: PlanSpace,
    budget: int,
    name: str,
    interval: float | Duration | None,
) -> Migratable[Record]:
    """F and S for rows with plans."""
    inputs = named_inputs(name, streams, maker.streams)
    count = bins_of_plan(name, bins, keyed is not None)
    if type(budget) is not int or budget < 1:
        raise ConstructionError(f"{name}: a budget is a positive number, not {budget!r}")
    by: Sequence[KeyOf] = [keyed or _no_key] * len(inputs)
    store = PlanRowStore(name, count, maker)
    keys = _KeysOfAPlan(name, shift_of(count))

    def make_host(context: Context, shared: Shared[Rows]) -> Callable[[], None]:
        return S(context, shared, len(by), interval, lambda: HeavyRows(by), budget).step

    def make_router(context: Context, shared: Shared[Rows], initial: Arrangement) -> RowRouter:
        return RowRouter(context, shared, initial, by, keys)

    parts = Assembly(store, make_router, make_host, keys, interval is not None, space)
    return assemble(control, inputs, count, name, parts)


def _no_key(record: Record) -> None:
    """The key of records that have none."""


def named_inputs(name: str, streams: Mapping[str, Stream[In]], names: Sequence[str]) -> list[Stream[In]]:
    """The streams in the order of their names."""
    if set(streams) != set(names):
        given = ", ".join(map(str, streams))
        raise ConstructionError(f"{name} needs a stream for each of {', '.join(names)}, by name, and got {given}")
    inputs = [streams[each] for each in names]
    scope = inputs[0].scope
    domain = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
    if not isinstance(domain, Integers):
        raise ConstructionError(
            f"{name}: a window is a number of times, so times must be integers, and those of {scope.title} are not"
        )
    return inputs


def bins_of_plan(name: str, bins: int | None, has_key: bool) -> int:
    if has_key:
        count = _BINS if bins is None else bins
        shift_of(count)  # which refuses what is no power of two
        return count
    if bins not in (None, 1):
        raise ConstructionError(f"{name}: without a key (on=) there is one bin, not {bins}")
    return 1


class _KeysOfAPlan(NoKeys):
    """A key of a plan has its state in several places of its bin, and cannot leave it."""

    def check(self, keys: Keys) -> NoReturn:
        raise no_pins(self._name)


def no_pins(name: str) -> ControlError:
    """What is said to those who pin a key of a plan."""
    return ControlError(f"{name}: no key can be pinned: a plan's keys stay in their bins. Move a bin instead")
