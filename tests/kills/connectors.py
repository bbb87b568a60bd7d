"""Connectors through kill -9: numbers go in at real servers, running totals come out, each once where that is
promised."""

from __future__ import annotations

import atexit
import gzip
import http.client
import json
import os
import signal
import sys
import tempfile
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from dataflow.clients.buckets import Bucket
from tests.connectors.brokers import Broker, Kafka, Nats, Valkey
from tests.kills.connected import LAST
from tests.launch.arena import Arena, Program, wait_until
from tests.servers import (
    BUCKET,
    Missing,
    free_ports,
    kafka_running,
    nats_running,
    postgres_running,
    s3_running,
    valkey_running,
)

WITHIN = 120.0  # seconds, on a machine that may be busy
Row = tuple[int, int]


def right_rows() -> list[Row]:
    """The totals of the numbers by their last digit, as they run: the oracle."""
    sums: Counter[int] = Counter()
    found = []
    for number in range(LAST + 1):
        sums[number % 5] += number
        found.append((number, sums[number % 5]))
    return sorted(found)


class Ends:
    """The two ends of a connector: numbers go in, rows come out."""

    at_least_once = False

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def rows(self) -> list[Row]:
        raise NotImplementedError


class BrokerEnds(Ends):
    def __init__(self, broker: Broker) -> None:
        super().__init__({"address": broker.address, "name": broker.name})
        broker.partitions = 1
        broker.fill(range(LAST + 1))
        self.broker, self.at_least_once = broker, broker.at_least_once

    def rows(self) -> list[Row]:
        return self.broker.rows()


class PostgresEnds(Ends):
    def __init__(self, address: str) -> None:
        super().__init__({"address": address})
        self._ask("DROP TABLE IF EXISTS kill_in, kill_out, _dataflow_staged_kill_out, _dataflow_commits")
        self._ask("CREATE TABLE kill_in (number int)")
        self._ask(f"INSERT INTO kill_in SELECT * FROM generate_series(0, {LAST // 2})")
        self.thread = threading.Thread(target=self._insert_the_rest)
        self.thread.start()

    def _ask(self, query: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.settings["address"], autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def _insert_the_rest(self) -> None:
        """When the slot is there: what is inserted from then on is a change."""
        wait_until(lambda: self._ask("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'kills'"), "a slot", WITHIN)
        for number in range(LAST // 2 + 1, LAST + 1):
            self._ask(f"INSERT INTO kill_in VALUES ({number})")

    def rows(self) -> list[Row]:
        return [tuple(row) for row in self._ask("SELECT number, total FROM kill_out")]


class BucketEnds(Ends):
    def __init__(self, bucket: Bucket) -> None:
        super().__init__({"address": bucket.title})
        self._bucket = bucket
        text = "".join(f"{number}\n" for number in range(LAST + 1))
        bucket.put("in/a.gz", gzip.compress(text.encode()))

    def rows(self) -> list[Row]:
        names = [name for name in self._bucket.names("out") if "/_staged/" not in name]
        lines = [json.loads(line) for name in names for line in self._bucket.get(name).splitlines()]
        return [(line["number"], line["total"]) for line in lines]


class EventEnds(Ends):
    def __init__(self, url: str, folder: Path) -> None:
        super().__init__({"address": url, "folder": str(folder)})

    def rows(self) -> list[Row]:
        from deltalake import DeltaTable

        table = pa.table(DeltaTable(self.settings["folder"]).to_pyarrow_table())
        return [(row["number"], row["total"]) for row in table.to_pylist()]


class WebhookEnds(Ends):
    """One sender, which sends the next number when the last was taken. What was taken counts once; a number that was
    being taken when somebody was killed is sent again, and counts twice then: the sender cannot know."""

    def __init__(self, folder: Path) -> None:
        super().__init__({"port": str(free_ports(1)[0]), "folder": str(folder)})
        self._stopped = False
        self.attempts: Counter[int] = Counter()  # by number
        self.thread = threading.Thread(target=self._send)

    def _send(self) -> None:
        for number in range(LAST + 1):
            while not self._stopped:
                self.attempts[number] += 1
                try:
                    request = urllib.request.Request(f"http://127.0.0.1:{self.settings['port']}/", b"%d" % number)
                    urllib.request.urlopen(request, timeout=10).close()
                    break
                except (OSError, http.client.HTTPException):
                    threading.Event().wait(0.02)

    def stop(self) -> None:
        self._stopped = True
        self.thread.join()

    def rows(self) -> list[Row]:
        paths = (Path(self.settings["folder"]) / "out").glob("*.arrow")
        tables = [pa.ipc.open_file(path).read_all() for path in paths]
        return [(row["number"], row["total"]) for table in tables for row in table.to_pylist()]


@contextmanager
def event_server() -> Iterator[str]:
    """Numbers as events, from where the client was."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first = int(self.headers.get("Last-Event-ID", -1)) + 1
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number in range(first, LAST + 1):
                self.wfile.write(f"id: {number}\ndata: {number}\n\n".encode())

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


def run_case(seed: int, addresses: dict[str, str], folder: Path) -> None:
    """All connectors whose servers are there, in one program that is killed twice: a worker, and all of it."""
    chance = Random(f"connectors {seed}")
    arena = Arena(folder)
    with ExitStack() as stack:
        stack.callback(arena.clear)
        ends: dict[str, Ends] = {}
        for kind in (Kafka, Nats, Valkey):
            if kind.__name__.lower() in addresses:
                ends[kind.__name__.lower()] = BrokerEnds(kind(addresses[kind.__name__.lower()]))
        if "postgres" in addresses:
            database = ends["postgres"] = PostgresEnds(addresses["postgres"])
            stack.callback(database.thread.join)
        if "bucket" in addresses:
            ends["bucket"] = BucketEnds(Bucket(f"{addresses['bucket']}/{uuid.uuid4().hex}"))
        ends["events"] = EventEnds(stack.enter_context(event_server()), folder / "delta")
        webhook = ends["webhook"] = WebhookEnds(folder / "hook")
        (folder / "settings.json").write_text(json.dumps({name: each.settings for name, each in ends.items()}))
        webhook.thread.start()
        stack.callback(webhook.stop)
        _kill_and_go_on(arena, chance, len(ends))
        for name, each in ends.items():
            _compare(name, each)


def _kill_and_go_on(arena: Arena, chance: Random, connectors: int) -> None:
    def start() -> Program:
        command = [sys.executable, "-m", "tests.kills.connected", str(chance.choice((2, 3))), "state", "settings.json"]
        return arena.start(command)

    program = start()
    for victim in chance.sample(["worker", "all"], 2):
        lines = chance.randrange(10, connectors * (LAST + 1) // 3)
        _wait(program, program.out.count("line") + lines)
        workers = program.children()
        victims = [chance.choice(workers)] if victim == "worker" and workers else list(arena.processes())
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if program.pid in victims:
            program.end(WITHIN)
            wait_until(lambda: not arena.processes(), "the end of all")
            program = start()
    ended = program.end(WITHIN)
    assert ended.status == 0, f"status {ended.status}\n{ended.err[-4000:]}"
    wait_until(lambda: not arena.processes(), "the end of all")
    assert not list(arena.temporary.iterdir()), "temporary files are left"


def _wait(program: Program, lines: int) -> None:
    """Until it has printed so many lines, or has ended."""
    ready = lambda: program.out.count("line") >= lines or program.process.poll() is not None  # noqa: E731
    wait_until(ready, f"{lines} lines", WITHIN)


def _compare(name: str, ends: Ends) -> None:
    found, right = sorted(ends.rows()), right_rows()
    if isinstance(ends, WebhookEnds):
        numbers = Counter(number for number, _ in found)
        assert set(numbers) == set(range(LAST + 1)), f"{name}: numbers are missing"
        assert numbers <= ends.attempts, f"{name}: something counts more often than it was sent"
        assert _is_running(found), f"{name}: totals do not add up"
    elif ends.at_least_once:
        assert sorted(set(found)) == right, f"{name}: {set(found) ^ set(right)}"
    else:
        assert found == right, f"{name}: {Counter(found) - Counter(right)}, {Counter(right) - Counter(found)}"


def _is_running(rows: list[Row]) -> bool:
    """Whether totals are those of the numbers, each counted as often as it is there."""
    for key in range(5):
        own = sorted((total, number) for number, total in rows if number % 5 == key)
        so_far = 0
        for total, number in own:
            so_far += number
            if total != so_far:
                return False
    return True


def run_soak_case(seed: int) -> None:
    """A case of the soak, with all servers that are here, which stay for the next case."""
    addresses = _servers()
    with tempfile.TemporaryDirectory() as folder:
        run_case(seed, addresses, Path(folder))


@cache
def _servers() -> dict[str, str]:
    """Starts what there is; it ends with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    found: dict[str, str] = {}
    starts: dict[str, AbstractContextManager[Any]] = {
        "kafka": kafka_running(),
        "nats": nats_running(),
        "valkey": valkey_running(),
        "postgres": postgres_running(),
        "bucket": s3_running(Path(stack.enter_context(tempfile.TemporaryDirectory()))),
    }
    for name, running in starts.items():
        try:
            started = stack.enter_context(running)
        except Missing as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            continue
        if name == "bucket":
            os.environ.update(started)
        found[name] = f"s3://{BUCKET}" if name == "bucket" else started
    return found
