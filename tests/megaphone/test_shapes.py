"""Bins that split and merge while the stream flows: the three properties, and which bins there are."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.control import arranging
from megaphone.control.arranging import Arrangement, arranged, dealt_out
from megaphone.control.tree import BinRun, BinTree, prefix_of, run_of
from megaphone.control.updates import check_update
from tests.megaphone import column_cases
from tests.megaphone.cases import random_updates
from tests.megaphone.shape_cases import (
    check_columns,
    final,
    finest_of,
    history,
    random_columns,
    random_prefix,
    run_columns,
    run_join,
    run_rows,
    with_shapes,
)  # fmt: skip

# ------------------------------------------------------------------------------------------------- the tree, by itself


@pytest.mark.parametrize("seed", range(60))
def test_the_rules_of_one_time_against_strings(seed: int) -> None:
    """Bins and places after each time, whatever the order in which updates arrive."""
    chance = random.Random(seed)
    bins, peers, times = 1 << chance.randint(0, 6), chance.randint(1, 4), 6
    updates = with_shapes(random_updates(chance, times, bins, peers), times, bins, peers, chance)
    now = dealt_out(BinTree.even(bins, bins), range(peers))
    for at, names, where in history(updates, bins, peers)[1:]:
        said = [update for (_, time), batch in updates.items() if time == at for update in batch]
        checked: Any = [check_update(update, bins, peers) for update in said]
        then = arranged(now, checked)
        for _ in range(3):
            chance.shuffle(checked)
            again = arranged(now, checked)
            assert again.tree == then.tree and (again.table == then.table).all(), "the order does not matter"
        now = then
        now.tree._check()
        assert now.tree.names == sorted(f"{name}*" for name in names)
        assert now.table.tolist() == [where[name] for name in sorted(where)]
        assert now.tree.is_uniform(now.table)


def test_names_and_runs() -> None:
    for bins in (1, 2, 16):
        for bits in finest_of(bins):
            for length in range(len(bits) + 1):
                run = run_of(f"{bits[:length]}*", bins)
                assert prefix_of(run, bins) == f"{bits[:length]}*"
    assert run_of(7, 8) == BinRun(7, 1) == run_of("111*", 8)


def test_sums_and_indexes_by_bin() -> None:
    tree = BinTree.of_counts([8, 4, 2, 2])
    assert tree.total(np.arange(16)).tolist() == [28, 38, 25, 29]
    assert tree.indexes(np.array([0, 7, 8, 12, 15])).tolist() == [0, 0, 1, 2, 3]
    assert tree.spread([5, 6, 7, 8]).tolist() == [5] * 8 + [6] * 4 + [7] * 2 + [8] * 2
    assert tree.run_at(9) == BinRun(8, 4)
    for wrong in ([3, 1], [2, 4, 2], [0, 4], [4, 2]):
        with pytest.raises(ValueError, match=r"powers of two|multiple of its length"):
            BinTree.of_counts(wrong)


def test_a_tree_with_at_least_so_many_bins() -> None:
    tree = BinTree.of_counts([8, 4, 2, 2])
    assert [len(tree.at_least(least)) for least in (1, 5, 6, 9, 16, 99)] == [4, 5, 8, 16, 16, 16]
    tree.at_least(6)._check()


# ----------------------------------------------------------------------------------------------------- while it flows


@pytest.mark.parametrize("share", range(4))
def test_rows_against_all_three_properties(share: int) -> None:
    for seed in range(share, 120, 4):
        run_rows(seed)


@pytest.mark.parametrize("share", range(4))
def test_columns_against_all_three_properties(share: int) -> None:
    for seed in range(share, 120, 4):
        run_columns(seed)


def test_joins_against_nested_loops() -> None:
    for seed in range(40):
        run_join(seed)


def test_compiled_folds_give_the_same() -> None:
    for seed in [seed for seed in range(60) if random_columns(seed).kind != "batches"][:4]:
        case = replace(random_columns(seed), compiled=True)
        check_columns(case, simulate(column_cases.main, case, workers=case.peers, seed=seed))


def test_on_real_processes() -> None:
    case = next(case for case in map(random_columns, range(100)) if case.peers == 3 and case.times > 4)
    check_columns(case, dataflow.execute(column_cases.main, case, workers=3))


def test_the_cases_have_something_in_them() -> None:
    """Splits and merges at the times of moves of the same bins, parts of bins that move, coarse bins in the end."""
    together, cut, coarse = 0, 0, 0
    for seed in range(120):
        case = random_columns(seed)
        known = history(case.updates, case.bins, case.peers)
        for (_, before, _), (at, after, _) in pairwise(known):
            said = [type(u).__name__ for (_, time), batch in case.updates.items() if time == at for u in batch]
            together += "Move" in said and ("Split" in said or "Merge" in said)
            cut += "Split" not in said and bool(after - before) and len(after) > len(before)
        coarse += len(final(case.updates, case.bins, case.peers)) < case.bins
    assert together > 100 and cut > 20 and coarse > 60, (together, cut, coarse)


# ----------------------------------------------------------------------------------------- the properties can fail


def first_said(before: Arrangement, updates: Any) -> Arrangement:
    """Updates take effect one by one, as they arrive: workers then disagree."""
    for update in updates:
        before = arranged(before, [update])
    return before


def without_cutting(before: Arrangement, updates: Any) -> Arrangement:
    """A bin of which parts have moved stays a bin."""
    table, _ = arranged(before, updates)
    splits = [update for update in updates if isinstance(update, megaphone.Split)]
    merges = [update for update in updates if isinstance(update, megaphone.Merge)]
    return Arrangement(table, before.tree.merge(merges).split(splits))


def merging_in_place(before: Arrangement, updates: Any) -> Arrangement:
    """Merged bins stay where their parts were: they are cut again at once."""
    return arranged(before, [update for update in updates if not isinstance(update, megaphone.Merge)])


@pytest.mark.parametrize("broken", [first_said, without_cutting, merging_in_place])
def test_a_broken_rule_is_found_out(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megaphone.control.configuration.arranged", broken)

    def fails(run: Any, seed: int) -> bool:
        try:
            run(seed)
        except AssertionError:
            return True
        return False

    assert any(fails(run, seed) for seed in range(25) for run in (run_rows, run_columns))


# ------------------------------------------------------------------------------------------- operators that say nothing


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"})
def tally(key: int, value: int, state: Any) -> tuple[int, int]:
    state.count += value
    return key, state.count


async def unsized(worker: dataflow.Worker, said: list[Any]) -> Any:
    """An operator without `bins`: the bins that there are at first, and after some updates."""
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        keys, stream = scope.input()
        counts = megaphone.state_machine(
            configuration, stream, key="key", value="diff", fold=tally.without_compiling()
        )
        probe = counts.probe()
    first = counts.handle.tree.names, counts.handle.configuration.tolist()
    for time in range(4):
        keys.send({"key": np.arange(100), "diff": np.ones(100, np.int64)})
        if worker.index == 0 and time == 1:
            control.send(said)
        for handle in (keys, control):
            handle.advance_to(time + 1)
        await probe.wait_passed(time)
    store = counts.handle.store
    entries = {key: row["count"] for bin in store.occupied().tolist() for key, row in store.view(bin).entries.items()}
    return first, counts.handle.tree.names, counts.handle.configuration.tolist(), entries


def test_an_operator_without_bins_begins_with_a_few_for_each_worker() -> None:
    said = [megaphone.Merge("1*", 1), megaphone.Split("000000*", into=64), megaphone.Move("000000000001*", 1)]
    results = simulate(unsized, said, workers=2, seed=1)
    for first, names, _, _ in results:
        assert first[0] == [format(number, "05b") + "*" for number in range(32)]
        assert first[1] == [number // 128 % 2 for number in range(4096)]
        assert names[:64] == [format(number, "012b") + "*" for number in range(64)] and names[-1] == "1*"
    table = results[0][2]
    assert set(table[2048:]) == {1} and table[:3] == [0, 1, 0]
    assert {key: count for *_, entries in results for key, count in entries.items()} == dict.fromkeys(range(100), 8)


def test_updates_that_make_no_sense_are_refused_where_they_are_sent() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            _, stream = scope.input()
            megaphone.state_machine(configuration, stream, fold=lambda key, value, state: (state, []), bins=4)
        for update, why in [
            (megaphone.Split("000*"), "there is no bin '000.': the finest of 4 bins have 2 bits"),
            (megaphone.Split("00*"), "cannot be split into 2 bins: the operator has 4 bins at the finest, and 1 of"),
            (megaphone.Split("0*", into=3), "power of two, not into 3"),
            (megaphone.Split("0*", into=0), "power of two, not into 0"),
            (megaphone.Split(3), "3 is not a bin: say its first bits and a star"),  # type: ignore[arg-type]
            (megaphone.Merge("0"), "'0' is not a bin: say its first bits and a star"),
            (megaphone.Merge("0*", 2), "there is no worker 2"),
            (megaphone.Move("2*", 0), "'2.' is not a bin"),
            (megaphone.Move(3, 0, count=2), "there is no bin 4"),
        ]:
            with pytest.raises(megaphone.ControlError, match=why):
                control.send([update])

    simulate(main, workers=2, seed=0)


def test_random_prefixes_are_prefixes() -> None:
    chance = random.Random(0)
    assert {len(random_prefix(chance, 16)) for _ in range(200)} == {0, 1, 2, 3, 4}
    assert arranging.dealt_out(BinTree.even(4, 1), [0, 1]).table.tolist() == [0, 0, 0, 0]
