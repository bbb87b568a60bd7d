"""Runs with a name, as processes: listed and saved from another shell; a changed program goes on beside the old."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from tests.launch.arena import SOON, Arena, Ended, Program, wait_until

# Counts the lines of a file that the test appends to: one key for each line, its running total into a table.
APP = """
import pathlib
import megaphone
from dataflow import sinks, sources

def count(key, one, total):
    total = (total or 0) + one
    return total, [(key, total)]

def counts(worker, folder, database, change):
    with worker.dataflow("counts") as scope:
        lines = scope.source(sources.lines(folder, batch=1, follow=True), name="lines")
        stream = change(lines.map(lambda line: (line.strip(), 1)))
        totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=8, name="totals")
        totals.sink(sinks.sqlite(database, "totals", columns=("key", "total"), key=("key",)), name="out")

async def main(worker, folder, database):
    counts(worker, folder, database, lambda stream: stream)

async def changed(worker, folder, database):
    counts(worker, folder, database, lambda stream: stream.map(lambda pair: (pair[0].upper(), 10 * pair[1])))
"""


@pytest.fixture
def place(arena: Arena) -> Arena:
    """With the program."""
    arena.write("app.py", APP)
    (arena.folder / "lines").mkdir()
    return arena


def append(place: Arena, *lines: str) -> None:
    with open(place.folder / "lines" / "a.txt", "a") as file:
        file.writelines(f"{line}\n" for line in lines)


def totals(place: Arena, database: str) -> dict[str, int]:
    path = place.folder / database
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=10.0)) as connection:
        there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'totals'").fetchone()
        return dict(connection.execute("SELECT key, total FROM totals").fetchall()) if there else {}


def has(place: Arena, database: str, expected: dict[str, int]) -> None:
    wait_until(lambda: totals(place, database) == expected, lambda: f"{expected}, not {totals(place, database)}", 60.0)


def command(place: Arena, *arguments: str, **options: object) -> Ended:
    return place.cli(*arguments, **options).end(within=60.0)


def run(place: Arena, main: str, *options: str, database: str) -> Program:
    return place.cli("run", f"app:{main}", "lines", database, "--every", "0.3", *options)


def named(place: Arena, name: str) -> None:
    wait_until(lambda: (place.folder / "runtime" / "dataflow" / f"{name}.sock").exists(), f"the run {name}", 60.0)


def stop(program: Program) -> None:
    program.mark_time()
    os.kill(program.pid, signal.SIGTERM)
    assert program.end().status == 143, program.err


def test_a_changed_program_goes_on_from_a_savepoint_beside_the_old_one(place: Arena) -> None:
    append(place, "a", "b", "a")
    old = run(place, "main", "--workers", "2", "--name", "old", "--recovery", "state", database="old.db")
    has(place, "old.db", {"a": 2, "b": 1})
    listed = command(place, "list")
    assert re.search(rf"^old +{old.pid} +2 +\d{{4}}-\d\d-\d\d ", listed.out, re.MULTILINE), listed.out
    saved = command(place, "save", "old", "before")
    assert re.fullmatch(r"counts: snapshot \d+, at time \d+, is kept as before\n", saved.out), saved.err
    append(place, "a", "c")
    has(place, "old.db", {"a": 3, "b": 1, "c": 1})

    start = ("--recovery", "other", "--from", "state/#before", "--name", "new")
    new = run(place, "changed", "--workers", "1", *start, database="new.db")
    has(place, "new.db", {"A": 10, "C": 10})  # what came after the savepoint, by the changed program
    append(place, "b", "a", "B")
    has(place, "old.db", {"a": 4, "b": 2, "c": 1, "B": 1})  # the old one was not fenced
    has(place, "new.db", {"A": 20, "C": 10, "B": 20})
    again = command(place, "save", "new", "later")
    assert again.status == 0, again.err
    (told,) = json.loads(command(place, "status", "new", "--json").out)["workers"]
    assert dict(told["marked"])["snapshot"] >= 1
    inspected = command(place, "snapshots", "other", "--inspect", "totals", "--snapshot", "later")
    found = dict(re.findall(r"^\s*\d+\s+(\w+)\s+(\d+)", inspected.out, re.MULTILINE))
    assert found == {"a": "2", "b": "1", "A": "20", "B": "20", "C": "10"}, inspected.out

    stop(new)
    stop(old)
    assert os.listdir(place.folder / "runtime" / "dataflow") == []


def test_what_cannot_be_saved_is_told(place: Arena) -> None:
    append(place, "a")
    plain = run_without_recovery(place)
    named(place, "plain")
    refused = command(place, "save", "plain", "x")
    assert (refused.status, refused.message.partition(": say")[0]) == (1, "dataflow: this run keeps no snapshots")
    missing = command(place, "save", "nobody", "x")
    assert missing.status == 1
    assert "there is no run called 'nobody'" in missing.message
    assert missing.message.endswith("there are: plain")
    second = place.cli("run", "app:main", "lines", "x.db", "--name", "plain").end(within=60.0)
    assert second.status == 1
    assert second.message.startswith("dataflow: there is a run called 'plain' already")
    wrong = place.cli("run", "app:main", "lines", "x.db", "--name", "a/b").end(within=60.0)
    assert (wrong.status, wrong.message.partition(":")[2].partition(":")[0]) == (2, " a run cannot be called 'a/b'")
    stop(plain)
    assert command(place, "list").out.startswith("no run is here")


def run_without_recovery(place: Arena) -> Program:
    return place.cli("run", "app:main", "lines", "plain.db", "--workers", "2", "--name", "plain")


def test_hostile_clients_and_a_worker_that_dies(place: Arena) -> None:
    append(place, "a", "b")
    program = run(place, "main", "--workers", "2", "--name", "app", "--recovery", "state", database="out.db")
    has(place, "out.db", {"a": 1, "b": 1})
    path = place.folder / "runtime" / "dataflow"
    clients = []
    for said in (
        b"",
        b"\xff" * 20,
        struct.pack("<Q", 5) + b"hello",
        struct.pack("<Q", 1 << 62),
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        client = socket.socket(socket.AF_UNIX)
        clients.append(client)
        fd = os.open(path, os.O_RDONLY)  # the path may be longer than an address
        try:
            client.connect(f"/proc/self/fd/{fd}/app.sock")
        finally:
            os.close(fd)
        client.sendall(said)
    victim = program.workers(2)[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: program.err.count("from snapshot") == 1, "the next life", 60.0)
    append(place, "a")
    has(place, "out.db", {"a": 2, "b": 1})
    saved = command(place, "save", "app", "x", "--timeout", "50")
    assert saved.status == 0, saved.err
    for client in clients:
        client.close()
    manifest = json.loads(Path(place.folder, "state", "counts", "savepoint-x").read_bytes().splitlines()[0])
    assert manifest["number"] == int(re.findall(r"snapshot (\d+)", saved.out)[0])
    stop(program)


def test_one_process_ends_while_somebody_waits(place: Arena) -> None:
    """A run in one process; whoever asks learns that it has ended."""
    append(place, "a")
    program = run(place, "main", "--name", "one", "--recovery", "state", database="out.db")
    has(place, "out.db", {"a": 1})
    assert command(place, "save", "one", "x").status == 0
    os.kill(program.pid, signal.SIGSTOP)  # it cannot answer
    waiting = place.cli("save", "one", "y")
    wait_until(lambda: bool(waiting_at(place, waiting)), "a question", SOON)
    os.kill(program.pid, signal.SIGKILL)
    os.kill(program.pid, signal.SIGCONT)
    ended = waiting.end(within=60.0)
    told = "dataflow: 'one' ended before it answered, or is asked by too many at once"
    assert (ended.status, ended.message) == (1, told)
    program.end()


def waiting_at(place: Arena, program: Program) -> list[str]:
    """The sockets of a program, once it has connected."""
    found = []
    for fd in os.listdir(f"/proc/{program.pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{program.pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
    return [each for each in found if each.startswith("socket:")]
