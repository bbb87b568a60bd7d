"""Asks a run how it is, once a second while somebody watches, and tells all who do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import TypeVar

import trio

from dataflow.asking.client import NoSuchRun
from dataflow.asking.messages import Refused
from dataflow.commands.asking import Status
from dataflow.page.latency import FIELDS, Curves
from dataflow.page.seeing import look
from dataflow.page.shapes import ShapeKey, shape_key, shapes

T = TypeVar("T")
_BEHIND = 4  # events that a watcher may be behind, before it misses some
_THREADS = 6  # questions at once: a run attends to 16


class Feed:
    """One for a page. An event is a name and its data, as text."""

    def __init__(self, run: str, every: float = 1.0) -> None:
        self.run = run
        self._every = every
        self._curves = Curves()
        self._watchers: set[trio.MemorySendChannel[str]] = set()
        self._someone = trio.Event()
        self._before: Status | None = None
        self._key: ShapeKey | None = None
        self._shape = ""
        self._look = ""
        self._threads = trio.CapacityLimiter(_THREADS)

    async def ask(self, question: Callable[[], T]) -> T:
        """Asks something in a thread. Whoever goes away does not wait for the answer."""
        return await trio.to_thread.run_sync(question, abandon_on_cancel=True, limiter=self._threads)

    async def run_for_ever(self) -> None:
        """Looks, and tells; sleeps while nobody watches."""
        while True:
            await self._someone.wait()
            began = trio.current_time()
            await self._look_once()
            await trio.sleep_until(began + self._every)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[trio.MemoryReceiveChannel[str]]:
        """Events from now on, first of all what is known."""
        send, receive = trio.open_memory_channel[str](_BEHIND)
        for known in (self._shape, event("curves", {"fields": FIELDS, "points": self._curves.all()}), self._look):
            if known:
                send.send_nowait(known)
        self._watchers.add(send)
        self._someone.set()
        try:
            yield receive
        finally:
            self._watchers.discard(send)
            send.close()
            receive.close()
            if not self._watchers:
                self._someone = trio.Event()

    async def _look_once(self) -> None:
        try:
            now = await self.ask(partial(Status, self.run))
        except (NoSuchRun, Refused, ValueError, OSError) as error:
            self._before, self._look = None, ""
            self._tell(event("gone", {"why": str(error)}))
            return
        seen = look(self._before, now)
        key = shape_key(now.workers)
        if key != self._key:
            self._key, self._shape = key, event("shape", {"dataflows": shapes(key)})
            self._tell(self._shape)
        if self._before is not None:
            rates, busy = _rates(seen), _busiest(seen)
            seen["point"] = self._curves.add(now.workers, rates, busy)
        self._before, self._look = now, event("look", seen)
        self._tell(self._look)

    def _tell(self, text: str) -> None:
        for watcher in self._watchers:
            try:
                watcher.send_nowait(text)
            except trio.WouldBlock:
                continue  # a slow one misses this look, and sees the next


def _rates(seen: dict[str, object]) -> dict[str, float]:
    parts = seen["dataflows"]
    assert isinstance(parts, list)
    return {part["name"]: part["came"] for part in parts}


def _busiest(seen: dict[str, object]) -> float:
    workers = seen["workers"]
    assert isinstance(workers, list)
    return max((worker["busy"] for worker in workers), default=0.0)


def event(name: str, data: object) -> str:
    """As server-sent events have it.

    >>> event("look", {"a": 1})
    'event: look\\ndata: {"a":1}\\n\\n'
    """
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), default=_plain, allow_nan=False)}\n\n"


def _plain(value: object) -> object:
    if value == inf:
        return None
    raise TypeError(f"{value!r} cannot be told to a browser")
