"""Queries 0 to 22 as Spark SQL over Parquet files: a second opinion, from an engine that shares nothing with ours.

The one module of this package that imports pyspark (`pip install 'megaphone-dataflow[spark]'`, and Java 17 or newer).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from nexmark.events.files import paths
from nexmark.events.rows import Cell

SECOND = 1_000_000_000
DAY = 24 * 3600 * SECOND
RANKS = ("true", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


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
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; python -m nexmark generate writes it")
        session.read.parquet(path.as_uri()).createOrReplaceTempView(kind)


def answer(session: SparkSession, query: str, **options: int | Sequence[int]) -> list[tuple[Cell, ...]]:
    """The rows of a query (`q0` to `q22`) over the loaded events; options are windows, as of the other oracle's."""
    if query not in QUERIES:
        raise LookupError(f"there is no query {query!r}; there are {', '.join(QUERIES)}")
    return [tuple(row) for row in session.sql(QUERIES[query](**options)).collect()]


def q0() -> str:
    return "SELECT auction, bidder, price, date_time FROM bid"


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
        SELECT *
        FROM (
            SELECT auction.id, expires, category, seller, price, bidder,
                   auction.date_time, bid.date_time AS bid_time,
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


def q9() -> str:
    return f"{CLOSED} SELECT id AS auction, seller, category, date_time, expires, bidder, price, bid_time FROM closed"


def q10() -> str:
    minute = 60 * SECOND
    return f"SELECT auction, bidder, price, date_time, date_time DIV {minute} * {minute} AS minute FROM bid"


def q11(gap: int = 10 * SECOND) -> str:
    return f"""
        SELECT bidder, COUNT(*) AS bids, MIN(date_time) AS start, MAX(date_time) + {gap} AS end
        FROM (
            SELECT *, SUM(begins) OVER (PARTITION BY bidder ORDER BY date_time, event) AS session
            FROM (
                SELECT *, CASE WHEN date_time - LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time, event)
                                    <= {gap} THEN 0 ELSE 1 END AS begins
                FROM bid))
        GROUP BY bidder, session"""


def q12(window: int = 10 * SECOND, size: int = 1, times: Sequence[int] = ()) -> str:
    entered = f"ARRAY({', '.join(f'{time}L' for time in times)})[event DIV {size}]" if times else "date_time"
    return f"""
        SELECT bidder, COUNT(*) AS bids, start, start + {window} AS end
        FROM (SELECT bidder, {entered} DIV {window} * {window} AS start FROM bid)
        GROUP BY bidder, start"""


def q13() -> str:
    return """
        SELECT auction, bidder, price, date_time, value
        FROM bid JOIN (SELECT id AS key, id * id % 10007 AS value FROM RANGE(10000)) ON auction % 10000 = key"""


def q14() -> str:
    return f"""
        SELECT auction, bidder, price * 908 DIV 1000 AS price,
               CASE WHEN hour BETWEEN 8 AND 18 THEN 'dayTime'
                    WHEN hour <= 6 OR hour >= 20 THEN 'nightTime' ELSE 'otherTime' END AS time_of_day,
               date_time, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS letters
        FROM (SELECT *, date_time DIV {3600 * SECOND} % 24 AS hour FROM bid)
        WHERE price * 908 > 1000000000 AND price * 908 < 50000000000"""


def _numbers() -> str:
    """Bids, different bidders and different auctions, in all and by rank of price."""
    return ", ".join(
        f"COUNT({distinct}{column}) FILTER (WHERE {rank})"
        for distinct, column in (("", "*"), ("DISTINCT ", "bidder"), ("DISTINCT ", "auction"))
        for rank in RANKS
    )


def q15(day: int = DAY) -> str:
    return f"SELECT date_time DIV {day} * {day} AS day, {_numbers()} FROM bid GROUP BY 1"


def q16(day: int = DAY) -> str:
    return f"""
        SELECT channel, day, MAX(date_time - day) DIV {60 * SECOND}, {_numbers()}
        FROM (SELECT *, date_time DIV {day} * {day} AS day FROM bid)
        GROUP BY channel, day"""


def q17(day: int = DAY) -> str:
    ranks = ", ".join(f"COUNT(*) FILTER (WHERE {rank})" for rank in RANKS)
    return f"""
        SELECT auction, date_time DIV {day} * {day} AS day, {ranks},
               MIN(price), MAX(price), SUM(price) DIV COUNT(*), SUM(price)
        FROM bid
        GROUP BY 1, 2"""


def _first_of_day(by: str, order: str, day: int, most: int) -> str:
    return f"""
        SELECT *
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {by}, day ORDER BY {order}) AS rank
              FROM (SELECT *, date_time DIV {day} * {day} AS day FROM bid))
        WHERE rank <= {most}"""


def q18(day: int = DAY) -> str:
    last = _first_of_day("bidder, auction", "date_time DESC, event DESC", day, 1)
    return f"SELECT auction, bidder, price, date_time FROM ({last})"


def q19(day: int = DAY) -> str:
    best = _first_of_day("auction", "price DESC, date_time, event", day, 10)
    return f"SELECT auction, day, rank, bidder, price, date_time FROM ({best})"


def q20() -> str:
    return """
        SELECT auction, bidder, price, bid.date_time, item_name, initial_bid, reserve, expires, seller, category
        FROM bid JOIN auction ON bid.auction = auction.id
        WHERE category = 10"""


def q21() -> str:
    return """
        SELECT *
        FROM (SELECT auction, bidder, price, channel,
                     CASE LOWER(channel) WHEN 'apple' THEN 0 WHEN 'google' THEN 1 WHEN 'facebook' THEN 2
                                         WHEN 'baidu' THEN 3
                                         ELSE CAST(NULLIF(REGEXP_EXTRACT(url, 'channel_id=([0-9]+)', 1), '') AS BIGINT)
                     END AS channel_id
              FROM bid)
        WHERE channel_id IS NOT NULL"""


def q22() -> str:
    parts = ", ".join(f"SPLIT(url, '/')[{place}]" for place in (3, 4, 5))
    return f"SELECT auction, bidder, price, channel, {parts} FROM bid"


QUERIES: Mapping[str, Callable[..., str]] = {
    f"q{n}": query
    for n, query in enumerate(
        (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22)
    )
}
