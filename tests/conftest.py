"""What all tests share: servers, started when a test first asks for one, and one Spark session, after everything
else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.servers import kafka_server, nats_server, postgres, s3_bucket, s3_server, valkey_server

__all__ = ["kafka_server", "nats_server", "postgres", "s3_bucket", "s3_server", "valkey_server"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    # Tests run each query once, on a few rows: compiling them is most of what they would cost.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine, with the Python of the tests and few partitions."""
    from planners.spark import session

    started = session.start("local[2]", SETTINGS)
    yield started
    started.stop()


def pytest_configure() -> None:
    """Warnings are errors on workers as well, which have processes of their own.

    A shell ignores Ctrl-C on behalf of what it starts in the background; tests that send it would wait for ever.
    """
    os.environ["PYTHONWARNINGS"] = "error"
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark come last: a session brings threads, and tests of transports fork this process."""
    items.sort(key=lambda item: "spark" in getattr(item, "fixturenames", ()))
