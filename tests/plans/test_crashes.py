"""Joins whose plan changes, with snapshots and crashes meanwhile: the results of all combinations, each once."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import trio

import dataflow
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import Recovery
from dataflow.state.pieces import pack
from dataflow.state.reading import view_saved
from dataflow.testing import Crashed, simulate
from megaphone.plans.join_bin import JoinBins
from megaphone.plans.migrating import METHODS
from megaphone.plans.query import Query
from megaphone.plans.row_store import PlanRowStore
from tests.plans.cases import oracle
from tests.plans.engine_cases import EngineCase, in_columns, random_engine_case, send

CASES = 24
LONGEST = 40  # lives of a case

Book = dict[int, Counter[Any]]  # by time, what came out in the life that did it last


async def live(worker: dataflow.Worker, case: EngineCase, book: Book, told: Counter[str]) -> None:
    """A life of a case: goes on where the last snapshot was, and writes down what comes out."""
    query, begin = case.query, worker.resume_at
    for time in [time for time in book if time >= begin]:
        del book[time]  # it is done again
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = {}, {}
        for name in query.streams:
            inputs[name], streams[name] = scope.input(name)
        joined = case.form.join(case, configuration, streams)
        probe = joined.inspect(lambda t, r: book.setdefault(t, Counter()).update([case.form.result(r)])).probe()
    told["resumed"] += begin > 0
    waiting = {at: said for (index, at), said in sorted(case.updates.items()) if index == worker.index}
    waiting = {at: said for at, said in waiting.items() if begin == 0 or at - case.ahead >= begin}  # others were sent
    for time, epoch in enumerate(case.records[worker.index]):
        if time < begin:
            continue
        for at in [at for at in waiting if at <= time + case.ahead]:
            send(control, waiting.pop(at), at)
        for name, records in epoch.items():
            if records:
                inputs[name].send(case.form.batch(records))
            inputs[name].advance_to(time + 1)
        control.advance_to(time + 1)
        await trio.sleep(1)
        await probe.wait_passed(time - 2)
    for handle in (*inputs.values(), control):
        handle.close()
    await probe.wait_done()


def run(seed: int, told: Counter[str], columns: bool = False) -> None:
    chance = Random(seed)
    case = random_engine_case(seed, METHODS)
    if columns:
        case = in_columns(case)
    book: Book = {}
    storage = MemoryStorage()
    for life in range(LONGEST):
        last = life == LONGEST - 1 or chance.random() < 0.3
        after = None if last else chance.randrange(50, 1500)
        recovery = Recovery(storage, every=chance.choice([0.5, 2.0]))
        try:
            simulate(live, case, book, told, workers=case.peers, seed=seed + life, recovery=recovery, crash_after=after)
        except Crashed:
            told["crashes"] += 1
            continue
        break
    found = Counter({(t, r): n for t, rows in book.items() for r, n in rows.items()})
    expected = oracle(case.query, case.epochs)
    assert found == Counter({(t, r): n for t, rows in expected.items() for r, n in rows.items()}), f"seed {seed}"


def test_what_was_saved_can_be_looked_into_without_the_program() -> None:
    query = Query(("a", "b"), 10, on=0)
    store = PlanRowStore("join", 4, JoinBins(query, query.plan("a b")))
    store.run(3, [[[(1, (7, "left"))]], [[(1, (7, "right"))]]])
    (view,) = view_saved(store.describe(), [pack(piece) for piece in store.copy_bin(1, 64)])
    assert view.bin == 1 and view.entries["plan",][0] == "a b"
    assert view.entries["source", 0, 7, 0] == [(3, (7, "left"))]


def test_snapshots_and_crashes_meanwhile() -> None:
    told: Counter[str] = Counter()
    for seed in range(CASES):
        run(seed, told)
    assert told["crashes"] > CASES / 2 and told["resumed"] > CASES / 2, told


def test_snapshots_and_crashes_meanwhile_in_columns() -> None:
    told: Counter[str] = Counter()
    for seed in range(100, 100 + CASES // 2):
        run(seed, told, columns=True)
    assert told["crashes"] > CASES / 4 and told["resumed"] > CASES / 4, told
