"""NATS by `nats-py`, which is an asyncio library: everything here runs in an `AsyncioThread`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from dataflow.clients.asyncio_thread import AsyncioThread

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

R = TypeVar("R")
PATIENCE = 30.0  # seconds for the server to answer
_PAUSE = 0.5  # seconds between attempts
_KEPT = 300.0  # seconds for which the server keeps a consumer that asks for nothing


class Nats:
    """A connection, in a thread of its own."""

    def __init__(self, servers: str, settings: Mapping[str, object]) -> None:
        self._servers = servers.split(",")
        self._settings = settings
        self.loop = AsyncioThread()
        self._client: Client | None = None

    async def jetstream(self) -> JetStreamContext:
        """The connection's JetStream; connects first if need be. To be awaited in the loop."""
        from nats.aio.client import Client

        if self._client is None or self._client.is_closed:
            options = {"allow_reconnect": True, "connect_timeout": PATIENCE, **self._settings}
            client = Client()
            try:
                await client.connect(self._servers, **options)  # type: ignore[arg-type]  # its settings, as users know them
            except BaseException:  # also when it is cancelled: what it has opened would stay open
                with suppress(Exception):
                    await client.close()
                raise
            self._client = client
        return self._client.jetstream(timeout=PATIENCE)

    def close(self) -> None:
        """Ends the connection, whatever is under way."""
        self.loop.close(None if self._client is None else self._client.close)


class Pull:
    """The messages of a stream from a sequence number on, without gaps: a consumer that the server forgets, which is
    made anew where it stood whenever something was lost on the way."""

    def __init__(self, nats: Nats, stream: str, subject: str | None, behind: int) -> None:
        self._nats = nats
        self._stream = stream
        self._subject = subject
        self.behind = behind  # the sequence number of the last message that was taken
        self.pending = 0  # how many messages there were when it began
        self._given = 0  # by this consumer
        self._subscription: JetStreamContext.PullSubscription | None = None

    async def first_kept(self) -> int:
        """The first sequence number that the stream still has."""
        info = await (await self._nats.jetstream()).stream_info(self._stream)
        return info.state.first_seq

    async def open(self) -> None:
        """Starts a consumer behind the last message."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.behind + 1,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=_KEPT,
            filter_subject=self._subject,
            mem_storage=True,
        )
        jetstream = await self._nats.jetstream()
        self._subscription = await jetstream.pull_subscribe(self._subject or "", stream=self._stream, config=config)
        self._given = 0
        self.pending = (await self._subscription.consumer_info()).num_pending or 0

    async def _open_patiently(self) -> None:
        from nats.errors import Error

        for _ in range(round(PATIENCE / _PAUSE)):
            try:
                return await self.open()
            except Error:
                await asyncio.sleep(_PAUSE)
        await self.open()

    async def exhausted(self) -> bool:
        """Whether the server has nothing more for now."""
        if self._subscription is None:
            return False
        return not (await self._subscription.consumer_info()).num_pending

    async def take(self, most: int, wait: float, build: Callable[[Msg], R]) -> list[R]:
        """The next messages; none if there were none for so many seconds."""
        from nats.errors import Error, TimeoutError

        try:
            if self._subscription is None:
                await self.open()
            assert self._subscription is not None
            messages = await self._subscription.fetch(most, timeout=wait)
        except TimeoutError:
            return []
        except Error:  # the server has forgotten us, or the connection was lost: begin anew, where we were
            self._subscription = None
            await self._open_patiently()
            return []
        taken = []
        for message in messages:
            number = message.metadata.sequence
            if number.consumer != self._given + 1:  # something was lost on the way: begin anew, where we were
                self._subscription = None
                break
            self._given, self.behind = number.consumer, number.stream
            taken.append(build(message))
        return taken
