"""What a joiner does before anybody waits for it: it gets ready what building its dataflows will take."""

from __future__ import annotations

import trio


class Preparation:
    """Workers that share a process with the others have everything."""

    def used(self) -> object:
        """What this worker has needed so far. Plain data."""
        return []

    async def load(self, used: object) -> None:
        """Gets ready what another worker has needed."""
        await trio.lowlevel.checkpoint()
