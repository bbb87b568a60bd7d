"""From the call of main to the end of its worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from dataflow.run.advice import explain_failure
from dataflow.run.worker import A, R, Worker

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def run_main(pump: Pump, main: Callable[[Worker, *A], Awaitable[R]], args: tuple[*A]) -> R:
    """Runs main, and then until every dataflow is complete, or the worker has left. Returns what main returned: None
    for a worker that left before main was done, or was not needed after all."""
    result: R = None  # type: ignore[assignment]
    changes = pump.changes
    if not await changes.wait_joined():
        return result
    with trio.CancelScope() as scope:
        changes.leaving.on_leave = scope.cancel
        if changes.left:
            scope.cancel()
        try:
            result = await main(pump.worker, *args)
        except trio.Cancelled:
            raise
        except BaseException as error:
            explain_failure(error, f"in main on worker {pump.index} of {pump.peers}")
            raise
    if changes.left:
        changes.leaving.close_inputs()
    else:
        pump.finish()
    await pump.wait_complete()
    return result
