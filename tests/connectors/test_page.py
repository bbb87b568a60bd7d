"""The programs on docs/connectors.md and docs/writing-connectors.md do what the pages say."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio

import dataflow
from dataflow import sinks, sources
from dataflow.clients.asyncio_thread import AsyncioThread
from dataflow.recovery.memory import MemoryStorage
from tests.connectors.lives import Crashed, Lives, Tripping
from tests.engine.harness import Run, failsafe

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "one two two\nthree three three\n" * 20


def programs(page: str) -> list[str]:
    """The programs of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def program(page: str, number: int) -> dict[str, Any]:
    """What a program of a page defines."""
    block = programs(page)[number]
    assert len([line for line in block.splitlines() if line.strip()]) <= 32, "the page promises thirty lines"
    defined: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, f"{page}, program {number}", "exec"), defined)
    return defined


@pytest.mark.parametrize("run", [Run(1), Run(2), Run(2, seed=0)], ids=str)
def test_the_word_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name in "ab":
        (tmp_path / "texts" / name).write_text(TEXT)
    run(program("connectors.md", 0)["main"], str(tmp_path / "texts"), str(tmp_path / "out.db"))
    connection = sqlite3.connect(tmp_path / "out.db")
    assert dict(connection.execute("SELECT * FROM totals").fetchall()) == dict(Counter(TEXT.split() * 2))
    connection.close()


@pytest.mark.parametrize("seed", range(3))
def test_the_source_of_tables_and_the_sink_of_totals(seed: int, tmp_path: Path) -> None:
    """Together, with a crash in between; the source deletes what is in a snapshot."""
    connection = sqlite3.connect(tmp_path / "in.db")
    for name in ("left", "right"):
        connection.execute(f'CREATE TABLE "{name}" (word, number)')
        connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?)', [(f"w{n % 3}", n) for n in range(40)])
    connection.commit()
    connection.close()
    source = program("writing-connectors.md", 0)["Tables"](tmp_path / "in.db", ['"left"', '"right"'], batch=4)
    store: dict[str, tuple[int, int]] = {}
    rows: list[Any] = []
    totals = program("writing-connectors.md", 1)["Totals"](store)

    async def main(worker: dataflow.Worker) -> None:
        from dataflow.state import native

        with worker.dataflow() as scope:
            stream = scope.source(source)
            stream.sink(sinks.callback(lambda time, batch: rows.extend(batch)), name="rows")
            counts = native.state_machine(stream.map(lambda row: (row[0], 1)), fold=count, name="counts")
            counts.sink(totals)

    lives = Lives(every=1e-9)
    with pytest.raises(Crashed):
        lives.live(main, 2, seed, 250)
    lives.live(main, 3, seed)
    assert {word: total for word, (_, total) in store.items()} == {"w0": 28, "w1": 26, "w2": 26}
    assert set(rows) == {(f"w{n % 3}", n) for n in range(40)}
    connection = sqlite3.connect(tmp_path / "in.db")
    assert connection.execute('SELECT count(*) FROM "left"').fetchone() == (0,)
    connection.close()


def test_the_source_by_an_asyncio_library() -> None:
    """From where it was, through a failure."""
    asked: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = int(await reader.readline())
        asked.append(start)
        writer.write(b"".join(b"line %d\n" % number for number in range(start, 50)))
        await writer.drain()
        writer.close()

    loop = AsyncioThread()
    try:
        server = trio.run(loop.run, asyncio.start_server(answer, "127.0.0.1", 0))
        source = program("writing-connectors.md", 2)["Lines"](server.sockets[0].getsockname()[1])
        seen: list[str] = []
        trips = Tripping("line 30")

        async def main(worker: dataflow.Worker) -> None:
            with worker.dataflow() as scope:
                lines = scope.source(source).map(trips)
                lines.sink(sinks.callback(lambda time, batch: seen.extend(batch)))

        with failsafe(60):
            recovery = dataflow.Recovery(MemoryStorage(), every=0.001)
            dataflow.execute(main, workers=2, in_process=True, recovery=recovery)
        assert sorted(set(seen), key=lambda line: int(line.split()[1])) == [f"line {number}" for number in range(50)]
        assert trips.left == [] and len(asked) == 2
    finally:
        loop.close(lambda: _close(server))


async def _close(server: asyncio.Server) -> None:
    server.close()


def test_the_connectors_of_the_page_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example names what exists, with arguments that are right; nobody is asked for anything."""
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(programs("connectors.md")[1:], 1):
        defined: dict[str, Any] = {}
        exec(compile(block, f"connectors.md, program {number}", "exec"), defined)
        made = [value for value in defined.values() if isinstance(value, sinks.Sink | sources.Partitions)]
        assert made, block


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]
