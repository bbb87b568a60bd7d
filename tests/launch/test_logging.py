"""`run --log-level`: every process of a run logs, and says from where."""

from __future__ import annotations

import json

from tests.launch.arena import Arena

APP = """
import logging

log = logging.getLogger("shop")

def sell(n):
    log.info("sold %d", n)
    log.debug("not told")
    return n

async def main(worker):
    with worker.dataflow("orders") as scope:
        feed, stream = scope.input(name="feed")
        stream.map(sell, name="sell").probe()
    log.warning("open")
    feed.send([worker.index])
"""


def test_lines_of_all_workers_name_worker_dataflow_and_operator(arena: Arena) -> None:
    arena.write("shop.py", APP)
    ended = arena.cli("run", "shop:main", "--workers", "2", "--log-level", "info", "--log-format", "json").end()
    assert ended.status == 0
    told = [json.loads(line) for line in ended.err.splitlines()]
    names = ("worker", "dataflow", "operator", "message")
    sold = sorted(tuple(each[name] for name in names) for each in told if "operator" in each)
    assert sold == [(0, "orders", "sell (#1)", "sold 0"), (1, "orders", "sell (#1)", "sold 1")]
    assert sorted(each["worker"] for each in told if each["message"] == "open") == [0, 1]


def test_without_it_python_logs_as_it_does_by_itself(arena: Arena) -> None:
    arena.write("shop.py", APP)
    ended = arena.cli("run", "shop:main").end()
    assert ended.status == 0 and ended.err.splitlines() == ["open"]


def test_an_unknown_level_is_refused(arena: Arena) -> None:
    arena.write("shop.py", APP)
    ended = arena.cli("run", "shop:main", "--log-level", "loud").end()
    assert ended.status == 2 and "invalid choice: 'loud'" in ended.err
