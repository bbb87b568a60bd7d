"""A query of NEXMark to be killed: `python -m tests.kills.killed_query WORKERS STATE QUERY EVENTS TARGET`.

It says after each epoch how far it is, on standard output: whoever kills it waits for that.
"""

from __future__ import annotations

import sys

import trio

import dataflow
from dataflow import Stream, sinks
from dataflow.columns import Columns
from nexmark.events.config import Config
from nexmark.queries.operators import MigratableOperators
from nexmark.queries.options import QueryOptions
from nexmark.queries.queries import NEEDS, QUERIES
from nexmark.runs.running import RunPlan, readable
from tests.nexmark.runs import WINDOWS, Plain, options_of

PAUSE = 0.01  # seconds for an epoch: so that there is time to kill somebody


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
        await trio.sleep(PAUSE)
        print("line", flush=True)
        if number >= 2:
            await probe.wait_passed(source.time(number - 2))
    for handle in handles.values():
        handle.close()


if __name__ == "__main__":
    workers, state, *arguments = sys.argv[1:]
    recovery = dataflow.Recovery(state, every=0.2, restarts=100)
    dataflow.execute(nexmark, *arguments, workers=int(workers), recovery=recovery)
