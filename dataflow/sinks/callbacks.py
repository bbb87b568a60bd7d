"""Functions as sinks: after the snapshot, or at least once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dataflow.channels.pact import Batch, Pact, ToWorker
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import AtLeastOnce, Place, Sink, SinkError, Writer, join_batches
from dataflow.time.order import Time
from dataflow.values import Value

Call: TypeAlias = Callable[[Time, Value], object]  # of a time and a batch, columns or rows as the stream has them


class Callback(Sink):
    """Calls a function once a snapshot has what it is called with. See `callback`."""

    def __init__(self, function: Call) -> None:
        self._function = function

    def route(self) -> Pact:
        """One worker calls, so that calls are in the order of times."""
        return ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer whose tokens hold the batches."""
        return _CallbackWriter(self._function)


class _CallbackWriter(Writer):
    def __init__(self, function: Call) -> None:
        self._function = function
        self._written: dict[Time, list[Batch]] = {}  # not committed
        self._last: Time = -1  # all up to this time have been committed, as far as this process knows

    async def write(self, time: Time, batch: Batch) -> None:
        self._written.setdefault(time, []).append(batch)

    async def prepare(self, time: Time) -> object:
        return [[time, _one(batches)] for time, batches in self._written.items()] or None

    async def commit(self, token: object) -> None:
        if not isinstance(token, list):
            raise SinkError(f"{token!r} is no token of a callback")
        for time, batch in token:
            if time > self._last:
                await _call(self._function, time, batch)
                self._last = time
            self._written.pop(time, None)

    async def recover(self, tokens: Sequence[object]) -> None:
        for token in tokens:
            await self.commit(token)


class _Immediate(AtLeastOnce):
    """Calls a function as soon as a time is complete; after a crash, again. See `at_least_once`."""

    def __init__(self, function: Call) -> None:
        self._function = function

    def open(self, place: Place) -> Writer:
        """A writer that keeps nothing."""
        return _ImmediateWriter(self._function)


class _ImmediateWriter(Writer):
    def __init__(self, function: Call) -> None:
        self._function = function

    async def write(self, time: Time, batch: Batch) -> None:
        await _call(self._function, time, batch)

    async def prepare(self, time: Time) -> object:
        return None

    async def commit(self, token: object) -> None:
        """Nothing is kept."""

    async def recover(self, tokens: Sequence[object]) -> None:
        """Nothing is kept."""


def _one(batches: list[Batch]) -> Batch:
    """One batch of several: columns if all of them have the same, else rows."""
    joined = join_batches(batches)
    return joined[0] if len(joined) == 1 else [record for batch in joined for record in batch]


async def _call(function: Call, time: Time, batch: Batch) -> None:
    result = function(time, batch)
    if inspect.isawaitable(result):
        await result


def callback(function: Call) -> Callback:
    """Calls `function(time, batch)`, or awaits it, once for each time that has records, on worker 0, in the order of
    times: when a snapshot that has them is durable, and at the end.

    In a run that does not crash each time comes once. After a crash, the times of the last snapshot may come again,
    with the same records: a function that keeps the greatest time that it has dealt with, together with its effect, and
    passes over what is not later, has each record once. Until it is called, records are kept in memory, and in the
    snapshot."""
    _require(function, "callback")
    return Callback(function)


def at_least_once(function: Call) -> AtLeastOnce:
    """Calls `function(time, batch)`, or awaits it, for each batch as soon as its time is complete, where the batch is.

    After a crash everything since the last snapshot comes again, perhaps at other times.
    """
    _require(function, "at_least_once")
    return _Immediate(function)


def _require(function: object, what: str) -> None:
    if not callable(function):
        raise ConstructionError(f"{what} needs a function of a time and a batch, not {function!r}")
