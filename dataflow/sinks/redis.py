"""Streams of Redis and Valkey, each record once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from dataflow.channels.pact import Batch
from dataflow.clients.extras import require_extra, require_number
from dataflow.clients.payloads import Payloads, records_of
from dataflow.clients.redis import connect, without_password
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.queues import Message, QueueWriter, Shipment
from dataflow.sinks.shape import require_text
from dataflow.values import Record, Value

if TYPE_CHECKING:
    from redis import Redis

R = TypeVar("R")

Fields: TypeAlias = Mapping[str, bytes | str | int | float]
"""An entry of a stream."""


_FENCE = "fence"
_RAISE_FENCE = """
local fence = tonumber(ARGV[2])
if fence > tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') then
    for _, writer in ipairs(redis.call('HKEYS', KEYS[1])) do
        local incarnation = tonumber(string.match(writer, '^(%d+)-'))
        if incarnation and incarnation < fence then redis.call('HDEL', KEYS[1], writer) end
    end
    redis.call('HSET', KEYS[1], ARGV[1], fence)
end
return fence
"""


class _RedisSink(Sink):
    """Each worker sends what it has."""

    def __init__(
        self,
        url: str,
        stream: str,
        encode: Callable[[Record], Fields] | None,
        longest: int | None,
        settings: Mapping[str, object],
    ) -> None:
        self.url = url
        self.stream = stream
        self.notes = f"{{{stream}}}:dataflow"  # beside the stream, also in a cluster: the braces say so
        self.encode = encode
        self.longest = longest
        self.settings = dict(settings)

    def __repr__(self) -> str:
        return f"<redis stream {self.stream} at {without_password(self.url)}>"

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to do."""
        return _RedisWriter(self, place)


class _RedisWriter(QueueWriter):
    """A shipment's entries, and a note that they are there, are one transaction: so a commit can be repeated, by
    anybody. A writer's note has the number of its last shipment. One more note is the fence: shipments of incarnations
    before it are there, or never will be, and their writers' notes are not needed any more."""

    def __init__(self, sink: _RedisSink, place: Place) -> None:
        super().__init__(place)
        self._sink = sink
        self._payloads = Payloads(repr(sink), None)
        self._client: Redis | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def encode(self, batch: Batch) -> list[Message]:
        return [list(self._entry(record)) for record in records_of(batch)]

    def _entry(self, record: Record) -> Iterable[list[bytes]]:
        if self._sink.encode is None:
            yield [b"data", self._payloads.one(record)]
            return
        fields: object = self._sink.encode(record)
        if not isinstance(fields, Mapping) or not fields:
            raise SinkError(f"{self._sink!r}: encode must give an entry's fields, at least one, not {fields!r}")
        for name, value in fields.items():
            yield [_as_bytes(name), _as_bytes(value)]

    async def _ask(self, ask: Callable[[Redis], R]) -> R:
        from redis.exceptions import ConnectionError, RedisError, TimeoutError

        if self._client is None:
            self._client = connect(self._sink.url, self._sink.settings)
        client = self._client
        try:
            return await self.place.away(lambda: ask(client))
        except (ConnectionError, TimeoutError) as error:
            raise SinkUnavailable(f"{self._sink!r} cannot be written: {error}") from None
        except RedisError as error:
            raise SinkError(f"{self._sink!r}: {error}") from None

    async def send(self, shipments: list[Shipment]) -> None:
        await self._ask(lambda client: self._send(client, shipments))

    def _send(self, client: Redis, shipments: list[Shipment]) -> None:
        from redis.exceptions import WatchError

        while True:
            with client.pipeline(transaction=True) as transaction:
                transaction.watch(self._sink.notes)  # type: ignore[no-untyped-call]
                notes: Value = client.hgetall(self._sink.notes)
                noted = {writer.decode(): int(number) for writer, number in notes.items()}
                fence = noted.get(_FENCE, 0)
                missing = [
                    shipment
                    for shipment in shipments
                    if shipment.incarnation >= fence and shipment.number > noted.get(shipment.writer, -1)
                ]
                transaction.multi()
                for shipment in missing:
                    for entry in shipment.messages:
                        assert isinstance(entry, list | tuple)
                        fields = dict(entry)
                        transaction.xadd(self._sink.stream, fields, maxlen=self._sink.longest, approximate=True)
                    transaction.hset(self._sink.notes, shipment.writer, str(shipment.number))
                try:
                    transaction.execute()
                    return
                except WatchError:  # another worker has noted something meanwhile
                    continue

    async def fence(self) -> None:
        await self._ask(self._fence)

    def _fence(self, client: Redis) -> None:
        """One script, so that a zombie does not lower it."""
        client.eval(_RAISE_FENCE, 1, self._sink.notes, _FENCE, str(self.place.incarnation))


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def redis(
    url: str,
    stream: str,
    *,
    encode: Callable[[Record], Fields] | None = None,
    longest: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Sink:
    """Adds each record to a stream of Redis or Valkey, once: when a snapshot that has it is durable, and at the end;
    without recovery, when its time is complete. What one worker has for a snapshot becomes visible in one transaction.

    `encode` makes an entry's fields of a record; unless you say, there is one, "data", in JSON. `longest`: the stream
    keeps about so many entries. A hash beside the stream, "{STREAM}:dataflow", has the notes that make it once: leave
    it there. `settings` are those of `redis.Redis`.
    """
    require_extra("redis", "redis", "sinks.redis")
    require_text("sinks.redis", "the name of a stream", stream)
    if longest is not None:
        require_number("sinks.redis", "longest", longest, 1, whole=True)
    return _RedisSink(url, stream, encode, longest, settings or {})
