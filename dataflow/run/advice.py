"""For programs that await what is made for asyncio: says which loop runs here, and what to do."""

from __future__ import annotations

import sys
import traceback

import trio

from dataflow.errors import DataflowError
from dataflow.run.exceptions import leaves

ADVICE = (
    "dataflow runs in a trio loop, and this was made for asyncio, which does not run here: use a library that works "
    "with trio (httpx, anyio), run asyncio's in a thread (`await trio.to_thread.run_sync(asyncio.run, fetch())`), or "
    "run its loop inside trio's with the package trio-asyncio"
)
_SIGNS = (
    "trio.run received unrecognized yield message",  # an asyncio future was awaited
    "trio got unexpected",
    "no running event loop",
    "no current event loop",
    "attached to a different loop",
)


def advise(error: BaseException) -> None:
    """Adds advice to an exception that asyncio's absence may have caused. Says it once."""
    if not isinstance(error, TypeError | RuntimeError | AttributeError) or ADVICE in getattr(error, "__notes__", ()):
        return
    text = str(error)
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    lost = modules[-1:] and modules[-1].startswith("asyncio.") and "asyncio.runners" not in modules
    if lost or any(sign in text for sign in _SIGNS):
        error.add_note(ADVICE)


def explain_failure(error: BaseException, where: str) -> None:
    """Notes for what main raised: where it was and, if asyncio was missed, what to do. Of a group (a nursery in main)
    that holds one exception, that one comes out; a group of several stays one."""
    inside = leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    for leaf in inside:
        advise(leaf)
    (inside[0] if len(inside) == 1 else error).add_note(where)


def require_trio() -> None:
    """DataflowError where no trio loop runs, which says what to call instead."""
    if trio.lowlevel.in_trio_run():
        return
    asyncio = sys.modules.get("asyncio")  # to import it takes longer than to import trio
    if asyncio is None or asyncio._get_running_loop() is None:
        raise DataflowError(
            "execute_async shares a trio loop that runs already, and none does: call `dataflow.execute(...)`, which "
            "starts one, or `trio.run(...)`"
        )
    raise DataflowError(
        "dataflow runs in a trio loop, and this is an asyncio loop: from here, run it in a thread, "
        "`await asyncio.to_thread(dataflow.execute, main, workers=2)`; or start the program with "
        "`trio.run(...)` instead of `asyncio.run(...)`"
    )
