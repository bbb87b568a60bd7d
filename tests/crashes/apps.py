"""Programs that are killed, as users would write them: `python -m dataflow run tests.crashes.apps:words ...`.

Each says now and then how far it is, on standard output: whoever kills it waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import trio

import dataflow
import megaphone
from dataflow import Stream, sinks, sources
from dataflow.columns import Columns
from nexmark.events.config import Config
from nexmark.queries.operators import MigratableOperators
from nexmark.queries.queries import NEEDS, QUERIES, QueryOptions
from nexmark.runs.running import RunPlan, readable
from tests.nexmark.runs import WINDOWS, Plain, options_of

PAUSE = 0.002  # seconds for a line: so that there is time to kill somebody


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A word's running total."""
    total = (total or 0) + one
    return total, [(word, total)]


def split(line: str) -> Iterable[tuple[str, int]]:
    """The words of a line, each with a one; takes its time, and says so."""
    time.sleep(PAUSE)
    print("line", flush=True)
    return [(word, 1) for word in line.split()]


async def words(worker: dataflow.Worker, folder: str, target: str) -> None:
    """Running counts of the words in a folder of text files, into SQLite, or into files if the target is a folder."""
    with worker.dataflow("words") as scope:
        lines = scope.source(sources.lines(folder, batch=5), name="lines")
        totals = megaphone.state_machine(scope.control(), lines.flat_map(split), fold=count, bins=16, name="totals")
        if Path(target).suffix == ".db":
            totals.sink(sinks.sqlite(target, "totals", columns=("word", "total"), key=("word",)), name="out")
        else:
            totals.sink(sinks.json_lines(target, columns=("word", "total")), name="out")


def query_plan(query: str, events: int) -> RunPlan:
    """A query over so many events, in many small epochs."""
    windows = options_of(query, WINDOWS.get(query, {}))
    config = Config(seed=7, rate=100, in_flight=20, hot_seller_ratio=4, active_people=50)
    return RunPlan(query, config, events=events, bins=8, batch=max(1, events // 40), windows=windows)


async def nexmark(worker: dataflow.Worker, query: str, events: str, target: str) -> None:
    """A query of NEXMark, fed by main, into files."""
    plan = query_plan(query, int(events))
    source = plan.source()
    with worker.dataflow(query) as scope:
        made = {kind: scope.input(kind, of=Columns) for kind in NEEDS[query]}
        operators = Plain(MigratableOperators(scope.control(), plan.bins))
        streams = {kind: stream for kind, (_, stream) in made.items()}
        options = QueryOptions(grid=source.grid, **plan.windows)
        results: Stream[Columns] = QUERIES[query](streams, operators, options)
        out = results.columns.map(readable).sink(sinks.json_lines(target), name="out")
        probe = out.probe()
    handles = {kind: handle for kind, (handle, _) in made.items()}
    for number in range(source.epochs):
        at = source.time(number)
        if at < worker.resume_at:
            continue
        for handle in handles.values():
            handle.advance_to(at)
        for kind, columns in source.share(number, worker.index, worker.peers).items():
            if len(next(iter(columns.values()))):
                handles[kind].send(dict(columns))
        await trio.sleep(5 * PAUSE)
        print("line", flush=True)
        if number >= 2:
            await probe.wait_passed(source.time(number - 2))
    for handle in handles.values():
        handle.close()
