"""The two sets of stateful operators that a query is given: native ones, and those that migrate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import megaphone
from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state import native as stateful


class Operators(Protocol):
    """What a query needs. Signatures are those of dataflow.state.native."""

    def stateless(self, stream: Stream[Any], key: str, function: Callable[[Columns], Any], name: str) -> Stream[Any]:
        """`function(batch)`, at the worker that the key names if that is part of the set."""

    def state_machine(self, stream: Stream[Any], **options: Any) -> Stream[Any]:
        """State by key, one input."""

    def binary(self, left: Stream[Any], right: Stream[Any], **options: Any) -> Stream[Any]:
        """State by key, two inputs."""

    def unary(self, stream: Stream[Any], **options: Any) -> Stream[Any]:
        """State by key, a function of batches."""

    def join(self, left: Stream[Any], right: Stream[Any], **options: Any) -> Stream[Any]:
        """Pairs of records with equal keys, whenever they come."""


class Native:
    """An exchange and a table. A query without state needs neither."""

    state_machine = staticmethod(stateful.state_machine)
    binary = staticmethod(stateful.binary)
    unary = staticmethod(stateful.unary)
    join = staticmethod(stateful.join)

    def stateless(self, stream: Stream[Any], key: str, function: Callable[[Columns], Any], name: str) -> Stream[Any]:
        return stream.columns.map(function, name)


class Migratable:
    """F and S, all on one control stream. `made` has the operators, in their order, for controllers."""

    def __init__(self, control: Stream[Any], bins: int) -> None:
        self._control = control
        self._bins = bins
        self.made: list[Any] = []

    def stateless(self, stream: Stream[Any], key: str, function: Callable[[Columns], Any], name: str) -> Stream[Any]:
        def fold(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
            return function(batch) if len(batch) else None

        return self._keep(megaphone.unary, stream, key=key, fold=fold, state={}, name=name)

    def state_machine(self, stream: Stream[Any], **options: Any) -> Stream[Any]:
        return self._keep(megaphone.state_machine, stream, **options)

    def binary(self, left: Stream[Any], right: Stream[Any], **options: Any) -> Stream[Any]:
        return self._keep(megaphone.binary, left, right, **options)

    def unary(self, stream: Stream[Any], **options: Any) -> Stream[Any]:
        return self._keep(megaphone.unary, stream, **options)

    def join(self, left: Stream[Any], right: Stream[Any], **options: Any) -> Stream[Any]:
        return self._keep(megaphone.join, left, right, **options)

    def _keep(self, operator: Callable[..., Any], *streams: Stream[Any], **options: Any) -> Stream[Any]:
        made = operator(self._control, *streams, bins=self._bins, **options)
        self.made.append(made)
        return made  # type: ignore[no-any-return]
