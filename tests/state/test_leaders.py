"""Leaders against a dictionary: hashed, shared, dense; while bins and single keys come and go."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dataflow.state.tables import table as table_module
from dataflow.state.tables.leaders import Leaders
from dataflow.state.tables.one_key import put_row, take_row
from dataflow.state.tables.table import Dense, Table, make_table
from tests.state.test_tables import keys_of, move

STATE = {"flag": "i4", "n": "i8", "x": "f8"}
DOMAIN = 50


def expected(truth: dict[int, int]) -> tuple[int, int] | None:
    """The largest value above 0; ties to the smaller key."""
    return min(((key, n) for key, n in truth.items() if n > 0), key=lambda pair: (-pair[1], pair[0]), default=None)


def add(table: Table, truth: dict[int, int], keys: list[int], amounts: list[int]) -> None:
    table.leaders("n").add(np.array(keys, np.int64).view(np.uint64), np.array(amounts))
    for key, amount in zip(keys, amounts, strict=True):
        truth[key] = truth.get(key, 0) + amount
    for key in set(keys):
        if truth[key] == 0:
            del truth[key]


def change(chance: Random, tables: list[Table], truths: list[dict[int, int]], pool: list[int]) -> None:
    """Adds, or moves something from one table to the other."""
    here = chance.randrange(2)
    bins = tables[here].bins
    what = chance.random()
    if what < 0.6:
        keys = chance.choices(
            [key for key in pool if key not in truths[1 - here]] or [pool[0]], k=chance.choice([1, 9])
        )
        keys = [key for key in keys if key not in truths[1 - here]]
        add(
            tables[here],
            truths[here],
            keys,
            [chance.choice([1, 1, 2, -1, -2, 0, -truths[here].get(k, 0)]) for k in keys],
        )
    elif what < 0.8:
        bin = chance.randrange(bins)
        moving = [key for key in truths[here] if bin_of(tables[here], key) == bin]
        if not any(bin_of(tables[here], key) == bin for key in truths[1 - here]) and not tables[1 - here].has(
            np.array([bin])
        ):
            move(bin, tables[here], tables[1 - here], 8)
            for key in moving:
                truths[1 - here][key] = truths[here].pop(key)
    elif truths[here]:
        key = chance.choice([*truths[here]])
        word = np.array([key], np.int64).view(np.uint64)
        if chance.random() < 0.3:
            tables[here].forget(word)
            del truths[here][key]
        else:
            row = take_row(tables[here], word)
            assert row is not None
            put_row(tables[1 - here], word, row)
            truths[1 - here][key] = truths[here].pop(key)


def bin_of(table: Table, key: int) -> int:
    return int(table.bins_of(np.array([key], np.int64).view(np.uint64))[0])


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    ("bins", "most", "dense"),
    [(2, 2, None), (16, 16, None), (16, 2, None), (64, 4, None), (4, 4, Dense(DOMAIN)), (16, 16, Dense(DOMAIN, 2))],
)
def test_leaders_are_those_of_a_dictionary(
    bins: int, most: int, dense: Dense | None, single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "MOST", most)  # above that, bins share segments
    for seed in range(12):
        chance = Random(seed)
        tables, truths = [make_table(bins, STATE, dense) for _ in range(2)], [dict[int, int]() for _ in range(2)]
        for table in tables:
            table.single = single
        pool = [*range(DOMAIN)] if dense else [chance.randrange(-(1 << 40), 1 << 40) for _ in range(40)]
        for _ in range(80):
            change(chance, tables, truths, pool)
            for table, truth in zip(tables, truths, strict=True):
                if chance.random() < 0.5:
                    assert table.leaders("n").first() == expected(truth), f"seed {seed}"
        if not dense:
            assert [table.key_count for table in tables] == [len(truth) for truth in truths], "zeros are forgotten"


@pytest.mark.parametrize("bins", [1 << 15, 1 << 20])
def test_where_bins_really_share_segments(bins: int) -> None:
    table, truth = make_table(bins, {"n": "i8"}, None), dict[int, int]()
    rng = np.random.default_rng(bins)
    for _ in range(20):
        keys = rng.integers(0, 3000, 500).tolist()
        add(table, truth, keys, rng.integers(-3, 4, 500).tolist())
        assert table.leaders("n").first() == expected(truth)


def test_a_table_has_one_object_for_a_field_and_refuses_others() -> None:
    table = make_table(4, STATE, None)
    assert isinstance(table.leaders("n"), Leaders)
    assert table.leaders("n") is table.leaders("n")
    assert table.leaders("n").first() is None
    with pytest.raises(TypeError, match="state 'x' is float64: leaders are kept of 64-bit integers"):
        table.leaders("x")
    with pytest.raises(KeyError, match="there is no state 'm': there is flag, n, x"):
        table.leaders("m")
    with pytest.raises(KeyError, match="there is no state '_tag'"):
        table.leaders("_tag")


def test_a_value_that_does_not_fit_is_named() -> None:
    leaders = make_table(4, STATE, None).leaders("n")
    leaders.add(keys_of(7), np.array([(1 << 63) - 1]))
    with pytest.raises(OverflowError, match="n of the key 7 does not fit into 64 bits"):
        leaders.add(keys_of(7), np.array([1]))
    assert leaders.first() == (7, (1 << 63) - 1)


def test_to_forget_a_dense_key_is_no_record() -> None:
    table = make_table(4, STATE, Dense(DOMAIN))
    table.rows(keys_of(1, 5))
    table.forget(keys_of(5))
    assert table.records.tolist() == [0, 2, 0, 0]
