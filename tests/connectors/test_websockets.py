"""WebSockets, against a server of others (`websockets`)."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import dataflow
from dataflow import sinks, sources
from dataflow.errors import ConstructionError
from dataflow.recovery.memory import MemoryStorage
from tests.connectors.lives import Tripping, Until
from tests.engine.harness import failsafe

pytest.importorskip("wsproto")
server = pytest.importorskip("websockets.sync.server")


@contextmanager
def serving(handle: Callable[[Any], None]) -> Iterator[str]:
    """The address of a server whose every connection is given to a function."""
    with server.serve(handle, "127.0.0.1", 0, close_timeout=1) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{listening.socket.getsockname()[1]}/feed"
        finally:
            listening.shutdown()
            thread.join()


def run(source: sources.Partitions[Any], database: Path, trips: Tripping) -> list[int]:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.source(Until(source, lambda number: number == 99)).map(trips)
            numbers.sink(sinks.sqlite(database, "numbers", columns=["n"]))

    with failsafe(60):
        recovery = dataflow.Recovery(MemoryStorage(), every=0.005, restarts=10)
        dataflow.execute(main, workers=2, in_process=True, recovery=recovery)
    assert trips.left == []
    with closing(sqlite3.connect(database)) as connection:
        return sorted(number for (number,) in connection.execute("SELECT n FROM numbers"))


class Feed:
    """Says numbers to whoever subscribes, each once; ends the connection now and then. What a failure interrupts is
    lost, as in real life: so it waits to be asked for the next."""

    def __init__(self) -> None:
        self.next = 0
        self.subscribed: list[str] = []

    def __call__(self, connection: Any) -> None:
        self.subscribed.append(connection.recv())
        connection.ping()
        while self.next < 100:
            number, self.next = self.next, self.next + 1
            text = json.dumps({"n": number})
            if number % 3 == 0:
                connection.send(text.encode())
            elif number % 3 == 1:
                connection.send([text[:3], text[3:]])  # in fragments
            else:
                connection.send(text)
            if number % 40 == 39:
                return
        connection.recv()  # the client goes first


def decode(message: str | bytes) -> int:
    number: int = json.loads(message)["n"]
    return number


def test_messages_through_lost_connections(tmp_path: Path) -> None:
    feed = Feed()
    with serving(feed) as url:
        source = sources.websocket(url, decode=decode, send=["subscribe"])
        assert run(sources.journaled(source, tmp_path / "journal"), tmp_path / "out.db", Tripping()) == list(range(100))
    assert feed.subscribed == ["subscribe"] * 3


def test_what_has_come_counts_once_through_failures(tmp_path: Path) -> None:
    """A failure interrupts the connection: what was on its way then is lost, and the journal has the rest, once."""
    feed = Feed()
    with serving(feed) as url:
        source = sources.websocket(url, decode=decode, send=["subscribe"])
        rows = run(sources.journaled(source, tmp_path / "journal"), tmp_path / "out.db", Tripping(99))
    assert rows == list(range(100))


def test_the_end_of_a_connection_as_the_end(tmp_path: Path) -> None:
    seen: list[Any] = []

    def handle(connection: Any) -> None:
        for text in ("one", b"two"):
            connection.send(text)

    async def main(worker: dataflow.Worker, url: str) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.websocket(url, again=False)).inspect(lambda _, message: seen.append(message))

    with serving(handle) as url, failsafe(60):
        dataflow.execute(main, url, in_process=True)
    assert seen == ["one", b"two"]


def test_messages_out(tmp_path: Path) -> None:
    """At least once: everything arrives, also when the server ends a connection between two batches."""
    got: list[int] = []

    def handle(connection: Any) -> None:
        for message in connection:
            got.append(json.loads(message))
            if len(got) == 1:
                return

    trips = Tripping(50)

    async def main(worker: dataflow.Worker, url: str) -> None:
        with worker.dataflow() as scope:
            numbers = scope.source(sources.generator(lambda start: iter(range(start, 100)), batch=4)).map(trips)
            numbers.sink(sinks.websocket(url))

    with serving(handle) as url, failsafe(60):
        recovery = dataflow.Recovery(MemoryStorage(), every=0.005, restarts=10)
        dataflow.execute(main, url, workers=2, in_process=True, recovery=recovery)
        while 99 not in got:  # it was sent; the server's thread may take its time
            threading.Event().wait(0.01)
    assert set(got) >= set(range(4, 100)) | {0}


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match="the address of a WebSocket is such as"):
        sources.websocket("http://x")
    with pytest.raises(ConstructionError, match="the address of a WebSocket is such as"):
        sinks.websocket("x")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source([1]).sink(sinks.websocket("ws://127.0.0.1:1/x?key=s3cret"))

    with pytest.raises(sinks.SinkUnavailable, match=r"WebSocket to ws://127.0.0.1:1/x> cannot be written"):
        dataflow.execute(main, in_process=True)
