"""How far sources may be ahead of what has been done."""

from __future__ import annotations

from collections import deque

from dataflow.run.completion import Completion
from dataflow.time.order import Time


class SourcePace:
    """Waits while too many times are outstanding."""

    def __init__(self, completion: Completion, ahead: int) -> None:
        self._completion = completion
        self._ahead = ahead
        self._sent: deque[Time] = deque()  # the last `ahead` distinct times

    async def wait(self, time: Time) -> None:
        """Before something is sent at a time, which is not before the last."""
        if not self._sent or self._sent[-1] != time:
            if len(self._sent) >= self._ahead:
                await self._completion.wait_passed(self._sent.popleft())
            self._sent.append(time)
