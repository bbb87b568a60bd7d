"""The programs on docs/connectors.md do what the page says."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import dataflow
from dataflow import sinks
from tests.connectors.lives import Crashed, Lives
from tests.engine.harness import Run

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"
TEXT = "one two two\nthree three three\n" * 20


def program(number: int) -> dict[str, Any]:
    """What a program of the page defines."""
    block = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[number]
    assert len([line for line in block.splitlines() if line.strip()]) <= 32, "the page promises thirty lines"
    defined: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, f"{PAGE.name}, program {number}", "exec"), defined)
    return defined


@pytest.mark.parametrize("run", [Run(1), Run(2), Run(2, seed=0)], ids=str)
def test_the_word_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name in "ab":
        (tmp_path / "texts" / name).write_text(TEXT)
    run(program(0)["main"], str(tmp_path / "texts"), str(tmp_path / "out.db"))
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
    source = program(1)["Tables"](tmp_path / "in.db", ['"left"', '"right"'], batch=4)
    store: dict[str, tuple[int, int]] = {}
    rows: list[Any] = []
    totals = program(2)["Totals"](store)

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


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]
