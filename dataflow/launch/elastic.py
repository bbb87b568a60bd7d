"""A run whose workers come from somewhere that this host knows nothing of: the driver of a Spark session, say.

Worker 0 wants workers, and its supervisor passes that on; what becomes of it comes back, from whatever thread, and is
passed on to worker 0. docs/internals/guests.md has the messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from threading import Lock

import trio

from dataflow.asking.messages import Question, Refused

Say = Callable[[str, Sequence[int], str], None]
"""Passes on what worker 0 wants, or what has changed: which, whose numbers, and text for people."""


class ElasticHost:
    """What a supervisor has of whoever brings workers."""

    def __init__(self, say: Say, cannot: str | None = None) -> None:
        """`cannot`: why nobody can be brought here."""
        self.cannot_bring = cannot
        self._say = say
        self._lock = Lock()
        self._absent: deque[tuple[int, str]] = deque()  # workers that do not come: the first of them, and why
        self._wake: Callable[[], None] = lambda: None

    def say(self, what: str, numbers: Sequence[int], why: str = "") -> None:
        """Passes something on."""
        self._say(what, numbers, why)

    def cannot(self, number: int, why: str) -> None:
        """Workers that were invited, of whom this is the first, do not come. From any thread."""
        with self._lock:
            self._absent.append((number, why))
            self._wake()

    async def attend(self, ask: Callable[[Question], Awaitable[object]]) -> None:
        """Tells worker 0 of those who do not come, as long as a life lasts."""
        news = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            token.run_sync_soon(lambda: news.set())

        with self._lock:
            self._absent.clear()  # of an earlier life
            self._wake = wake
        try:
            while True:
                await news.wait()
                news = trio.Event()
                while self._absent:
                    number, why = self._absent.popleft()
                    try:
                        await ask(Question("absent", {"number": number, "why": why}))
                    except Refused:
                        return  # worker 0 has ended
        finally:
            with self._lock:
                self._wake = lambda: None
