"""Two oracles that share nothing give the same rows: plain Python, and Spark SQL over Parquet."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow
from nexmark.answers import oracle, spark_oracle
from nexmark.answers.verifying import Difference, random_updates
from nexmark.events import files
from nexmark.events.config import SECOND, Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows
from nexmark.queries.queries import PAPERS
from nexmark.runs.running import RunPlan, main
from nexmark.runs.sources import with_plain
from tests.nexmark.cases import TRACE, Row, adverse_inputs
from tests.nexmark.runs import options_of, rows_of

CONFIGS = {
    "slow": Config(seed=1, rate=100),
    "fast, out of order": Config(seed=2, rate=10_000, group=100),
    "many persons, nothing hot": Config(
        seed=3, rate=50, persons=10, auctions=20, bids=20, hot_seller_ratio=1, hot_auction_ratio=1, hot_bidder_ratio=1
    ),
    "few in flight, from a late base": Config(seed=4, rate=300, in_flight=5, group=7, base_time=10**18 + 1),
}
WINDOWS: dict[str, dict[str, Any]] = {
    "q5": {"window": 3 * SECOND, "slide": 2 * SECOND},
    "q7": {"window": SECOND + 1},
    "q8": {"window": 5 * SECOND},
    "q11": {"gap": SECOND // 50},
    "q12": {"window": SECOND, "size": 100, "times": [n * SECOND for n in range(25)]},
    **{query: {"day": 2 * SECOND} for query in ("q15", "q16", "q17", "q18", "q19")},
}


# What is left out differs from these in nothing that Spark could see.
ADVERSE = ("no events", "all at the same time", "gaps of hours", "one at a time closes, in the order of ids")


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    """For a few thousand rows, compiling and adapting a plan takes Spark far longer than running it."""
    hasty = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name) for name in hasty}
    for name, value in hasty.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def check(session: Any, events: dict[str, list[Row]], query: str, **windows: Any) -> int:
    """The number of rows, if the two agree on them."""
    expected = Counter(oracle.QUERIES[query](events, **windows))
    assert Counter(spark_oracle.answer(session, query, **windows)) == expected
    return expected.total()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_oracles_agree_on_generated_events(session: Any, tmp_path: Path, config: Config) -> None:
    generator = Generator(config, with_plain({"bid": ("channel", "url", "extra")}))
    files.write(tmp_path, generator, 2500, slice_of=700)
    spark_oracle.load(session, tmp_path)
    events = {kind: rows(table) for kind, table in generator.events(range(2500)).items()}
    for query in oracle.QUERIES:
        assert check(session, events, query)
        assert query not in WINDOWS or check(session, events, query, **WINDOWS[query])


@pytest.mark.parametrize("name", ["the trace", *ADVERSE])
def test_the_oracles_agree_on_adverse_inputs(session: Any, tmp_path: Path, name: str) -> None:
    events = TRACE if name == "the trace" else adverse_inputs()[name]
    columns = {
        "person": ("event", "id", "name", "city", "state", "date_time"),
        "auction": ("event", "id", "reserve", "date_time", "expires", "seller", "category"),
        "bid": ("event", "auction", "bidder", "price", "date_time"),
    }
    for kind, path in files.paths(tmp_path).items():
        pq.write_table(pa.Table.from_pylist(events[kind], schema=files.schema(kind, columns[kind])), path)
    spark_oracle.load(session, tmp_path)
    for query in (*PAPERS, "q0", "q9", "q11", "q12", "q15", "q17", "q18", "q19"):
        check(session, events, query)


@pytest.mark.parametrize("seed", [21, 22])
def test_the_engine_agrees_with_spark_while_state_moves(session: Any, tmp_path: Path, seed: int) -> None:
    """Compiled folds on workers that share this process."""
    config = Config(seed=seed, rate=1000, group=10 * (seed - 20), base_time=seed)
    files.write(tmp_path, Generator(config, with_plain({"bid": ("channel", "url", "extra")})), 6000)
    spark_oracle.load(session, tmp_path)
    for query in oracle.QUERIES if seed == 22 else PAPERS:
        windows = WINDOWS.get(query, {}) if seed == 22 and query not in ("q5", "q12") else {}
        plan = RunPlan(query, config, events=6000, bins=16, batch=400, windows=options_of(query, windows), keep=True)
        plan = replace(plan, updates=random_updates(plan, 4, 15, seed))
        results = dataflow.execute(main, plan, workers=4, in_process=True)
        expected = Counter(spark_oracle.answer(session, query, **plan.oracle_options()))
        assert expected
        assert not Difference.between(expected, rows_of(results)), query


def test_what_is_missing_is_named(session: Any, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"person\.parquet does not exist; python -m nexmark generate writes it"
    ):
        spark_oracle.load(session, tmp_path)
    with pytest.raises(LookupError, match="no query 'q23'; there are q0, q1, q2"):
        spark_oracle.answer(session, "q23")
