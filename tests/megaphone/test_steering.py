"""Migrations that somebody outside asks for: the words, and that answers stay the same while bins move."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import megaphone
from dataflow import Worker
from dataflow.build.hooks import Movement, Steering
from dataflow.errors import DataflowError
from dataflow.run.readings import read_state
from dataflow.run.worker import pump_of
from dataflow.testing import simulate
from megaphone import ControlError
from megaphone.control.tree import BinTree
from megaphone.migration.words import parse_shapes, parse_strategy, parse_target

TOTALS = "totals"


def count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]


def steering_of(worker: Worker) -> Steering:
    (dataflow,) = pump_of(worker).dataflows
    steering = dataflow.hooks.named(TOTALS).steering
    assert steering is not None
    return steering


@pytest.mark.parametrize("seed", range(30))
def test_answers_stay_the_same_and_bins_arrive(seed: int) -> None:
    """A program that knows nothing of migrations, on `scope.control()`; worker 0 is asked for some from outside."""
    chance = random.Random(seed)
    workers, bins, epochs = chance.choice([1, 2, 3]), 8, 14
    records = [[(chance.randrange(20), 1) for _ in range(4)] for _ in range(epochs)]
    targets = ["even", "worker:0", f"worker:{workers - 1}", f"0-3={workers - 1},7=0"]
    asked = [(chance.randrange(epochs), chance.choice(targets)) for _ in range(3)]
    strategies = ["all-at-once", "fluid", "batched:2", "matched,gap=1", "batched:3,budget=1kB"]

    async def main(worker: Worker) -> tuple[list[tuple[int, int]], list[Movement], list[int], list[int]]:
        out: list[tuple[int, int]] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=bins, name=TOTALS)
            probe = totals.inspect(lambda _, record: out.append(record)).probe()
        begun: list[Movement] = []
        wanted: list[int] = []
        for epoch, batch in enumerate(records):
            for at, to in asked:
                steering = steering_of(worker)
                if worker.index or at != epoch or (steering.last and steering.last.under_way):
                    continue
                here = totals.handle.configuration
                wanted = parse_target(to, here, totals.handle.tree, range(workers), np.zeros(bins, np.int64)).tolist()
                begun.append(steering.migrate(to, chance.choice(strategies)))
            handle.send(batch[worker.index :: workers])
            handle.advance_to(epoch + 1)
            if chance.random() < 0.5:
                await probe.wait_passed(epoch)
        for epoch in range(epochs, epochs + 40):
            handle.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        last = None if worker.index else steering_of(worker).last
        assert last is None or (not last.under_way and not last.failure and last.shards_done == last.shards)
        return out, begun, wanted, totals.handle.configuration.tolist()

    results = simulate(main, workers=workers, seed=seed)
    shown: Counter[tuple[int, int]] = Counter()
    for out, *_ in results:
        shown.update(out)
    counts = Counter(key for batch in records for key, _ in batch)
    assert shown == Counter((key, number) for key, total in counts.items() for number in range(1, total + 1))
    _, begun, wanted, configuration = results[0]
    assert begun
    assert configuration == wanted


@pytest.mark.parametrize("to", ["even", "worker:0,2"])
def test_numbers_are_missing_after_workers_have_left(to: str) -> None:
    """Found by `make endure`: bins were to go to worker 1, which had left."""

    async def main(worker: Worker) -> list[int]:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=8, name=TOTALS)
            probe = totals.probe()
        change = worker.drain(1) if worker.index == 0 else None
        epoch = 0
        while epoch < 60:
            handle.send([(epoch % 20, 1)])
            if change is not None and change.done and steering_of(worker).last is None:
                with pytest.raises(ControlError, match="there is no worker '1' that can have bins: there are 0, 2"):
                    steering_of(worker).migrate("worker:1", "fluid")
                steering_of(worker).migrate("worker:2", "all-at-once")
            elif change is not None and epoch == 50:
                steering_of(worker).migrate(to, "all-at-once")
            epoch += 1
            handle.advance_to(epoch)
            await probe.wait_passed(epoch - 1)
        handle.close()
        await probe.wait_done()
        return totals.handle.configuration.tolist()

    found = simulate(main, workers=3, seed=1)[0]
    assert {*found} == {0, 2}


def test_the_rest_is_given_up_when_the_inputs_end_and_only_one_is_under_way() -> None:
    async def main(worker: Worker) -> list[object]:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=8, name=TOTALS)
            probe = totals.probe()
        if worker.index:
            return []
        steering = steering_of(worker)
        assert steering.last is None
        dry = steering.migrate("worker:1", "fluid", dry=True)
        assert (dry.steps, dry.shards, dry.shards_done) == (4, 4, 0)
        assert steering.last is None
        begun = steering.migrate("worker:1", "fluid")
        with pytest.raises(ControlError, match="totals: a migration is under way"):
            steering.migrate("even", "fluid")
        handle.close()
        while not probe.done:
            await worker.step()
        given_up = steering.last
        with pytest.raises(DataflowError):
            steering.migrate("even", "fluid")
        return [begun, given_up]

    begun, last = simulate(main, workers=2, seed=1)[0]
    assert isinstance(begun, Movement) and begun.under_way
    assert isinstance(last, Movement)
    assert last.steps_done == last.steps or "given up" in last.failure


def test_cancel_leaves_what_has_moved() -> None:
    async def main(worker: Worker) -> list[int]:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=8, name=TOTALS)
            probe = totals.probe()
        if not worker.index:
            steering_of(worker).migrate("worker:1", "fluid")
            cancelled = steering_of(worker).cancel()
            assert cancelled is not None and cancelled.shards == 1
        for epoch in range(10):
            handle.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        return totals.handle.configuration.tolist()

    assert simulate(main, workers=2, seed=3)[0] == [1, 1, 0, 1, 0, 1, 0, 1]


def test_bins_are_split_and_merged_from_outside() -> None:
    """`split:` and `merge:` in the place of a target; what `status` and `get` say of it."""

    async def main(worker: Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=8, name=TOTALS)
            probe = totals.probe()
            dataflow = scope.dataflow
        hooks = dataflow.hooks.named(TOTALS)
        told = []
        asked = {2: "merge:0*,merge:1*=0", 8: "split:0*/4", 14: "00*=1"}
        for epoch in range(30):
            if worker.index == 0 and epoch in asked:
                steering = steering_of(worker)
                dry = steering.migrate(asked[epoch], "fluid", dry=True)
                told.append((dry.steps, steering.migrate(asked[epoch], "fluid").under_way))
            handle.send([(epoch, 1)])
            handle.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
            if worker.index == 0 and epoch in (7, 13, 25):
                told.append((steering_of(worker).last.under_way, totals.handle.tree.names))
        assert hooks.placement is not None
        told.append((hooks.placement.group_name(1), read_state(hooks).groups, read_state(hooks).placed))
        return told, totals.handle.configuration.tolist()

    (told, table), (_, other) = simulate(main, workers=2, seed=5)
    assert table == other == [1, 1, 0, 0, 0, 0, 0, 0]
    assert told == [
        (1, True), (False, ["0*", "1*"]), (1, True), (False, ["000*", "001*", "010*", "011*", "1*"]),
        (2, True), (False, ["000*", "001*", "010*", "011*", "1*"]), ("001*", 5, ((0, 3), (1, 2))),
    ]  # fmt: skip


@pytest.mark.parametrize("words", ["split:", "split:01", "split:0*=1", "merge:0*/2", "merge:0*,even"])
def test_shapes_that_make_no_sense(words: str) -> None:
    with pytest.raises(ControlError, match="neither splits nor merges a bin"):
        parse_shapes(words)


@pytest.mark.parametrize("seed", range(20))
def test_even_is_even_and_moves_as_few_as_it_can(seed: int) -> None:
    chance = random.Random(seed)
    workers = sorted(chance.sample(range(6), chance.randrange(1, 5)))
    here = [chance.randrange(6) for _ in range(chance.choice([1, 5, 16, 33]))]
    words = f"worker:{','.join(map(str, workers))}"
    there = parse_target(words, here, fine(len(here)), range(6), np.zeros(len(here), np.int64)).tolist()
    counts = Counter(there)
    assert set(counts) <= set(workers)
    share, more = divmod(len(here), len(workers))
    assert sorted((counts[worker] for worker in workers), reverse=True) == [share + 1] * more + [share] * (
        len(workers) - more
    )
    had = sorted((here.count(worker) for worker in workers), reverse=True)  # the richest keep one more
    stay = sum(min(count, share + (at < more)) for at, count in enumerate(had))
    assert sum(a != b for a, b in zip(here, there, strict=True)) == len(here) - stay


def fine(bins: int) -> BinTree:
    return BinTree.even(bins, bins)


def test_bins_of_several_move_whole() -> None:
    tree = BinTree.of_counts([8, 4, 2, 2])
    sizes = np.arange(16)
    there = {words: parse_target(words, [0] * 16, tree, [0, 1], sizes) for words in ("even", "bytes", "worker:1")}
    assert all(tree.is_uniform(places) for places in there.values())
    assert Counter(there["even"][tree.firsts].tolist()) == {0: 2, 1: 2}
    assert (sizes[there["bytes"] == 1].sum(), sizes.sum()) == (67, 120)  # 38 and 29; 28 and 25 stay
    assert set(there["worker:1"].tolist()) == {1}
    assert parse_target("10*=1,3=1", [0] * 16, tree, [0, 1], sizes).nonzero()[0].tolist() == [3, 8, 9, 10, 11]


def test_bytes_are_evened_out() -> None:
    sizes = np.array([90, 10, 40, 30, 20, 10], np.int64)
    there = parse_target("bytes", [0] * 6, fine(6), [0, 1], sizes)
    assert sorted(int(sizes[there == worker].sum()) for worker in (0, 1)) == [100, 100]
    with pytest.raises(ControlError, match="nothing is known of the bytes of bins yet"):
        parse_target("bytes", [0] * 6, fine(6), [0, 1], np.zeros(6, np.int64))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "does not say where bins shall be: say even, bytes"),
        ("evenly", "does not say where bins shall be"),
        ("worker:", "does not say where"),
        ("worker:7", "no worker '7' that can have bins: there are 0, 1"),
        ("worker:x", "no worker 'x'"),
        ("9=0", "there is no bin 9"),
        ("3-1=0", "names no bins"),
        ("1=5", "no worker '5'"),
        ("010*=1", "there is no bin '010\\*': the finest of 4 bins have 2 bits"),
        ("0*=2", "no worker '2'"),
    ],
)
def test_targets_that_make_no_sense(words: str, why: str) -> None:
    with pytest.raises(ControlError, match=why):
        parse_target(words, [0] * 4, fine(4), [0, 1], np.ones(4, np.int64))


@pytest.mark.parametrize("words", ["", "slow", "batched", "batched:0", "batched:x", "fluid:3", "fluid,speed=3"])
def test_strategies_that_make_no_sense(words: str) -> None:
    with pytest.raises(ControlError, match="say all-at-once, fluid, batched:64, matched or within:20ms"):
        parse_strategy(words)


def test_strategies_have_options() -> None:
    made = parse_strategy("batched:64, budget=8MiB, gap=2, order=hottest")
    assert (made.name, made.budget, made.gap, made.order) == ("batches of 64", 8 << 20, 2, "hottest")
    assert parse_strategy("within:20ms,order=hottest").bound == 0.02
    with pytest.raises(ControlError, match="within has neither gap nor budget"):
        parse_strategy("within:20ms,gap=2")
    with pytest.raises(ControlError, match="all at once has no budget"):
        parse_strategy("all-at-once,budget=1kB")
