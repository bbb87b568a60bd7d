"""Topics of Kafka, at least once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.channels.pact import Batch
from dataflow.clients.extras import require_extra, require_number
from dataflow.clients.payloads import Encode, Payloads, records_of
from dataflow.operators.sinks import AtLeastOnce, Place, SinkError, SinkUnavailable, Writer
from dataflow.sinks.shape import require_text
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

KeyOf = Callable[[Record], bytes | str | None]

_FULL = 0.1  # seconds for the library's queue to get shorter, at a time


class _Kafka(AtLeastOnce):
    """Each worker sends what it has."""

    def __init__(
        self, settings: Mapping[str, object], topic: str, key: KeyOf | None, value: Encode | None, patience: float
    ) -> None:
        self.settings = dict(settings)
        self.topic = topic
        self.key = key
        self.value = value
        self.patience = patience

    def __repr__(self) -> str:
        return f"<kafka topic {self.topic}>"

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to send."""
        return _KafkaWriter(self, place)


class _KafkaWriter(Writer):
    """Sends at once. Before a snapshot, waits until the brokers have all of it: so nothing is lost, and after a crash
    what came since the last snapshot is sent again."""

    def __init__(self, sink: _Kafka, place: Place) -> None:
        self._sink = sink
        self._place = place
        self._payloads = Payloads(repr(sink), sink.value)
        self._producer: Producer | None = None
        self._failed: KafkaError | None = None  # why a message was not delivered

    async def write(self, time: Time, batch: Batch) -> None:
        messages = [(self._key(record), self._payloads.one(record)) for record in records_of(batch)]
        await self._place.away(lambda: self._send(messages))

    def _key(self, record: Record) -> bytes | None:
        key = None if self._sink.key is None else self._sink.key(record)
        return key.encode() if isinstance(key, str) else key

    def _send(self, messages: list[tuple[bytes | None, bytes]]) -> None:
        producer = self._connected()
        for key, value in messages:
            while True:
                try:
                    producer.produce(self._sink.topic, value, key, on_delivery=self._delivered)
                    break
                except BufferError:  # the library holds as many as it may: wait for the brokers
                    producer.poll(_FULL)
        producer.poll(0)

    def _connected(self) -> Producer:
        from confluent_kafka import Producer

        if self._producer is None:
            settings = {"enable.idempotence": True, "linger.ms": 5, **self._sink.settings}
            self._producer = Producer(settings)
        return self._producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = error

    async def prepare(self, time: Time) -> object:
        if self._producer is not None:
            await self._place.away(self._flush)
        return None

    def _flush(self) -> None:
        left = self._connected().flush(self._sink.patience)
        if self._failed is not None:
            # What was not delivered is not here any more: a restart sends it again.
            raise SinkError(f"{self._sink!r}: a message was not delivered: {self._failed.str()}")
        if left:
            raise SinkUnavailable(f"{self._sink!r}: the brokers have not taken {left} messages yet")

    async def commit(self, token: object) -> None:
        """Nothing waits."""

    async def recover(self, tokens: Sequence[object]) -> None:
        """Nothing was prepared."""

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()  # else the library's end would wait for brokers that may be gone
            self._producer = None


def kafka(
    servers: str,
    topic: str,
    *,
    key: KeyOf | None = None,
    value: Encode | None = None,
    patience: float = 30.0,
    settings: Mapping[str, object] | None = None,
) -> AtLeastOnce:
    """Sends each record to a topic of Kafka as soon as its time is complete: at least once. After a crash, what came
    since the last snapshot is sent again.

    `key` and `value` make a message's key (none unless you say) and value (JSON unless you say). Records with equal
    keys are sent in their order as far as they come from one worker. A snapshot waits until the brokers have everything
    before it, `patience` seconds, and is then given up and tried again. `settings` are librdkafka's.
    """
    require_extra("confluent_kafka", "kafka", "sinks.kafka")
    require_text("sinks.kafka", "a topic's name", topic)
    require_text("sinks.kafka", "servers such as 'host:9092'", servers)
    require_number("sinks.kafka", "patience", patience)
    return _Kafka({**(settings or {}), "bootstrap.servers": servers}, topic, key, value, patience)
