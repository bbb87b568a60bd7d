"""Whether a worker is ready: it is connected with the others, and main has built a dataflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from dataflow.asking.messages import Arguments

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


async def at_worker(pump: Pump, _: Arguments) -> object:
    """A worker that answers is connected: it runs main only then."""
    await trio.lowlevel.checkpoint()
    return pump.built > 0
