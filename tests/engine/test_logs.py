"""Logging of a run: who says it, and not too often."""

from __future__ import annotations

import json
import logging

from dataflow.run.logs import JsonLines, Limit, TextLines, place_of


def record(line: int = 1, **more: object) -> logging.LogRecord:
    """What a program logs at a line."""
    made = logging.LogRecord("shop", logging.INFO, "shop.py", line, "sold %d", (3,), None)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_one_line_of_code_says_so_much_each_second_and_the_rest_is_counted() -> None:
    now = 0.0
    limit = Limit(most=2, clock=lambda: now)
    assert [limit.filter(record()) for _ in range(5)] == [True, True, False, False, False]
    assert limit.filter(record(line=2))  # another line of code is another matter
    now = 1.0
    next_one = record()
    assert limit.filter(next_one)
    assert TextLines().format(next_one).endswith("sold 3 (3 more like this were left out)")
    assert json.loads(JsonLines().format(next_one))["left_out"] == 3
    after = record()
    assert limit.filter(after) and "left_out" not in json.loads(JsonLines().format(after))


def test_lines_say_where_they_are_from() -> None:
    made = record(worker=1, dataflow="orders", operator="totals (#3)")
    assert TextLines().format(made).endswith("INFO shop [worker 1, orders, totals (#3)] sold 3")
    told = json.loads(JsonLines().format(made))
    assert {name: told[name] for name in ("level", "logger", "worker", "dataflow", "operator", "message")} == {
        "level": "info", "logger": "shop", "worker": 1, "dataflow": "orders", "operator": "totals (#3)",
        "message": "sold 3",
    }  # fmt: skip


def test_outside_of_steps_nothing_is_said_of_operators() -> None:
    assert place_of(None) == {}
