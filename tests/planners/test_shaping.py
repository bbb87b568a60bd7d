"""Which bins there should be: against a recursion over prefixes, that it does not flap, and in a running dataflow."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.control.tree import BinTree, Merge, Split
from planners.loop import BinShape, Driver, Loop, Observation, Shaping, by_bins
from planners.loop.shaping import coarsened


def observed(places: Any, cost: Any, sizes: Any, workers: int) -> Observation:
    return Observation(workers, np.array(places, np.int64), np.array(cost, float), np.array(sizes, float))


def recursion(shaping: Shaping, seen: Observation, bins: set[str]) -> set[str]:
    """The bins that there should be, prefix by prefix."""
    finest = len(seen.places)
    depth = finest.bit_length() - 1
    mean = float(seen.cost.sum()) / seen.workers
    found = set()

    def visit(prefix: str) -> None:
        inside = [n for n in range(finest) if format(n, f"0{depth}b").startswith(prefix)] if depth else [0]
        size, heat = (sum(amounts[n] for n in inside) for amounts in (seen.bytes, seen.cost))
        was_cut = any(bin.startswith(prefix) and bin != prefix for bin in bins)
        too_much = size > shaping.largest or (mean > 0 and heat > shaping.hottest * mean)
        much = size > shaping.low * shaping.largest or (mean > 0 and heat > shaping.low * shaping.hottest * mean)
        few = 2 ** len(prefix) < shaping.each * seen.workers
        divided = len({int(seen.places[n]) for n in inside}) > 1
        if len(inside) > 1 and (divided or too_much or (was_cut and (much or few))):
            visit(f"{prefix}0")
            visit(f"{prefix}1")
        else:
            found.add(prefix)

    visit("")
    return found


def random_tree(chance: random.Random, bins: int) -> BinTree:
    tree = BinTree.even(bins, 1)
    for _ in range(chance.randint(0, 6)):
        names = [name for name, count in zip(tree.names, tree.counts.tolist(), strict=True) if count > 1]
        if names:
            tree = tree.split([Split(chance.choice(names))])
    return tree


@pytest.mark.parametrize("seed", range(80))
def test_against_a_recursion(seed: int) -> None:
    chance = random.Random(seed)
    bins, workers = 1 << chance.randint(0, 6), chance.randint(1, 3)
    tree = random_tree(chance, bins)
    places = tree.spread([chance.randrange(workers) for _ in range(len(tree))])
    cost = [chance.choice([0, 0, 1, 8]) * chance.random() for _ in range(bins)]
    sizes = [chance.choice([0, 1, 50]) for _ in range(bins)]
    shaping = Shaping(chance.choice([20, 100, 10_000]), chance.choice([0.05, 0.5, 5.0]), 0.25, chance.choice([1, 4]))
    seen = observed(places, cost, sizes, workers)
    shape = shaping.decide(seen, tree.counts)
    wanted = recursion(shaping, seen, {name[:-1] for name in tree.names})
    assert BinTree.of_counts(shape.counts).names == sorted(f"{name}*" for name in wanted)
    made = tree.merge([Merge(name) for name in shape.merges]).split([Split(name) for name in shape.splits])
    assert made.counts.tolist() == shape.counts.tolist(), "what is said leads there"
    assert made.is_uniform(places), "nothing moves"
    assert not shaping.decide(seen, made.counts), "and then nothing more is to be done"


def test_loads_that_waver_change_nothing() -> None:
    chance, shaping, tree = random.Random(1), Shaping(100, 0.5, each=1), BinTree.even(64, 1)
    changes = []
    for _ in range(30):
        sizes = [chance.uniform(5, 9) for _ in range(64)]
        seen = observed([0] * 64, sizes, sizes, 1)
        shape = shaping.decide(seen, tree.counts)
        changes.append(bool(shape))
        tree = BinTree.of_counts(shape.counts)
    assert sum(changes) <= 2 and not any(changes[5:])


def test_growth_splits_and_decline_merges() -> None:
    shaping, tree = Shaping(1000, 10.0, each=4), BinTree.even(256, 4)
    lengths = []
    for keys in (10, 1_000, 100_000, 1_000_000, 10_000, 10):
        seen = observed([0] * 256, [1.0] * 256, [keys / 256] * 256, 1)
        tree = BinTree.of_counts(shaping.decide(seen, tree.counts).counts)
        lengths.append(len(tree))
    assert lengths == [4, 4, 128, 256, 64, 4]


def test_what_was_seen_is_added_up_by_bin() -> None:
    seen = Observation(
        2, np.array([0, 0, 1, 1]), np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8]),
        np.array([70, 71]), np.array([0.5, 2.5]), np.array([1, 3]), {70: 1},
    )  # fmt: skip
    coarse = coarsened(seen, np.array([2, 1, 1]))
    assert (coarse.places.tolist(), coarse.cost.tolist(), coarse.bytes.tolist()) == ([0, 1, 1], [3, 3, 4], [11, 7, 8])
    assert coarse.key_bins.tolist() == [0, 2] and coarse.pinned == {70: 1}


def test_numbers_that_make_no_sense() -> None:
    for wrong in ({"largest": 0}, {"hottest": 0.0}, {"low": 1.0}, {"each": 0}):
        with pytest.raises(ValueError, match="bins have a largest size and load above 0"):
            Shaping(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no power of two"):
        Shaping().decide(observed([0] * 3, [1] * 3, [1] * 3, 1), np.ones(3, np.int64))


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"})
def tally(key: int, value: int, state: Any) -> tuple[int, int]:
    state.count += value
    return key, state.count


async def growing(worker: dataflow.Worker, shaping: Any) -> Any:
    """A count without `bins` whose keys grow from 20 to 4,000, all records to one half of the hashes' first half; the
    loop splits, merges and moves."""
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        keys, stream = scope.input()
        counts = megaphone.state_machine(
            configuration, stream, key="key", value="one", fold=tally.without_compiling(), interval=0.0
        )
        probe = counts.probe()
    controller = megaphone.Controller(control, counts)
    driver = Driver(controller, Loop(by_bins(theta=0.05), patience=1), least=100, shaping=shaping)
    lengths, chance = [], np.random.default_rng(worker.index)
    bins = controller.bins_of([*range(12_000)])
    low = np.flatnonzero(np.asarray(bins) < 1024)  # of 4096: a quarter of the tree has everything
    for time in range(30):
        some = chance.choice(low[: 20 if time < 5 else 3_000], 300)
        keys.send({"key": some, "one": np.ones(300, np.int64)})
        if worker.index == 0:
            driver.step()
        controller.advance_to(time + 1)
        keys.advance_to(time + 1)
        await probe.wait_passed(time)
        lengths.append(len(controller.tree))
    store = counts.handle.store
    return lengths, controller.tree.names, int(store.records.sum()), driver.shapes, store.key_count


def test_a_running_operator_grows_and_is_balanced() -> None:
    shaping = Shaping(largest=2_000, hottest=0.2, each=4)
    (lengths, names, *_, shapes, keys), (_, others, *_, more) = simulate(growing, shaping, workers=2, seed=3)
    assert names == others, "all workers know the same bins"
    assert lengths[0] == 32
    assert max(lengths) > 100 and shapes, "many keys: bins are split"
    assert keys and more and 0.6 < keys / more < 1.6, "both workers have about half, of keys that were all in a quarter"


def test_operators_with_a_number_of_bins_are_left_alone() -> None:
    class Fixed:
        counts, busy, members = np.ones(8, np.int64), True, (0, 1)

    assert Driver(Fixed(), Loop(by_bins()))._shaping is None  # type: ignore[type-var]
    Fixed.counts = np.array([4, 4])
    assert Driver(Fixed(), Loop(by_bins()))._shaping == Shaping()  # type: ignore[type-var]
    assert Driver(Fixed(), Loop(by_bins()), shaping=None)._shaping is None  # type: ignore[type-var]
    assert str(BinShape(np.array([4, 4]), ["*"], [])) == "2 bins: 1 split, 0 merged"
