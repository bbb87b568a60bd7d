"""A task beside an asynchronous generator.

A generator must not hold a nursery over a `yield`: cancellation would go astray. So what it needs done meanwhile is a
task of the whole run, which the generator starts, listens to and stops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class Background:
    """Runs a function until it ends or is stopped. What it raises is raised by `check`, never elsewhere."""

    def __init__(self, function: Callable[[], Awaitable[None]], changed: Callable[[], None]) -> None:
        self.ended = False
        self._function = function
        self._changed = changed  # called when it has ended, for whatever reason
        self._scope = trio.CancelScope()
        self._done = trio.Event()
        self._error: BaseException | None = None
        trio.lowlevel.spawn_system_task(self._run)

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._function()
        except trio.Cancelled:  # the whole run ends
            raise
        except BaseException as error:
            self._error = error
        finally:
            self.ended = True
            self._done.set()
            self._changed()

    def check(self) -> None:
        """Raises what the function has raised."""
        if self._error is not None:
            error, self._error = self._error, None
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            raise error

    async def stop(self) -> None:
        """Ends it, and waits until it has: also for one who is cancelled."""
        self._scope.cancel()
        with trio.CancelScope(shield=True):
            await self._done.wait()
