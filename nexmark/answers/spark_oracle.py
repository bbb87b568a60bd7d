"""Queries 1 to 8 as Spark SQL over Parquet files: a second opinion, from an engine that shares nothing with ours.

The one module of this package that imports pyspark (`pip install 'megaphone-dataflow[spark]'`, and Java 17 or newer).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from nexmark.events.files import paths
from nexmark.events.rows import Value

SECOND = 1_000_000_000


@contextmanager
def local_session(directory: Path) -> Iterator[SparkSession]:
    """A quiet session on this machine alone, that keeps what it must in a folder."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("nexmark verify")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def load(session: SparkSession, directory: Path) -> None:
    """Make the events in a folder those that `answer` is about."""
    for kind, path in paths(directory.resolve()).items():
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist; python -m nexmark generate writes it")
        session.read.parquet(path.as_uri()).createOrReplaceTempView(kind)


def answer(session: SparkSession, query: str, **options: int) -> list[tuple[Value, ...]]:
    """The rows of a query (`q1` to `q8`) over the loaded events; options are windows, as of the other oracle's."""
    if query not in QUERIES:
        raise LookupError(f"there is no query {query!r}; there are {', '.join(QUERIES)}")
    return [tuple(row) for row in session.sql(QUERIES[query](**options)).collect()]


def q1() -> str:
    return "SELECT auction, bidder, price * 89 DIV 100 AS price, date_time FROM bid"


def q2() -> str:
    return "SELECT auction, price FROM bid WHERE auction % 123 = 0"


def q3() -> str:
    return """
        SELECT name, city, state, auction.id AS auction
        FROM auction JOIN person ON seller = person.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')"""


# Whatever has the rank 1 wins; an auction without a valid bid does not appear.
CLOSED = """
    WITH closed AS (
        SELECT id, expires, category, seller, price
        FROM (
            SELECT auction.id, expires, category, seller, price,
                   ROW_NUMBER() OVER (PARTITION BY auction.id ORDER BY price DESC, bid.event) AS rank
            FROM auction JOIN bid ON auction.id = bid.auction
            WHERE price >= reserve AND bid.date_time >= auction.date_time AND bid.date_time < expires)
        WHERE rank = 1)"""


def q4() -> str:
    return f"""{CLOSED}
        SELECT category, SUM(price) OVER so_far DIV COUNT(price) OVER so_far AS average
        FROM closed
        WINDOW so_far AS (PARTITION BY category ORDER BY expires, id ROWS UNBOUNDED PRECEDING)"""


def q5(window: int = 60 * SECOND, slide: int = SECOND) -> str:
    first_end = f"(date_time DIV {slide} + 1) * {slide}"
    return f"""
        SELECT window_end, auction, bids
        FROM (
            SELECT window_end, auction, COUNT(*) AS bids,
                   ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC, auction) AS rank
            FROM (
                SELECT auction, EXPLODE(SEQUENCE({first_end}, date_time + {window}, {slide})) AS window_end
                FROM bid
                WHERE {first_end} <= date_time + {window})
            GROUP BY window_end, auction)
        WHERE rank = 1"""


def q6() -> str:
    return f"""{CLOSED}
        SELECT seller, SUM(price) OVER last_ten DIV COUNT(price) OVER last_ten AS average
        FROM closed
        WINDOW last_ten AS (PARTITION BY seller ORDER BY expires, id ROWS 9 PRECEDING)"""


def q7(window: int = 10 * SECOND) -> str:
    return f"""
        SELECT window_end, auction, bidder, price
        FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC, event) AS rank
            FROM (SELECT *, (date_time DIV {window} + 1) * {window} AS window_end FROM bid))
        WHERE rank = 1"""


def q8(window: int = 12 * 3600 * SECOND) -> str:
    return f"""
        SELECT DISTINCT person.id AS person, name, person.date_time DIV {window} * {window} AS window_start
        FROM person JOIN auction ON person.id = seller
        WHERE person.date_time DIV {window} = auction.date_time DIV {window}"""


QUERIES: Mapping[str, Callable[..., str]] = {f.__name__: f for f in (q1, q2, q3, q4, q5, q6, q7, q8)}
