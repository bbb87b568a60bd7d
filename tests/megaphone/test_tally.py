"""Heavy keys of rows: the summary's bounds against exact counts, and what a running operator tells."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.load.tally import SAMPLE, HeavyRows, Tally


def test_estimates_are_within_their_bounds_and_no_heavy_key_is_missed() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        capacity, domain = chance.randint(1, 20), chance.randint(1, 200)
        tally, truth = Tally(capacity), Counter[str]()
        for _ in range(chance.randint(0, 2_000)):
            key, weight = f"key {int(domain * chance.random() ** 3)}", chance.choice([1, 1, 5])
            tally.add(key, weight)
            truth[key] += weight
        assert tally.total == truth.total() and tally.error * (capacity + 1) <= tally.total
        told = {key: (estimate, error) for key, estimate, error in tally.heavy(0)}
        assert len(told) <= 2 * capacity
        for key, count in truth.items():
            estimate, error = told.get(key, (tally.error, tally.error))
            assert estimate - error <= count <= estimate, key
        least = tally.total / 7
        assert {key for key, *_ in tally.heavy(least)} >= {key for key, n in truth.items() if n >= least > tally.error}


def test_large_batches_are_sampled_and_counted_for_what_they_stand_for() -> None:
    heavy = HeavyRows([len])
    heavy.watch([[[(0, "x" * (1 + n % 2)) for n in range(100 * SAMPLE + 1)]]])
    keys, records, errors = heavy.take()
    assert sorted(keys) == [1, 2] and abs(int(records.sum()) - 100 * SAMPLE) <= 101 and not errors.any()
    assert heavy.take()[0] == [], "a new interval"


async def main(worker: dataflow.Worker, pin: bool) -> Any:
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        sums = megaphone.state_machine(
            configuration, stream, fold=lambda key, value, state: ((state or 0) + value, ()), bins=4, interval=0.0
        )
        probe = sums.probe()
    if pin and worker.index == 0:
        control.send([megaphone.Pin("fox", 1)])
    for time in range(4):
        data.send([("fox", 1)] * 30 + [(f"dog {n}", 1) for n in range(5)])
        control.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time)
    reports = sums.handle.statistics.heavy
    return {worker: dict(zip(load.keys, load.key_records.tolist(), strict=True)) for worker, load in reports.items()}


def test_operators_on_rows_tell_their_heavy_keys_pinned_or_not() -> None:
    for pin in (False, True):
        told = simulate(main, pin, workers=2)[0]
        where = [worker for worker, keys in told.items() if "fox" in keys]
        assert len(where) == 1 and told[where[0]]["fox"] == 60 and (where == [1] or not pin)
