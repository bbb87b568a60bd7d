"""Native stateful operators on rows: an exchange that gives each record the bin of its key, and a store of bins."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder, require_callable
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.binned import Binned
from dataflow.channels.pact import Batch, Pact
from dataflow.errors import ConstructionError
from dataflow.events.moments import ticks
from dataflow.operators.failing import Errors, guarded, require_errors, separate
from dataflow.state.arrays import Words
from dataflow.state.binning import MANY, Binning, bin_of, shift_of
from dataflow.state.durable import DurableStore
from dataflow.state.host import Host
from dataflow.state.kept import Dealt, KeptState
from dataflow.state.looking import StoreLookup
from dataflow.state.stores.row_folds import expiring, folding, one_input
from dataflow.state.stores.row_store import Apply, KeyOf, Postponer, RowBatch, Rows, RowStore
from dataflow.state.values import Record
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from dataflow.time.timestamp import unit_of

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

BINS = 256  # of a native store: they mean nothing but the unit in which state can be looked at and saved

K = TypeVar("K")  # of keys
V = TypeVar("V")  # of values, or of records
S = TypeVar("S")  # of states
R = TypeVar("R")  # of what comes out


class ExchangeBins(Pact):
    """Each record goes, with the bin of its key, to the worker that has the bin: bin mod workers, as Megaphone deals
    bins out at first."""

    name = "exchange of bins"
    validates = True  # one worker needs the bins as well

    def __init__(self, key: KeyOf, bins: int) -> None:
        self._binning = Binning(key, shift_of(bins))
        self._bins = bins

    def split(self, batch: Batch, peers: int) -> Sequence[RowBatch]:
        if len(batch) >= MANY * peers:
            records = batch if isinstance(batch, list) else list(batch)
            return sort_by_bins(records, self._binning.numbers(records), self._bins, peers)
        parts: list[Rows] = [[] for _ in range(peers)]
        for pair in zip(self._binning.bins(batch), batch, strict=True):
            parts[pair[0] % peers].append(pair)
        return parts


def sort_by_bins(records: list[Record], numbers: Words, bins: int, peers: int) -> list[Binned]:
    """The parts of many records by the owners of their bins (bin mod workers), each in the order of bins. Records of
    one bin stay in their order.

    >>> [list(part.groups()) for part in sort_by_bins(list("abcd"), np.array([2, 1, 0, 2], np.uint64), 4, 2)]
    [[(0, ['c']), (2, ['a', 'd'])], [(1, ['b'])]]
    """
    owned = numbers.astype(np.int64)
    ranks = owned % peers * bins + owned
    order = np.argsort(ranks.astype(np.uint16) if bins * peers <= 1 << 16 else ranks, kind="stable")
    ranks = ranks[order]
    ends = np.append(np.flatnonzero(ranks[1:] != ranks[:-1]) + 1, len(ranks))  # of groups of one bin
    found = ranks[ends - 1]
    sorted_records = list(map(records.__getitem__, order.tolist()))
    limits = np.searchsorted(found, np.arange(peers + 1) * bins).tolist()  # by owner, its groups
    parts, start = [], 0
    for first, last in itertools.pairwise(limits):
        end = int(ends[last - 1]) if last > first else start
        part = sorted_records[start:end] if peers > 1 else sorted_records
        parts.append(Binned(part, (found[first:last] % bins).tolist(), (ends[first:last] - start).tolist()))
        start = end
    return parts


def state_machine(
    stream: Stream[tuple[K, V]],
    *,
    fold: Callable[[K, V, S | None], tuple[S | None, Iterable[R]]],
    ttl: int | Duration | None = None,
    errors: Errors = "raise",
    name: str = "state_machine",
) -> Stream[R]:
    """State by key over a stream of (key, value) pairs: see `dataflow.state.native.state_machine`."""
    require_callable(fold, name, "fold")
    out: Stream[R] = _native(stream, operator.itemgetter(0), dict, machine(fold, ttl, errors, stream.scope, name), name)
    return separate(out, name) if errors == "stream" else out


def machine(
    fold: Callable[[K, V, S | None], tuple[S | None, Iterable[R]]],
    ttl: int | Duration | None,
    errors: Errors,
    scope: Scope,
    name: str,
) -> Apply:
    """The fold of a state machine, whose keys may expire, and which may give `FailedRecord` among its results."""
    require_errors(errors, name)
    if errors == "stream":
        fold = guarded(fold)
    if ttl is None:
        return folding(fold)
    return expiring(fold, ticks(ttl, unit_of(scope.domain), f"{name}: ttl", least=1))


def unary(
    stream: Stream[V],
    *,
    key: Callable[[V], K],
    fold: Callable[[Time, list[V], S, Postponer], Iterable[R]],
    state: Callable[[], S],
    name: str = "unary",
) -> Stream[R]:
    """State by bin that a function of a bin's records changes: see `dataflow.state.native.unary`."""
    for function, role in ((key, "key"), (fold, "fold"), (state, "state (a function that makes one)")):
        require_callable(function, name, role)
    return _native(stream, key, state, one_input(fold), name)


def _native(stream: Stream[V], key: KeyOf, state: Callable[[], object], apply: Apply, name: str) -> Stream[R]:
    scope = stream.scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    shift = shift_of(BINS)
    store = RowStore(name, BINS, (key,), lambda key: bin_of(key, shift), state, apply)
    builder = OperatorBuilder(scope, name)
    builder.add_input(stream, ExchangeBins(key, BINS))
    builder.add_output(initial=scope.dataflow.recovers, entry=False)
    lookup = StoreLookup(store, lambda key: bin_of(key, shift))
    scope.dataflow.hooks.register(name, DurableStore(store), lookup=lookup)
    kept = KeptState(name, store, Dealt(scope.worker, scope.peers), scope.dataflow)

    def make(context: Context) -> Step:
        context.stay("use megaphone's operator of the same name, whose state can move")
        return Host(context, store, context.inputs, kept=kept).step

    (out,) = builder.build(make, frontier=True, keeps=Keeps.SHARE)
    return out
