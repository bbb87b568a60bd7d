"""The connection of two supervisors: news, as `control` writes them."""

from __future__ import annotations

from dataflow.comm.handshake import Keys
from dataflow.comm.pipes import Pipe
from dataflow.launch.control import News, decode_news, encode_news
from dataflow.launch.talk import Talk


class ControlLink:
    """News to and from another supervisor."""

    def __init__(self, pipe: Pipe, keys: Keys, workers: range) -> None:
        """`workers` are those of the other host."""
        self._talk = Talk(pipe, keys)
        self._workers = workers

    async def say(self, news: News) -> None:
        """Sends it, whole."""
        await self._talk.say(encode_news(news))

    async def hear(self) -> News | None:
        """Waits for news; None if the connection has ended. ProtocolError if they make no sense."""
        body = await self._talk.hear()
        return None if body is None else decode_news(body, self._workers)

    async def close(self) -> None:
        """Ends the connection."""
        await self._talk.close()
