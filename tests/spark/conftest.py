"""A Spark cluster of processes: a master and two workers of one core each, from the pyspark package."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.launch.arena import wait_until
from tests.launch.conftest import arena

__all__ = ["arena", "standalone"]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
STARTED = re.compile(r"Starting Spark master at (spark://\S+)")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its master."""
    folder = tmp_path_factory.mktemp("standalone")
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        with open(log, "wb") as file:
            command = [str(SPARK_CLASS), *arguments]
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True))
        return log

    try:
        here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = start("master", f"{DEPLOY}.master.Master", *here)
        wait_until(lambda: STARTED.search(log.read_text()), "the master", 90)
        found = STARTED.search(log.read_text())
        assert found is not None
        for number in range(2):
            start(f"worker{number}", f"{DEPLOY}.worker.Worker", *here, "--cores", "1", "--memory", "1g", found[1])
        wait_until(lambda: log.read_text().count("Registering worker") == 2, "two workers", 90)
        yield found[1]
    finally:
        for process in started:  # each leads a session: spark-class has become java
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(60)
