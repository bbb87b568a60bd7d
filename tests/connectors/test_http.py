"""Server-sent events, webhooks in and out, against real servers and clients of others."""

from __future__ import annotations

import http.client
import json
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

import dataflow
from dataflow import sinks, sources
from dataflow.errors import ConstructionError
from dataflow.recovery.memory import MemoryStorage
from dataflow.sources.server_events import EventParser
from tests.connectors.lives import Tripping, Until
from tests.engine.harness import failsafe
from tests.servers import free_ports

pytest.importorskip("h11")


@contextmanager
def serving(handle: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server whose every request is given to a function."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            handle(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# Server-sent events


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_come_out_however_the_bytes_are_cut(size: int) -> None:
    text = (
        b"\xef\xbb\xbf: comment\n\nid: 1\r\ndata: one\r\n\r\nevent: add\rdata:two\rdata: lines\r\r"
        b"data\n\nid:3\nretry: 250\nretry: soon\nevent: none\n\ndata: \xc3\xbc\nunknown: x\n\nid: 4\ndata: half"
    )
    parser = EventParser("0")
    found = [event for start in range(0, len(text), size) for event in parser.feed(text[start : start + size])]
    assert found == [
        ("1", "message", "one"),
        ("1", "add", "two\nlines"),
        ("1", "message", ""),
        ("3", "message", "ü"),
    ]
    assert parser.retry == 0.25


class Events:
    """A server that has numbered events, and drops the connection after a few."""

    def __init__(self, count: int, each: int) -> None:
        self.count, self.each = count, each
        self.asked: list[str | None] = []

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        last = request.headers.get("Last-Event-ID")
        self.asked.append(last)
        first = int(last) + 1 if last else 0
        request.send_response(200 if first < self.count else 204)
        request.send_header("Content-Type", "text/event-stream; charset=utf-8")
        request.send_header("Connection", "close")
        request.end_headers()
        if first < self.count:
            request.wfile.write(b"retry: 1\n\n")
            for number in range(first, min(first + self.each, self.count)):
                request.wfile.write(f"id: {number}\nevent: n\ndata: {number}\n\n".encode())
            request.wfile.write(b"id: 99999\ndata: half an event")
        request.close_connection = True


def run(source: Callable[[], sources.Partitions[Any]], database: Path, trips: Tripping) -> list[int]:
    """Numbers from a source up to 99, into a table, through failures; what the table has."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.source(Until(source(), lambda number: number == 99)).map(trips)
            numbers.sink(sinks.sqlite(database, "numbers", columns=["n"]))

    with failsafe(60):
        recovery = dataflow.Recovery(MemoryStorage(), every=0.005, restarts=len(trips.left))
        dataflow.execute(main, workers=2, in_process=True, recovery=recovery)
    assert trips.left == []
    with closing(sqlite3.connect(database)) as connection:
        return sorted(number for (number,) in connection.execute("SELECT n FROM numbers"))


def number_of(event: sources.ServerEvent) -> int:
    assert event.event == "n"
    return int(event.data)


def test_events_through_lost_connections_and_failures(tmp_path: Path) -> None:
    events = Events(100, 9)
    with serving(events) as url:
        source = lambda: sources.server_events(url, decode=number_of)  # noqa: E731
        assert run(source, tmp_path / "out.db", Tripping(31, 57)) == list(range(100))
    assert events.asked[:2] == [None, "8"]


def test_events_without_ids(tmp_path: Path) -> None:
    """Refused, unless somebody says so; then what was sent while nobody listened is lost."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(b"event: n\ndata: 99\n\n")
        request.close_connection = True

    with serving(handle) as url:
        with pytest.raises(sources.SourceError, match=r"an event has no id.*say ids=False"):
            run(lambda: sources.server_events(url, decode=number_of), tmp_path / "a.db", Tripping())
        lossy = lambda: sources.server_events(url, decode=number_of, ids=False)  # noqa: E731
        with pytest.raises(ConstructionError, match="cannot be set to where it was"):
            run(lossy, tmp_path / "b.db", Tripping())
        assert run(lambda: sources.at_most_once(lossy()), tmp_path / "c.db", Tripping()) == [99]


def test_what_is_no_stream_of_events_is_told(tmp_path: Path) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(403)
        request.send_header("Content-Length", "0")
        request.end_headers()

    with (
        serving(handle) as url,
        pytest.raises(sources.SourceError, match=r"of http://127.0.0.1:\d+>: the server answered with status 403"),
    ):
        run(lambda: sources.server_events(f"{url}?key=s3cret"), tmp_path / "a.db", Tripping())


# Webhooks in


def post(url: str, body: bytes, **headers: str) -> tuple[int, str]:
    """Sends a request; the status and the text of the answer."""
    request = urllib.request.Request(url, body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def post_until_taken(url: str, body: bytes, enough: threading.Event) -> None:
    """As senders of webhooks do: again and again, until it is taken."""
    while not enough.is_set():
        try:
            if post(url, body)[0] == 200:
                return
        except (OSError, http.client.HTTPException):  # nobody listens now, or the answer was cut off
            enough.wait(0.01)


def test_webhooks_through_failures(tmp_path: Path) -> None:
    """Whatever was answered with 200 counts once. A sender that got no answer sends again, so the sender's numbers are
    there at least once, and none but the few that were under way at a failure twice."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/hook"
    source = lambda: sources.journaled(  # noqa: E731
        sources.webhook(port, "/hook", decode=lambda request: int(request.body)), tmp_path / "journal"
    )
    enough = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(post_until_taken, url, b"%d" % number, enough) for number in range(99)]
        pool.submit(lambda: ([each.result() for each in sent], post_until_taken(url, b"99", enough)))
        try:
            rows = run(source, tmp_path / "out.db", Tripping(20, 60))
        finally:
            enough.set()
    assert sorted(set(rows)) == list(range(100))
    assert len(rows) <= 100 + 2 * 4


def test_what_a_webhook_answers(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/hook"
    answers: list[Any] = []
    seen: list[Any] = []

    def ask() -> None:
        bearer = {"Authorization": "Bearer open sesame"}
        answers.append(post(url, b"1"))
        answers.append(post(url, b"1", Authorization="Bearer wrong"))
        answers.append(post(url.replace("hook", "other"), b"1", **bearer))
        answers.append(post(url, b"no number", **bearer))
        answers.append(post(url, b"1" * 101, **bearer))
        answers.append(post(f"{url}?x=1", b"17", **bearer))

    async def main(worker: dataflow.Worker) -> None:
        source = sources.webhook(port, "/hook", decode=decode, token="open sesame", largest=100)
        with worker.dataflow() as scope:
            scope.source(source).inspect(lambda _, record: seen.append(record))
        while True:
            try:
                (await trio.open_tcp_stream("127.0.0.1", port)).socket.close()
                break
            except OSError:
                await trio.sleep(0.01)
        await trio.to_thread.run_sync(ask)
        worker.drop_dataflow(scope)

    def decode(request: sources.WebhookRecord) -> tuple[int, str]:
        return int(request.body), request.query

    with failsafe(60):
        dataflow.execute(main, in_process=True)
    assert [status for status, _ in answers] == [401, 401, 404, 422, 413, 200]
    assert "invalid literal for int" in answers[3][1] and "at most 100 bytes" in answers[4][1]
    assert seen == [(17, "x=1")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sources.webhook(0), "needs ports"),
        (lambda: sources.webhook([80, 80]), "needs ports, each once"),
        (lambda: sources.webhook(80, "hook"), "begins with a slash"),
        (lambda: sources.server_events([]), "needs the names of addresses"),
        (lambda: sinks.webhook("ftp://x"), "an address on the web is such as https"),
        (lambda: sinks.webhook("http://x", batch=0), "batch is a whole number of at least 1"),
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ConstructionError, match=message):
        make()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(lambda _: None) as url:
        source = lambda: sources.at_most_once(sources.webhook(int(url.rpartition(":")[2])))  # noqa: E731
        with pytest.raises(sources.SourceError, match="cannot listen: "):
            run(source, tmp_path / "out.db", Tripping())


# Webhooks out


class Receiver:
    """A server that refuses some requests, and one for ever if it is told to."""

    def __init__(self, refuse: Callable[[int], int]) -> None:
        self.refuse = refuse
        self.requests = 0
        self.taken: list[tuple[str, Any]] = []

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.requests += 1
        status = self.refuse(self.requests) or 200
        if status == 200:
            self.taken.append((request.headers["Idempotency-Key"], json.loads(body)))
        request.send_response(status)
        request.send_header("Content-Length", "0")
        request.end_headers()


@pytest.mark.parametrize("batch", [1, 7])
def test_webhooks_out_through_failures(batch: int) -> None:
    """At least once, in order; and with a receiver that passes over names that it knows, once."""
    receiver = Receiver(lambda number: 503 if number % 5 == 3 else 0)
    trips = Tripping(30, 70)

    async def main(worker: dataflow.Worker, url: str) -> None:
        with worker.dataflow() as scope:
            numbers = scope.source(sources.generator(lambda start: iter(range(start, 100)), batch=4)).map(trips)
            sink = sinks.webhook(url, batch=batch)
            assert isinstance(sink, sinks.AtLeastOnce)
            numbers.sink(sink)

    with serving(receiver) as url, failsafe(60):
        recovery = dataflow.Recovery(MemoryStorage(), every=0.005, restarts=10)
        dataflow.execute(main, url, workers=2, in_process=True, recovery=recovery)
    bodies = dict(receiver.taken)
    once = [number for body in bodies.values() for number in (body if batch > 1 else [body])]
    assert once == list(range(100))
    assert trips.left == []


def test_a_refusal_ends_the_run() -> None:
    async def main(worker: dataflow.Worker, url: str) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.generator(lambda start: iter(range(start, 3)))).sink(sinks.webhook(url, patience=0.2))

    for status, message in ((400, "does not take what it is sent: it answers with"), (500, "cannot be reached")):
        with (
            serving(Receiver(lambda _, status=status: status)) as url,  # type: ignore[misc]
            pytest.raises(sinks.SinkError, match=message) as failure,
        ):
            dataflow.execute(main, f"{url}/x?key=s3cret", in_process=True)
        assert "s3cret" not in str(failure.value)


def test_when_too_many_wait_others_are_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes what came, so nothing is answered; three may wait, and the fourth is told."""
    monkeypatch.setattr("dataflow.sources.webhooks._WAITING", 3)
    (port,) = free_ports(1)
    statuses: list[int] = []

    async def main() -> None:
        reader: Any = sources.webhook(port, batch=1).read(str(port), None)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(ask, b"%d" % number)
            taken = [(await anext(reader))[2][0].body]  # the first is with us now, and three wait
            while 503 not in statuses:  # noqa: ASYNC110  # the fifth
                await trio.sleep(0.01)
            assert statuses == [503]
            taken += [(await anext(reader))[2][0].body for _ in range(3)]
            nursery.start_soon(reader.asend, None)
            while len(statuses) < 5:  # noqa: ASYNC110
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        await reader.aclose()
        assert statuses == [503, 200, 200, 200, 200] and len(set(taken)) == 4

    async def ask(body: bytes) -> None:
        while True:
            try:
                statuses.append((await trio.to_thread.run_sync(post, f"http://127.0.0.1:{port}/", body))[0])
                return
            except OSError:
                await trio.sleep(0.01)

    with failsafe(60):
        trio.run(main)
