"""asyncio in a thread: for libraries that know nothing of trio. docs/connectors.md shows how it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

import trio

R = TypeVar("R")


class AsyncioThread:
    """An asyncio loop in a thread of its own. `await loop.run(coroutine)` runs a coroutine there; whoever awaits it
    may be cancelled, and then it is.

    A thread, and not asyncio inside trio's loop: a library that blocks its loop for long, or leaves tasks behind, does
    so elsewhere. `run` costs two hand-overs, some 0.1 ms: ask for many things at once.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="asyncio", daemon=True)
        self._thread.start()

    async def run(self, coroutine: Coroutine[object, object, R]) -> R:
        """What a coroutine returns, or raises."""
        token = trio.lowlevel.current_trio_token()
        done = trio.Event()

        def tell(_: object) -> None:
            try:
                token.run_sync_soon(done.set)
            except trio.RunFinishedError:  # nobody waits any more
                return

        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(tell)
        try:
            await done.wait()
        except trio.Cancelled:
            future.cancel()
            raise
        return future.result()

    def close(self, last: Callable[[], Coroutine[object, object, None]] | None = None) -> None:
        """Cancels whatever still runs there, runs something last (for a second at most), and ends the thread."""
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _end(last: Callable[[], Coroutine[object, object, None]] | None) -> None:
    if last is not None:
        with suppress(Exception):  # it is the end: what a connection still has to say is of no use
            await asyncio.wait_for(last(), 1.0)
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.sleep(0)  # transports close in a turn of their own
