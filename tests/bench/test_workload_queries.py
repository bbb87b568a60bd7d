"""The workloads as dataflows, migrated and pinned at random, against plain loops."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from bench.skew import social, stock, tpch
from bench.skew.queries import MigratingOperators, q5, self_join, word_count
from dataflow.state import native as stateful
from dataflow.testing import simulate

BINS, TIMES = 8, 8


def parts(columns: dict[str, Any], time: int, worker: dataflow.Worker, at: bool = False) -> dict[str, Any]:
    """What a worker sends at a time: an even share of the rows, in their order."""
    length = len(next(iter(columns.values())))
    rows = np.arange(length)
    mine = (rows * TIMES // length == time) & (rows % worker.peers == worker.index)
    chosen = {name: np.asarray(column)[mine] for name, column in columns.items()}
    return {**chosen, "at": np.full(int(mine.sum()), time)} if at else chosen


def disturb(control: Any, worker: dataflow.Worker, time: int, seed: int, keys: int) -> None:
    """Some moves and pins."""
    chance = random.Random(f"{seed} {time} {worker.index}")
    peers, few = worker.peers, chance.randint(0, 2)
    moves = [megaphone.Move(chance.randrange(BINS), chance.randrange(peers)) for _ in range(few)]
    pins = [megaphone.Pin(chance.randrange(keys), chance.randrange(peers)) for _ in range(few)]
    control.send([*moves, *pins, *[megaphone.Unpin(chance.randrange(keys))] * chance.randint(0, 1)])


async def main(worker: dataflow.Worker, query: str, inputs: dict[str, Any], seed: int, native: bool) -> Any:
    """What came out here."""
    out: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        made = {name: scope.input(name) for name in inputs}
        streams = {name: stream for name, (_, stream) in made.items()}
        keep: Any = stateful if native else MigratingOperators(configuration, BINS)
        if query == "words":
            results = word_count(streams["words"], keep)
        elif query == "trades":
            results = self_join(streams["trades"], keep, window=2)
        else:
            results = q5(streams, keep, REGION, start=300, length=1200, window=2)
        probe = results.inspect_batch(lambda t, b: out.extend((t, *row) for row in b.rows())).probe()
    for time in range(TIMES):
        if not native:
            disturb(control, worker, time, seed, 12)
        control.advance_to(time + 1)
        for name, (handle, _) in made.items():
            handle.send(parts(inputs[name], time, worker, at=name in ("orders", "lineitem")))
            handle.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    for handle in (control, *(handle for handle, _ in made.values())):
        handle.close()
    await probe.wait_done()
    return out


REGION = np.arange(25) % 5 < 3


def run(query: str, inputs: dict[str, Any], workers: int, seed: int, native: bool) -> list[Any]:
    results = simulate(main, query, inputs, seed, native, workers=workers, seed=seed)
    return [row for out in results for row in out]


@pytest.mark.parametrize(("workers", "native"), [(1, False), (3, False), (2, True)])
def test_word_count(workers: int, native: bool) -> None:
    (words,) = social(400, words=30, z=0.9, intervals=1, seed=2)
    for seed in range(3):
        out = run("words", {"words": words}, workers, seed, native)
        counts = Counter(words["word"].tolist())
        assert Counter((w, n) for _, w, n in out) == Counter((w, n + 1) for w, c in counts.items() for n in range(c))


@pytest.mark.parametrize("workers", [1, 3])
def test_self_join(workers: int) -> None:
    """Every pair of a purchase and a sale of a stock by one player, at most two times apart."""
    (trades,) = stock(200, stocks=9, players=6, bursts=2, intervals=1, seed=3)
    columns = [trades[name].tolist() for name in ("stock", "player", "side", "price")]
    rows = [(i * TIMES // 200, *row) for i, row in enumerate(zip(*columns, strict=True))]
    expected = Counter(
        (max(t, u), name, player, price, other)
        for t, name, player, side, price in rows
        for u, other_name, other_player, other_side, other in rows
        if (name, player) == (other_name, other_player) and side > 0 > other_side and abs(t - u) <= 2
    )
    assert len(expected) > 50
    sent = {name: trades[name] for name in ("stock", "player", "side", "price")}
    for seed in range(3):
        assert Counter(run("trades", {"trades": sent}, workers, seed, native=False)) == expected


@pytest.mark.parametrize("workers", [1, 3])
def test_q5(workers: int) -> None:
    """The revenue of each nation in the window, whenever it changes."""
    tables = tpch(0.002, seed=4)
    inputs = {name: getattr(tables, name) for name in ("customer", "supplier", "orders", "lineitem")}
    changes = direct_q5(tables, window=2)
    assert len(changes) > 20
    for seed in range(2):
        last: dict[tuple[int, int], int] = {}
        for time, nation, revenue in run("q5", inputs, workers, seed, native=False):
            last[time, nation] = revenue
        now: dict[int, int] = defaultdict(int)
        for time in range(2 * TIMES):
            now.update({nation: revenue for (at, nation), revenue in last.items() if at == time})
            due = {nation: sum(r for t, until, n, r in changes if n == nation and t <= time < until) for nation in now}
            assert dict(now) == due, f"seed {seed}, time {time}"
            assert {n for t, _, n, _ in changes if t == time} <= now.keys()
        assert not any(now.values()), "everything has left the window"


def direct_q5(tables: Any, window: int) -> list[tuple[int, int, int, int]]:
    """Lines that count: from when, until when, for which nation, and how much."""

    def sent(table: dict[str, Any], row: int) -> int:
        return row * TIMES // len(next(iter(table.values())))

    found = []
    lines = zip(*(tables.lineitem[c].tolist() for c in tables.lineitem), strict=True)
    for row, (order, supplier, price, discount) in enumerate(lines):
        customer, day = int(tables.orders["custkey"][order]), tables.orders["orderdate"][order]
        nation = int(tables.customer["nationkey"][customer])
        both = sent(tables.lineitem, row), sent(tables.orders, order)
        if nation != tables.supplier["nationkey"][supplier] or not REGION[nation] or not 300 <= day < 1500:
            continue
        known = max(*both, sent(tables.customer, customer), sent(tables.supplier, supplier))
        until = min(both) + window + 1
        if max(both) - min(both) <= window and known < until:
            found.append((known, until, nation, price * (100 - discount)))
    return found
