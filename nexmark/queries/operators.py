"""The two sets of stateful operators that a query is given: native ones, and those that migrate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Required, TypeAlias, TypedDict, Unpack

import megaphone
from dataflow import Stream
from dataflow.columns import Columns
from dataflow.columns.schema import Schema
from dataflow.state import native_columns
from dataflow.state.folds.fold import Fold
from dataflow.state.stores.batch_store import BatchNotificator
from dataflow.state.tables.table import Table
from megaphone.assembly import Migratable
from megaphone.control.updates import Update
from nexmark.events.kernels import Column

Made: TypeAlias = Columns | Mapping[str, Column]  # what a function of a batch gives
BatchFold: TypeAlias = Callable[[int, Columns, Table, BatchNotificator], Made | None]


class Folding(TypedDict, total=False):
    """State by key that a fold changes record by record: the options of `state_machine`."""

    key: Required[str]
    value: Required[str | Sequence[str]]
    fold: Required[Fold]
    due: Fold  # takes what `fold` post-dates
    order: Sequence[str]  # columns by which the records of a time are sorted first
    name: Required[str]


class FoldingBoth(TypedDict, total=False):
    """The same for two inputs that share their state: the options of `binary`."""

    key: Required[str]
    value: Required[str | Sequence[str]]
    fold: Required[Fold]
    right_key: Required[str]
    right_value: Required[str | Sequence[str]]
    right_fold: Required[Fold]
    due: Fold
    name: Required[str]


class Batching(TypedDict, total=False):
    """State by key that a function changes batch by batch: the options of `unary`."""

    key: Required[str]
    fold: Required[BatchFold]
    state: Required[Schema]
    pending: Schema  # the columns of what `fold` post-dates
    name: Required[str]


class Joining(TypedDict):
    """The options of `join`."""

    key: str
    value: Sequence[str]
    right_key: str
    right_value: Sequence[str]
    unique: str  # the side on which a key occurs once
    name: str


class Operators(Protocol):
    """What a query needs."""

    def stateless(
        self, stream: Stream[Columns], key: str, function: Callable[[Columns], Made], name: str
    ) -> Stream[Columns]:
        """`function(batch)`, at the worker that the key names if that is part of the set."""

    def state_machine(self, stream: Stream[Columns], **options: Unpack[Folding]) -> Stream[Columns]:
        """State by key, one input."""

    def binary(
        self, left: Stream[Columns], right: Stream[Columns], **options: Unpack[FoldingBoth]
    ) -> Stream[Columns]:
        """State by key, two inputs."""

    def unary(self, stream: Stream[Columns], **options: Unpack[Batching]) -> Stream[Columns]:
        """State by key, a function of batches."""

    def join(self, left: Stream[Columns], right: Stream[Columns], **options: Unpack[Joining]) -> Stream[Columns]:
        """Pairs of records with equal keys, whenever they come."""


class NativeOperators:
    """An exchange and a table. A query without state needs neither."""

    state_machine = staticmethod(native_columns.state_machine)
    binary = staticmethod(native_columns.binary)
    unary = staticmethod(native_columns.unary)
    join = staticmethod(native_columns.join)

    def stateless(
        self, stream: Stream[Columns], key: str, function: Callable[[Columns], Made], name: str
    ) -> Stream[Columns]:
        return stream.columns.map(function, name)


class MigratableOperators:
    """F and S, all on one control stream. `made` has the operators, in their order, for controllers."""

    def __init__(self, control: Stream[Update], bins: int) -> None:
        self._control = control
        self._bins = bins
        self.made: list[Migratable] = []

    def stateless(
        self, stream: Stream[Columns], key: str, function: Callable[[Columns], Made], name: str
    ) -> Stream[Columns]:
        def fold(time: int, batch: Columns, state: Table, notificator: BatchNotificator) -> Made | None:
            return function(batch) if len(batch) else None

        return self.unary(stream, key=key, fold=fold, state={}, name=name)

    def state_machine(self, stream: Stream[Columns], **options: Unpack[Folding]) -> Stream[Columns]:
        return self._keep(megaphone.state_machine(self._control, stream, bins=self._bins, **options))

    def binary(
        self, left: Stream[Columns], right: Stream[Columns], **options: Unpack[FoldingBoth]
    ) -> Stream[Columns]:
        return self._keep(megaphone.binary(self._control, left, right, bins=self._bins, **options))

    def unary(self, stream: Stream[Columns], **options: Unpack[Batching]) -> Stream[Columns]:
        return self._keep(megaphone.unary(self._control, stream, bins=self._bins, **options))

    def join(self, left: Stream[Columns], right: Stream[Columns], **options: Unpack[Joining]) -> Stream[Columns]:
        return self._keep(megaphone.join(self._control, left, right, bins=self._bins, **options))

    def _keep(self, made: Migratable) -> Stream[Columns]:
        self.made.append(made)
        return made
