"""Each server that keeps messages, with a way to fill it and to see what is in it: the conformance tests run on all of
them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dataflow import sinks, sources


class Broker:
    """Streams of numbers at a server: in, over several partitions; out, in one."""

    fixture: str  # that gives the server's address
    at_least_once = False
    partitions = 3

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = f"n{uuid.uuid4().hex[:12]}"  # nobody else's

    def fill(self, numbers: Sequence[int]) -> None:
        """Adds numbers to the partitions in turn."""
        raise NotImplementedError

    def source(self, follow: bool = False, batch: int = 7) -> sources.Partitions[int]:
        """What reads them."""
        raise NotImplementedError

    def sink(self) -> sinks.Sink:
        """What writes pairs (number, running total) to another stream."""
        raise NotImplementedError

    def rows(self) -> list[tuple[int, int]]:
        """What has been written, in its order."""
        raise NotImplementedError


class Kafka(Broker):
    fixture = "kafka_server"
    at_least_once = True

    def _send(self, topic: str, messages: Sequence[tuple[bytes, int]]) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address})
        for value, partition in messages:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(30) == 0

    def fill(self, numbers: Sequence[int]) -> None:
        self._send(self.name, [(b"%d" % number, number % self.partitions) for number in numbers])

    def source(self, follow: bool = False, batch: int = 7) -> sources.Partitions[int]:
        return sources.kafka(self.address, self.name, decode=_number_of_kafka, follow=follow, batch=batch)

    def sink(self) -> sinks.Sink:
        return sinks.kafka(self.address, f"{self.name}-out", key=lambda pair: str(pair[0]), value=as_text)

    def rows(self) -> list[tuple[int, int]]:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.address, "group.id": "rows", "enable.partition.eof": True}
        consumer = Consumer(settings)
        try:
            known = consumer.list_topics(f"{self.name}-out", timeout=30).topics[f"{self.name}-out"]
            left = set(known.partitions)
            consumer.assign([TopicPartition(f"{self.name}-out", number, 0) for number in left])
            found = []
            while left:
                for message in consumer.consume(1000, 1.0):
                    if message.error():
                        left.discard(message.partition())
                    else:
                        found.append(from_text(message.value()))
            return found
        finally:
            consumer.close()


class Nats(Broker):
    fixture = "nats_server"

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._run(self._make)

    def _run(self, ask: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        import nats

        async def main() -> Any:
            client = await nats.connect(self.address)
            try:
                return await ask(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(main())

    async def _make(self, jetstream: Any) -> None:
        for name in (self.name, f"{self.name}-out"):
            await jetstream.add_stream(name=name, subjects=[f"{name}.*"])

    def fill(self, numbers: Sequence[int]) -> None:
        async def send(jetstream: Any) -> None:
            for number in numbers:
                await jetstream.publish(f"{self.name}.{number % self.partitions}", b"%d" % number)

        self._run(send)

    def source(self, follow: bool = False, batch: int = 7) -> sources.Partitions[int]:
        subjects = [f"{self.name}.{number}" for number in range(self.partitions)]
        return sources.nats(
            self.address, self.name, subjects=subjects, decode=_number_of_nats, follow=follow, batch=batch
        )

    def sink(self) -> sinks.Sink:
        return sinks.nats(self.address, f"{self.name}-out", f"{self.name}-out.rows", encode=as_text)

    def rows(self) -> list[tuple[int, int]]:
        async def read(jetstream: Any) -> list[tuple[int, int]]:
            last = (await jetstream.stream_info(f"{self.name}-out")).state.last_seq
            messages = [await jetstream.get_msg(f"{self.name}-out", number) for number in range(1, last + 1)]
            return [from_text(message.data) for message in messages]

        found: list[tuple[int, int]] = self._run(read)
        return found


class Valkey(Broker):
    fixture = "valkey_server"

    def _client(self) -> Any:
        import redis

        return redis.Redis.from_url(self.address)

    def fill(self, numbers: Sequence[int]) -> None:
        with self._client() as client:
            for number in numbers:
                client.xadd(f"{self.name}-{number % self.partitions}", {"n": number})

    def source(self, follow: bool = False, batch: int = 7) -> sources.Partitions[int]:
        streams = [f"{self.name}-{number}" for number in range(self.partitions)]
        return sources.redis(self.address, streams, decode=_number_of_redis, follow=follow, batch=batch)

    def sink(self) -> sinks.Sink:
        return sinks.redis(self.address, f"{self.name}-out", encode=lambda pair: {"pair": as_text(pair)})

    def rows(self) -> list[tuple[int, int]]:
        with self._client() as client:
            return [from_text(fields[b"pair"]) for _, fields in client.xrange(f"{self.name}-out")]


def as_text(pair: tuple[int, int]) -> str:
    """A pair as it is written."""
    return json.dumps(pair)


def from_text(text: bytes) -> tuple[int, int]:
    """What was written, as a pair."""
    number, total = json.loads(text)
    return number, total


def _number_of_kafka(record: sources.KafkaRecord) -> int:
    return int(record.value or b"")


def _number_of_nats(record: sources.NatsRecord) -> int:
    return int(record.data)


def _number_of_redis(record: sources.RedisRecord) -> int:
    return int(record.fields[b"n"])


BROKERS: list[type[Broker]] = [Kafka, Nats, Valkey]
