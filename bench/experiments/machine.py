"""Yardsticks: what the simplest things cost here, so that all other figures can be read as multiples of them."""

import time
from collections.abc import Callable

import trio

from bench.registry import benchmark
from bench.run import Run
from bench.timing import best_of

Body = Callable[[int], object]


@benchmark("machine", "yardsticks: a call, a loop over a list, a dict update, a trio checkpoint")
def machine(run: Run) -> None:
    repeats = 5 if run.quick else 25
    count = 200_000 if run.quick else 1_000_000
    with run.progress("yardsticks", 4) as bar:
        run.report("call", _per_item(_calls, count, repeats) * 1e6, "µs")
        bar.advance()
        run.report("append loop", 1 / _per_item(_appends, count, repeats), "rows/s")
        bar.advance()
        run.report("dict update", 1 / _per_item(_dict_updates, count, repeats), "updates/s")
        bar.advance()
        run.report("trio checkpoint", min(trio.run(_checkpoints, count // 20) for _ in range(repeats)) * 1e6, "µs")
        bar.advance()


def _per_item(body: Body, count: int, repeats: int) -> float:
    return best_of(repeats, lambda: body(count)) / count


def _calls(count: int) -> None:
    """One argument in, one value out, in a loop: what a user's function costs for each record it is given."""
    function = _successor
    for row in range(count):
        function(row)


def _successor(row: int) -> int:
    return row + 1


def _appends(count: int) -> list[int]:
    """The plain Python loop that any map over rows is held against: one expression a row, appended to a list."""
    rows = []
    for row in range(count):
        rows.append(row + 1)
    return rows


def _dict_updates(count: int) -> dict[int, int]:
    """A word count's inner step over a thousand keys: look up, add one, store."""
    counts: dict[int, int] = {}
    for row in range(count):
        key = row % 1000
        counts[key] = counts.get(key, 0) + 1
    return counts


async def _checkpoints(count: int) -> float:
    """Seconds per checkpoint, taken inside the loop so that trio's start is not part of it."""
    start = time.perf_counter()
    for _ in range(count):
        await trio.lowlevel.checkpoint()
    return (time.perf_counter() - start) / count
