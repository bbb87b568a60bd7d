"""Queries over a source with positions, crashed at any turn: the answers are the oracle's."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dataflow
from dataflow import sinks
from dataflow.columns import Columns
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import Recovery
from dataflow.testing import Crashed, simulate
from nexmark.answers import oracle
from nexmark.events.config import Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows
from nexmark.queries.operators import MigratableOperators, NativeOperators
from nexmark.queries.options import QueryOptions
from nexmark.queries.queries import QUERIES
from nexmark.runs import partitions
from nexmark.runs.partitions import EventShares, event_streams
from nexmark.runs.running import readable
from nexmark.runs.sources import Generated
from tests.connectors.lives import Paced
from tests.nexmark.runs import Plain

CONFIG = Config(seed=3, rate=1000, in_flight=5, auctions=10, bids=40)
EVENTS = 600


@pytest.mark.parametrize("variant", ["native", "migratable"])
@pytest.mark.parametrize("query", ["q3", "q4", "q5", "q8"])
def test_crashed_queries_give_the_oracles_answers(
    query: str, variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = []
    monkeypatch.setattr(partitions, "EventShares", lambda *options: Paced(EventShares(*options), seed=1))

    async def main(worker: dataflow.Worker) -> None:
        if worker.index == 0:
            began.append(worker.resume_at)
        with worker.dataflow(query) as scope:
            streams, grid = event_streams(scope, query, CONFIG, EVENTS, batch=20, shares=3)
            ops = NativeOperators() if variant == "native" else MigratableOperators(scope.control(), 8)
            results: Any = QUERIES[query](streams, Plain(ops), QueryOptions(grid=grid))
            results.sink(sinks.parquet(tmp_path / "out"))

    chance = random.Random(f"{query} {variant}")
    recovery = Recovery(MemoryStorage(), every=0.1)
    for life in range(5):
        try:
            turns = chance.randrange(60, 350) if life < 4 else None
            simulate(main, workers=chance.choice([1, 2, 3]), seed=life, recovery=recovery, crash_after=turns)
            break
        except Crashed:
            continue
    tables = [Columns(pq.read_table(path)) for path in (tmp_path / "out").glob("*.parquet")]
    seen = Counter(row for table in tables for row in readable(table).rows())
    events = {kind: rows(table) for kind, table in Generator(CONFIG).events(range(EVENTS)).items()}
    assert len(began) > 1 and seen
    assert seen == Counter(oracle.QUERIES[query](events))


def test_a_position_within_an_epoch_is_refused() -> None:
    source = EventShares(Generated(CONFIG, {"bid": ("auction",)}, 100, 20), "bid", 2)
    assert [position for position, _, _ in source.read("1", 40)] == [60, 80, 100]
    with pytest.raises(dataflow.DataflowError, match="30 is no position where an epoch of 20 events begins"):
        next(source.read("1", 30))
