"""Streams of NATS JetStream. A partition is a stream or one of its subjects, and a position is a sequence number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from dataflow.clients.extras import names_of, require_extra, require_number
from dataflow.clients.nats import Nats, Pull
from dataflow.operators.partitions import Item, Partitions, SourceError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

D = TypeVar("D")

_WAIT = 1.0  # seconds for which a server is asked to wait for more


class NatsRecord(NamedTuple):
    """A message of a stream."""

    subject: str
    data: bytes
    time: datetime  # when the server took it
    headers: Mapping[str, str]


class _Nats(Partitions[D]):
    def __init__(
        self,
        servers: str,
        stream: str,
        subjects: Sequence[str],
        decode: Callable[[NatsRecord], D],
        batch: int,
        follow: bool,
        purge: bool,
        settings: Mapping[str, object],
    ) -> None:
        self.follow = follow
        self._servers = servers
        self._stream = stream
        self._subjects = list(subjects)
        self._decode = decode
        self._batch = batch
        self._purge = purge
        self._settings = dict(settings)

    def __repr__(self) -> str:
        return f"<nats stream {self._stream}>"

    async def partitions(self) -> list[str]:
        """The subjects that were named, or the stream."""
        return self._subjects or [self._stream]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The messages behind a sequence number."""
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{self!r}: {position!r} is no position in a stream: a sequence number was expected")
        nats = Nats(self._servers, self._settings)
        try:
            pull = Pull(nats, self._stream, partition if self._subjects else None, position or 0)
            await self._begin(nats, pull, position is not None)
            left = pull.pending
            while self.follow or left > 0:
                records = await nats.loop.run(pull.take(self._batch, _WAIT, self._record))
                left -= len(records)
                if records:
                    yield pull.behind, None, records
                elif not self.follow and await nats.loop.run(pull.exhausted()):
                    return  # some were deleted meanwhile
        finally:
            nats.close()

    async def _begin(self, nats: Nats, pull: Pull, again: bool) -> None:
        from nats.errors import Error

        try:
            first = await nats.loop.run(pull.first_kept())
            await nats.loop.run(pull.open())
        except (Error, OSError) as error:
            raise SourceError(f"{self!r} cannot be read: {error}") from None
        # With subjects there are gaps, and whether they were ours cannot be known.
        if again and not self._subjects and first > pull.behind + 1:
            raise SourceError(
                f"{self!r}: the server does not have the messages {pull.behind + 1} to {first - 1} any more, which are "
                "next: it throws messages away before they are read. Raise the stream's limits, or start afresh"
            )

    def _record(self, message: Msg) -> D:
        headers = dict(message.headers or {})
        return self._decode(NatsRecord(message.subject, message.data, message.metadata.timestamp, headers))

    async def acknowledge(self, partition: str, position: object) -> None:
        """Deletes what will not be read again, if that was asked for."""
        if not self._purge or not isinstance(position, int):
            return
        nats = Nats(self._servers, self._settings)
        try:
            await nats.loop.run(self._delete(nats, partition if self._subjects else None, position))
        finally:
            nats.close()

    async def _delete(self, nats: Nats, subject: str | None, position: int) -> None:
        await (await nats.jetstream()).purge_stream(self._stream, seq=position + 1, subject=subject)


def _as_it_is(record: NatsRecord) -> NatsRecord:
    return record


@overload
def nats(
    servers: str,
    stream: str,
    *,
    subjects: Sequence[str] = ...,
    batch: int = ...,
    follow: bool = ...,
    purge: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[NatsRecord]: ...


@overload
def nats(
    servers: str,
    stream: str,
    *,
    decode: Callable[[NatsRecord], D],
    subjects: Sequence[str] = ...,
    batch: int = ...,
    follow: bool = ...,
    purge: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[D]: ...


def nats(
    servers: str,
    stream: str,
    *,
    decode: Callable[[NatsRecord], D] | None = None,
    subjects: Sequence[str] = (),
    batch: int = 1000,
    follow: bool = True,
    purge: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Partitions[D] | Partitions[NatsRecord]:
    """The messages of a stream of NATS JetStream, at most `batch` at each time; `decode` makes a record of each.

    `servers`: where NATS is ("nats://host:4222,nats://other:4222"). One worker reads the stream; with `subjects`, each
    of these (filters such as "orders.eu.*", which must not overlap) is a partition, and workers divide them. Without
    `follow`, up to what there is at the start. Sequence numbers are kept in our snapshots, and the server keeps no
    consumer of ours. `purge`: messages are deleted from the stream when they are in a snapshot. `settings` are those of
    `nats.connect`, for what else a cluster needs (`user_credentials`, `tls`, ...).
    """
    require_extra("nats", "nats", "sources.nats")
    (stream,) = names_of("sources.nats", "a stream", [stream])
    filters = names_of("sources.nats", "subjects", subjects) if subjects else []
    require_number("sources.nats", "batch", batch, 1, whole=True)
    known = settings or {}
    if decode is None:
        return _Nats(servers, stream, filters, _as_it_is, batch, follow, purge, known)
    return _Nats(servers, stream, filters, decode, batch, follow, purge, known)
