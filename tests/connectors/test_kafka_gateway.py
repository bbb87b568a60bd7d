"""Kafka's protocol spoken by another server than librdkafka's own: SeaweedFS' gateway, which calls itself experimental
and takes its time. Not part of `make test`: `python -m pytest -m soak tests/connectors/test_kafka_gateway.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.connectors import test_brokers
from tests.connectors.brokers import Kafka
from tests.launch.arena import wait_until
from tests.servers import kafka_gateway_running, or_skipped

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with or_skipped(kafka_gateway_running()) as address:
        yield address


class Gateway(Kafka):
    """Topics must be made before; that works once its parts have found each other."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        for topic in (self.name, f"{self.name}-out"):
            wait_until(lambda topic=topic: self._make(topic), f"topic {topic}", 60)  # type: ignore[misc]

    def _make(self, topic: str) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.address})
        (made,) = admin.create_topics([NewTopic(topic, 3, 1)]).values()
        try:
            made.result(20)
        except (KafkaException, TimeoutError) as error:
            threading.Event().wait(1)  # it is not ready, and asking often makes it no quicker
            return "exists" in str(error).lower()
        return True


def test_all_of_it_and_then_what_came_since(gateway: str) -> None:
    test_brokers.test_all_of_it_and_then_what_came_since(Gateway(gateway))


def test_through_a_failure_in_mid_stream(gateway: str) -> None:
    test_brokers.test_through_a_failure_in_mid_stream(Gateway(gateway), 1)
