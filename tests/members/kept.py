"""A program with a source, state, a table of SQLite and snapshots, which scales itself and kills its own workers. What
it has done is in files, since it has several lives."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trio

import dataflow
import megaphone
from dataflow import sinks
from dataflow.operators.partitions import Partitions

EACH = 600  # records of a partition
PARTITIONS = ("a", "b", "c", "d", "e")


class Paced(Partitions[Any]):
    """Partitions that go on to their end when a file says so; until then only time goes on, from half of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def partitions(self) -> list[str]:
        """Their names."""
        return list(PARTITIONS)

    async def read(self, partition: str, position: Any) -> AsyncIterator[tuple[int, None, list[Any]]]:
        """The rest of one: its name and a number, each once."""
        for number in range(position or 0, EACH):
            while number >= EACH // 2 and not (self._folder / "go on").exists():
                await trio.sleep(0.002)
                yield number, None, []
            yield number + 1, None, [(f"{partition}{number % 3}", 1)]


def count(key: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """By key, how many there were."""
    total = (total or 0) + one
    return total, [(key, total)]


async def main(worker: dataflow.Worker, folder: Path, plan: list[tuple[str, int]]) -> None:
    """Worker 0 carries out a plan, step by step, over several lives."""
    (folder / f"worker {worker.index}").write_text(str(os.getpid()))
    with worker.dataflow("counts") as scope:
        records = scope.source(Paced(folder), name="paced")
        totals = megaphone.state_machine(scope.control(), records, fold=count, bins=16, name="totals")
        totals.sink(sinks.sqlite(folder / "out.db", "totals", columns=("key", "total"), key=("key",)))
    if worker.index == 0:
        await carry_out(worker, folder, plan)


async def carry_out(worker: dataflow.Worker, folder: Path, plan: list[tuple[str, int]]) -> None:
    """What is left of the plan. A line tells what was done, and with how many workers that life began."""
    with (folder / "done").open("a+") as done:
        done.seek(0)
        for what, number in plan[len(done.readlines()) :]:
            if what != "kill":
                change = worker.scale(number) if what == "scale" else worker.drain(number)
                await change.wait()
            print(f"{what} {number}, of {worker.peers}", file=done, flush=True)
            if what == "kill":
                os.kill(int((folder / f"worker {number}").read_text()), signal.SIGKILL)
                await trio.sleep_forever()
    (folder / "go on").touch()


def table(folder: Path) -> dict[str, int]:
    """What the sink shows."""
    with sqlite3.connect(folder / "out.db") as database:
        return dict(database.execute("select key, total from totals"))


def expected() -> dict[str, int]:
    """What it must be in the end."""
    return {f"{partition}{rest}": EACH // 3 for partition in PARTITIONS for rest in range(3)}
