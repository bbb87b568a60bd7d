"""How workers of one host find each other, when the process that forks them is gone."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from dataflow.launch.neighbours import Neighbours


@pytest.mark.parametrize("unread", [b"", b"x"], ids=["closed", "reset"])
@pytest.mark.parametrize("wait", [Neighbours.links, Neighbours.next_joiner], ids=["starting", "running"])
def test_a_worker_leaves_the_news_to_the_supervisor(
    wait: Callable[[Neighbours], Awaitable[object]], unread: bytes
) -> None:
    """Whoever sees it first must not tell it as an error of its own: the supervisor knows how that process ended."""

    async def main() -> bool:
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        with ours:
            ours.sendall(unread)  # a socket that is closed before it was read to its end is reset
            theirs.close()
            with trio.move_on_after(60) as waiting:
                await wait(Neighbours(1, range(3), {}, ours, b"key", {}))
        return waiting.cancelled_caught

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
