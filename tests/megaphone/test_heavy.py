"""Heavy keys of a running operator: told within their bounds, wherever they are, pinned or not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import dataflow
import megaphone
from bench.skew import sample, zipf
from dataflow.columns import Columns
from dataflow.testing import simulate
from megaphone.load.heavy import SAMPLE, HeavyKeys


def test_small_batches_are_counted_exactly_within_the_sketchs_bound() -> None:
    rng = np.random.default_rng(5)
    heavy, exact = HeavyKeys(["a", "b"]), Counter[int]()
    for _ in range(50):
        left, right = (sample(zipf(2000, 0.9), 300, rng).astype(np.int64) - 7 for _ in range(2))
        heavy.watch([[Columns({"a": left})], [Columns({"b": right})]])
        exact.update([*left.tolist(), *right.tolist()])
    told = list(zip(*(column.tolist() for column in heavy.take()), strict=True))
    assert len(told) > 20
    for key, estimate, error in told:
        assert estimate - error <= exact[key] <= estimate
    assert len(heavy.take()[0]) == 0, "a new interval"


def test_large_batches_are_sampled_and_heavy_keys_found() -> None:
    rng = np.random.default_rng(6)
    heavy, records = HeavyKeys(["key"]), 100 * SAMPLE
    for _ in range(20):
        keys = np.where(rng.random(records) < 0.2, 77, rng.integers(1000, 1 << 40, records))
        heavy.watch([[Columns({"key": keys})]])
    keys, estimates, errors = heavy.take()
    assert keys[0] == 77
    seen = 0.2 * SAMPLE * 20
    assert abs(estimates[0] / (records * 20) - 0.2) < 0.2 * 5 / np.sqrt(seen) + 20 * errors[0] / records


def test_batches_that_are_applied_at_once_share_one_sample() -> None:
    """On many workers a time comes in many batches, some of them smaller than a stride: what is seen of them together
    is a sample's worth, and stands for all of them."""
    rng = np.random.default_rng(7)
    heavy, times = HeavyKeys(["key"]), 400
    sizes, seen, weight = [40 * SAMPLE, *[3] * 30, 0, 10 * SAMPLE], 0, 0.0
    put_off = heavy._put_off

    def count(words: np.ndarray[Any, Any], each: int) -> None:
        nonlocal seen, weight
        seen, weight = seen + len(words), weight + len(words) * each
        put_off(words, each)

    heavy._put_off = count  # type: ignore[method-assign]
    for _ in range(times):
        heavy.watch([[Columns({"key": rng.integers(0, 1 << 40, size)}) for size in sizes]])
    assert seen <= times * (SAMPLE + len(sizes))
    assert abs(weight / (times * sum(sizes)) - 1) < 0.01
    assert abs(heavy._sketch.total + sum(heavy._weights[: heavy._waits]) - weight) < 1


@megaphone.fold(state={"n": "i8"})
def tally(key, state):
    state.n += 1


async def main(worker: dataflow.Worker) -> Any:
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        fold = tally.without_compiling()
        counts = megaphone.state_machine(configuration, stream, key="key", fold=fold, bins=4, interval=0.0)
        probe = counts.probe()
    if worker.index == 0:
        control.send([megaphone.Pin(-5, 1)], at=3)
    for time in range(8):
        data.send({"key": np.array([-5] * 10 + [time, 100 + time])})
        control.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time)
    return {index: load.keys.tolist() for index, load in counts.handle.statistics.heavy.items()}


def test_reports_name_them_where_they_are() -> None:
    for told in simulate(main, workers=2, seed=1):
        assert told[1][0] == -5


@megaphone.fold(state={"n": "i8"}, output={"word": "key", "n": "i8"})
def by_word(key, state):
    state.n += 1
    return key, state.n


def test_keys_that_are_spelled_out_are_told_as_people_write_them() -> None:
    """In their bins, and where they live apart; planners get the hashes."""

    async def words(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            data, stream = scope.input("data")
            fold = by_word.without_compiling()
            counts = megaphone.state_machine(
                scope.control(), stream, key=["word", "n"], fold=fold, bins=4, interval=0.0, name="words"
            )
            probe = counts.probe()
        if worker.index == 0:
            scope.control().send([megaphone.Pin(("the", 1), 1)])
        for time in range(8):
            data.send({"word": ["the"] * 10 + ["fox"] * 3 + [f"w{time}"], "n": [1] * 14})
            data.advance_to(time + 1)
            await probe.wait_passed(time)
        loads = scope.dataflow.hooks.named("words").loads
        assert loads is not None
        return loads.loads().heavy, counts.handle.statistics.heavy

    for heavy, loads in simulate(words, workers=2, seed=1):
        assert [key for key, *_ in heavy][:2] == [("the", 1), ("fox", 1)]
        assert {type(key) for load in loads.values() for key in load.keys.tolist()} == {int}
