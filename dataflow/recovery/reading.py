"""Several files are read at once, and taken in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Generic, NoReturn, TypeVar

import trio

K = TypeVar("K")
V = TypeVar("V")


class Readings(Generic[K, V]):
    """What a call gives for each of several things: so many calls are under way ahead of whoever takes the results."""

    def __init__(self, nursery: trio.Nursery, call: Callable[[K], Awaitable[V]], keys: Sequence[K], ahead: int) -> None:
        self._nursery = nursery
        self._call = call
        self._left = deque(keys)
        self._under_way: deque[_Reading[V]] = deque()
        for _ in range(ahead):
            self._start()

    def _start(self) -> None:
        if self._left:
            reading = _Reading[V]()
            self._under_way.append(reading)
            self._nursery.start_soon(reading.run, self._call, self._left.popleft())

    def __aiter__(self) -> AsyncIterator[V]:
        return self

    async def __anext__(self) -> V:
        if not self._under_way:
            raise StopAsyncIteration
        reading = self._under_way.popleft()
        await reading.done.wait()
        self._start()
        return reading.result()


class _Reading(Generic[V]):
    def __init__(self) -> None:
        self.done = trio.Event()
        self.result: Callable[[], V]

    async def run(self, call: Callable[[K], Awaitable[V]], key: K) -> None:
        try:
            value = await call(key)
        except Exception as error:  # for whoever takes the result
            self.result = partial(_raise, error)
        else:
            self.result = lambda: value
        self.done.set()


def _raise(error: Exception) -> NoReturn:
    raise error


@asynccontextmanager
async def read_ahead(call: Callable[[K], Awaitable[V]], keys: Sequence[K], ahead: int) -> AsyncIterator[Readings[K, V]]:
    """Calls for each key, in order; an exception of a call is raised when its turn comes, as it was."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield Readings(nursery, call, keys, ahead)
        except Exception as error:  # as it was, and not in a group
            failure = error
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
