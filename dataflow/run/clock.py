"""The worker's clock: trio's, real or virtual. A simulation may replace it to make simultaneous wake-ups
deterministic."""

from __future__ import annotations

import trio


class Clock:
    """Seconds, on the clock of the trio loop."""

    def now(self) -> float:
        """The current time."""
        return trio.current_time()

    async def sleep_until(self, deadline: float) -> None:
        """Waits until the clock shows `deadline`. Always a checkpoint."""
        await trio.sleep_until(deadline)
