"""A Spark session, or an error that says what is missing, before anything has started."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from planners.errors import PlannerError

LEAST_JAVA = 17
PATIENCE = 5.0  # seconds to reach a master
ROOT = Path(__file__).resolve().parents[2]  # where the package `planners` lies


class SparkUnavailable(PlannerError):
    """Spark cannot be started here, or not with this master."""


def start(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with this master. Under spark-submit the master is that of spark-submit, and None is the thing to give.

    Executors run this code: with a local master from where it lies, with any other from an archive that is sent along.
    They need a Python with this project's dependencies and pandas; which one, PYSPARK_PYTHON says (locally: this one).
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted and master is not None:
        raise SparkUnavailable("spark-submit has a --master of its own: give it there, not to planners.spark as well")
    if not submitted:
        master = master or "local[*]"
        check_java()
        check_master(master)
    builder = SparkSession.builder.appName("planners")
    if master is not None:
        builder = builder.master(master)
    local = master is not None and master.startswith("local")
    for key, value in {**(_local_settings() if local else {}), **(settings or {})}.items():
        builder = builder.config(key, value)
    with _python_of_executors() if local else quietly():
        spark = builder.getOrCreate()
    if not local:
        spark.sparkContext.addPyFile(str(_archive()))
    return spark


def check_java(environment: Mapping[str, str] = os.environ) -> int:
    """The major version of Java; an error if there is none, or an older one than Spark needs."""
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH", ""))
    if java is None or not os.access(java, os.X_OK):
        place = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no `java` on the PATH"
        raise SparkUnavailable(f"Spark needs Java {LEAST_JAVA} or newer, and {place}. Install it, or set JAVA_HOME.")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if found is None:
        said = (answer.stderr or answer.stdout).strip()[:200]
        raise SparkUnavailable(f"{java} does not say which Java it is: {said}")
    version = int(found[2] or 0) if found[1] == "1" else int(found[1])  # Java 8 called itself 1.8
    if version < LEAST_JAVA:
        raise SparkUnavailable(
            f"Spark needs Java {LEAST_JAVA} or newer, and {java} is Java {version}. Set JAVA_HOME to a newer one."
        )
    return version


def check_master(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """An error unless a master of this name can be there. Spark itself would try for minutes, and then not say much."""
    if re.fullmatch(r"local(\[(\*|\d+)(,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]", master):
        return
    if master == "yarn":
        if not (environment.get("HADOOP_CONF_DIR") or environment.get("YARN_CONF_DIR")):
            raise SparkUnavailable("the master is yarn; set HADOOP_CONF_DIR or YARN_CONF_DIR to where its settings are")
        return
    if master.startswith("spark://"):
        addresses = [urlsplit(f"spark://{part}") for part in master.removeprefix("spark://").split(",")]
        default = 7077
    elif master.startswith("k8s://"):
        rest = master.removeprefix("k8s://")
        addresses, default = [urlsplit(rest if "://" in rest else f"https://{rest}")], 443
    else:
        raise SparkUnavailable(
            f"{master!r} is no master: local, local[2], local[*], spark://host:port, k8s://https://host:port or yarn"
        )
    failures = []
    for address in addresses:
        try:
            host, port = address.hostname or "", address.port or default
            socket.create_connection((host, port), timeout=PATIENCE).close()
            return
        except (OSError, ValueError) as error:
            failures.append(f"{address.netloc}: {error}")
    why = "; ".join(failures)
    raise SparkUnavailable(f"no Spark master answers at {master} ({why}). Is it running, and is the port right?")


@contextmanager
def quietly() -> Iterator[None]:
    """pyspark warns of pandas 3 whenever a function over Arrow batches is made, although those use no pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def _local_settings() -> dict[str, str]:
    """Nothing listens beyond this machine, and the executors' Python finds this code (and numba's cache of it)."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }


@contextmanager
def _python_of_executors() -> Iterator[None]:
    """pyspark looks for the executors' Python in the environment, once, while a session is made."""
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = before or sys.executable
    try:
        with quietly():
            yield
    finally:
        if before is None:
            del os.environ["PYSPARK_PYTHON"]


def _archive() -> Path:
    """This package and those below it as an archive. It must stay: executors that come later fetch it then."""
    path = Path(tempfile.mkdtemp(prefix="planners-")) / "planners.zip"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("planners", "megaphone", "dataflow"):
            for source in sorted((ROOT / package).rglob("*.py")):
                archive.write(source, source.relative_to(ROOT))
    return path
