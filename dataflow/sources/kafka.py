"""Topics of Kafka. A partition is a partition, and a position is an offset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

import trio

from dataflow.clients.extras import names_of, require_extra, require_number
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.values import Value

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

D = TypeVar("D")

_WAIT = 0.1  # seconds for which a thread waits for more: as long may a worker's end take
_PATIENCE = 30.0  # seconds for a broker to answer


class KafkaRecord(NamedTuple):
    """A message of a topic."""

    key: bytes | None
    value: bytes | None
    time: int  # milliseconds since 1970; -1 if the message has none
    headers: tuple[tuple[str, bytes | None], ...]


class _Kafka(Partitions[D]):
    """Partitions are dealt out by us: no consumer group decides who reads what."""

    def __init__(
        self,
        settings: Mapping[str, object],
        topics: Sequence[str],
        decode: Callable[[KafkaRecord], D],
        start: datetime | None,
        group: str | None,
        batch: int,
        follow: bool,
    ) -> None:
        self.follow = follow
        self._settings = dict(settings)
        self._topics = list(topics)
        self._decode = decode
        self._start = start
        self._group = group
        self._batch = batch
        self._committer: Consumer | None = None  # tells the group; made when there is something to tell

    def __repr__(self) -> str:
        return f"<kafka topics {', '.join(self._topics)}>"

    def _consumer(self) -> Consumer:
        from confluent_kafka import Consumer

        return Consumer(
            {
                "group.id": self._group or "megaphone-dataflow",  # the library wants a name; we join no group
                **self._settings,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # what a broker has thrown away is told, not passed over
            }
        )

    async def partitions(self) -> list[str]:
        """All partitions of the topics, as "topic/number"."""
        return await trio.to_thread.run_sync(self._find, limiter=trio.CapacityLimiter(1))

    def _find(self) -> list[str]:
        consumer = self._consumer()
        try:
            known = _asked(lambda: consumer.list_topics(timeout=_PATIENCE), f"{self!r}")
        finally:
            consumer.close()
        found: list[str] = []
        for topic in self._topics:
            metadata = known.topics.get(topic)
            if metadata is not None and metadata.error is None:
                found += [f"{topic}/{number}" for number in sorted(metadata.partitions)]
            elif not self.follow:
                raise SourceError(f"Kafka has no topic {topic!r}; it has {sorted(known.topics)}")
        return found

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The messages of a partition from an offset on."""
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{partition}: {position!r} is no position in a topic: an offset was expected")
        alone = trio.CapacityLimiter(1)  # so that readers do not wait for each other's turn in a thread
        consumer = self._consumer()
        try:
            behind: int = await trio.to_thread.run_sync(self._begin, consumer, partition, position, limiter=alone)
            while True:
                messages: list[Message] = await trio.to_thread.run_sync(
                    consumer.consume, self._batch, _WAIT, limiter=alone
                )
                records, behind, ended = self._taken(partition, messages, behind)
                if records:
                    yield behind, None, records
                if ended and not self.follow:
                    return
        finally:
            consumer.close()

    def _begin(self, consumer: Consumer, partition: str, position: int | None) -> int:
        """Sets a consumer to a position; the offset there."""
        from confluent_kafka import TopicPartition

        topic, _, number = partition.rpartition("/")
        place = TopicPartition(topic, int(number))
        if position is not None:
            offset = position
        elif self._start is None:
            offset, _ = _asked(lambda: consumer.get_watermark_offsets(place, timeout=_PATIENCE), partition)
        else:
            wanted = TopicPartition(topic, int(number), round(self._start.timestamp() * 1000))
            offset = _asked(lambda: consumer.offsets_for_times([wanted], timeout=_PATIENCE), partition)[0].offset
            if offset < 0:  # nothing is as late as that
                _, offset = _asked(lambda: consumer.get_watermark_offsets(place, timeout=_PATIENCE), partition)
        consumer.assign([TopicPartition(topic, int(number), offset)])
        return int(offset)

    def _taken(self, partition: str, messages: list[Message], behind: int) -> tuple[list[D], int, bool]:
        """What the messages have; the offset behind them; whether they are the last for now."""
        from confluent_kafka import KafkaError

        records: list[D] = []
        ended = False
        for message in messages:
            error = message.error()
            if error is None:
                records.append(self._decode(_record(message)))
                behind = (message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended = True
            elif error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
                raise SourceError(
                    f"{partition}: the broker does not have offset {behind} any more, which is next: it throws "
                    "messages away before they are read. Raise the topic's retention, or start afresh"
                )
            elif not error.retriable():
                raise SourceError(f"{partition} cannot be read: {error.str()}")
        return records, behind, ended

    async def acknowledge(self, partition: str, position: object) -> None:
        """Tells the group, for those who watch its lag. Nobody here ever reads it."""
        if self._group is not None and isinstance(position, int):
            await trio.to_thread.run_sync(self._tell_group, partition, position, limiter=trio.CapacityLimiter(1))

    def _tell_group(self, partition: str, position: int) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        if self._committer is None:
            self._committer = self._consumer()
        topic, _, number = partition.rpartition("/")
        try:
            self._committer.commit(offsets=[TopicPartition(topic, int(number), position)], asynchronous=False)
        except KafkaException as error:
            raise SourceError(f"{partition}: its group cannot be told of {position}: {error.args[0].str()}") from None


def _record(message: Message) -> KafkaRecord:
    headers: Value = message.headers() or ()
    return KafkaRecord(message.key(), message.value(), message.timestamp()[1], tuple(map(tuple, headers)))


def _asked(ask: Callable[[], D], what: str) -> D:
    """What a broker answers. The library's words have no settings in them, and so no passwords."""
    from confluent_kafka import KafkaException

    try:
        return ask()
    except KafkaException as error:
        raise SourceError(f"{what}: Kafka does not answer as it should: {error.args[0].str()}") from None


def _as_it_is(record: KafkaRecord) -> KafkaRecord:
    return record


@overload
def kafka(
    servers: str,
    topics: str | Sequence[str],
    *,
    start: datetime | None = ...,
    group: str | None = ...,
    batch: int = ...,
    follow: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[KafkaRecord]: ...


@overload
def kafka(
    servers: str,
    topics: str | Sequence[str],
    *,
    decode: Callable[[KafkaRecord], D],
    start: datetime | None = ...,
    group: str | None = ...,
    batch: int = ...,
    follow: bool = ...,
    settings: Mapping[str, object] | None = ...,
) -> Partitions[D]: ...


def kafka(
    servers: str,
    topics: str | Sequence[str],
    *,
    decode: Callable[[KafkaRecord], D] | None = None,
    start: datetime | None = None,
    group: str | None = None,
    batch: int = 1000,
    follow: bool = True,
    settings: Mapping[str, object] | None = None,
) -> Partitions[D] | Partitions[KafkaRecord]:
    """The messages of topics, `batch` of them at each time; `decode` makes a record of each.

    `servers`: where Kafka is ("host:9092,other:9092"). `start`: from this moment on, by the messages' own times; from
    the first that there is unless you say. Without `follow`, up to what there is when a partition is first read to its
    end. Offsets are kept in our snapshots, and no consumer group takes part; with `group` they are told to one as well,
    once they are in a snapshot, for those who watch its lag. `settings` are librdkafka's, for what else a cluster
    needs (`security.protocol`, `sasl.username`, ...).
    """
    require_extra("confluent_kafka", "kafka", "sources.kafka")
    names = names_of("sources.kafka", "topics", topics)
    if start is not None and start.tzinfo is None:
        raise ConstructionError("sources.kafka: start needs a time zone: datetime(..., tzinfo=UTC)")
    require_number("sources.kafka", "batch", batch, 1, whole=True)
    known = {**(settings or {}), "bootstrap.servers": servers}
    if decode is None:
        return _Kafka(known, names, _as_it_is, start, group, batch, follow)
    return _Kafka(known, names, decode, start, group, batch, follow)
