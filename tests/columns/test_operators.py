"""Operators on columns against loops over rows: random records over several times, 1 to 3 workers, under seeds."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dataflow
from dataflow.columns import Columns
from dataflow.columns.grouping import Aggregates, match
from dataflow.columns.pact import ExchangeColumns
from dataflow.errors import ConstructionError
from tests.columns.running import Epochs, row, run

SEEDS = range(12)
WORDS = ["a", "b", "grün", "", None]


def records(seed: int, times: int = 4) -> Epochs:
    """Times with some records, and some without."""
    chance = Random(seed + 1000)
    return [
        [
            {
                "k": chance.choice([-1, 0, 1, 2, 1 << 40]),
                "word": chance.choice(WORDS),
                "x": chance.choice([0.0, -0.0, 0.5, 1e300]),
                "n": chance.randint(-5, 5),
            }
            for _ in range(chance.choice([0, 1, 5, 9]))
        ]
        for _ in range(times)
    ]


def everything(epochs: Epochs) -> list[tuple[int, dict[str, Any]]]:
    return [(time, record) for time, some in enumerate(epochs) for record in some]


@pytest.mark.parametrize("seed", SEEDS)
def test_map_with_columns_filter_project_and_exchange(seed: int) -> None:
    epochs = records(seed)

    def build(stream: Any) -> Any:
        mapped = stream.columns.map(lambda batch: {"k": batch["k"], "word": batch["word"], "m": batch["n"] * 2})
        more = mapped.columns.with_columns(lambda batch: {"m": batch["m"] + 1, "even": batch["k"] % 2 == 0})
        kept = more.columns.filter(lambda batch: batch["even"])
        return kept.columns.exchange("word", "k").columns.project("m", "word")

    expected = [(t, row(m=r["n"] * 2 + 1, word=r["word"])) for t, r in everything(epochs) if r["k"] % 2 == 0]
    assert run(seed, build, epochs) == Counter(expected)


@pytest.mark.parametrize("by", ["k", "word", "x"])
def test_exchange_brings_equal_values_to_one_worker_and_uses_them_all(by: str) -> None:
    where: dict[Any, set[int]] = defaultdict(set)

    def build(stream: Any) -> Any:
        index = stream.scope.worker

        def note(batch: Columns) -> Columns:
            for value in batch.select([by]).rows():
                where[value].add(index)
            return batch

        return stream.columns.exchange(by).columns.map(note)

    epochs = [[{"k": n % 40, "word": f"w{n % 40}", "x": (n % 40) / 2} for n in range(80)] for _ in range(3)]
    got = run(5, build, epochs, workers=3)
    assert got == Counter((t, tuple(r.items())) for t, r in everything(epochs))
    assert all(len(workers) == 1 for workers in where.values()) and set().union(*where.values()) == {0, 1, 2}


def test_equal_values_of_different_types_go_to_the_same_worker() -> None:
    numbers = [0, 1, 5, 100]
    kinds = ["i1", "u1", "i2", ">i4", "u4", "i8", ">i8", "u8"]
    assert len({tuple(places(np.array(numbers, kind))) for kind in kinds}) == 1
    assert places(np.array([-1, 300], "i2")) == places(np.array([-1, 300], ">i8"))
    assert len({tuple(places(np.array([0.0, 1.5], kind))) for kind in ("f2", "f4", "f8", ">f8")}) == 1
    assert places(np.array([-0.0])) == places(np.array([0.0]))
    texts = ["x", "grün", "", None]
    kinds = [pa.string(), pa.large_string()]
    assert len({tuple(places(pa.array(texts, kind))) for kind in kinds}) == 1
    assert places(pa.array(["q", *texts]).slice(1)) == places(pa.array(texts))
    assert places(np.arange(6)[::-2]) == places(np.array([5, 3, 1]))


def places(column: Any, peers: int = 64) -> list[int]:
    """Which of many workers gets each row."""
    batch = Columns({"k": column, "row": np.arange(len(column))})
    owner = {}
    for worker, part in enumerate(ExchangeColumns(["k"]).split(batch, peers)):
        owner.update(dict.fromkeys(part["row"].tolist(), worker))
    return [owner[n] for n in range(len(column))]


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "f2", ">i4", "f4", "M8[s]", "f8", "c8", "c16", "g", "text"])
def test_exchange_moves_columns_of_every_type_and_stride(kind: str) -> None:
    values = np.arange(40)
    column = pa.array([f"t{n}" for n in values]) if kind == "text" else values.astype(kind)
    whole = Columns({"k": values, "v": column, "back": values[::-1], "same": np.broadcast_to(7, 40)})
    for batch in (whole, whole.slice(3, 30), whole.slice(0, 0), whole.take(np.arange(20) * 2)):
        parts = ExchangeColumns(["k"]).split(batch, 3)
        rows = {part_row[0]: part_row for part in parts for part_row in part.rows()}
        assert rows == {r[0]: r for r in batch.rows()} and sum(map(len, parts)) == len(batch)
        assert all(part["k"].tolist() == sorted(part["k"].tolist()) for part in parts)  # the order of rows is kept


def test_columns_that_cannot_be_written_to_are_as_good() -> None:
    epochs = [[{"k": n % 3, "n": n} for n in range(10)]]

    def build(stream: Any) -> Any:
        from_arrow = stream.columns.map(lambda batch: Columns(batch.to_arrow()))
        return from_arrow.columns.exchange("k").columns.aggregate("k", n=("sum", "n"))

    assert run(1, build, epochs, workers=2) == Counter(
        {(0, row(k=0, n=18)): 1, (0, row(k=1, n=12)): 1, (0, row(k=2, n=15)): 1}
    )


NOT_A_NUMBER = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123], np.uint64).view(np.float64)


@pytest.mark.parametrize("kind", ["f8", "f4", "c16", "M8[s]", "m8[D]"])
def test_what_is_not_a_number_is_one_group(kind: str) -> None:
    """Whatever bits it has; as in SQL and pandas. It is equal to nothing in a join."""
    column = (
        np.array(["NaT", 3, "NaT", 3, "NaT"], kind)
        if kind[0] in "mM"
        else np.array([NOT_A_NUMBER[0], 3, NOT_A_NUMBER[1], 3, NOT_A_NUMBER[2]]).astype(kind)
    )
    batch = Columns({"k": column, "other": np.zeros(5)})
    for by in (["k"], ["k", "other"], ["other", "k"]):
        plan = Aggregates(by, {"n": "count"})
        merged = plan.merge([plan.partial(batch.slice(0, 2)), plan.partial(batch.slice(2, 5))])
        assert sorted(merged["n"].tolist()) == [2, 3], by
    if kind != "c16":
        there = places(column)
        assert there[0] == there[2] == there[4] and there[1] == there[3], "all on one worker"
    ours, theirs = match(Columns({"k": column}), Columns({"k": column}), ["k"], ["k"])
    assert sorted(zip(ours.tolist(), theirs.tolist(), strict=True)) == [(1, 1), (1, 3), (3, 1), (3, 3)]


def summary(values: list[Any]) -> dict[str, Any]:
    return {
        "count": len(values),
        "total": sum(values),
        "least": min(values),
        "most": max(values),
        "mean": sum(values) / len(values),
    }


ALL = {"count": "count", "total": ("sum", "n"), "least": ("min", "n"), "most": ("max", "n"), "mean": ("mean", "n")}


@pytest.mark.parametrize("by", [(), ("k",), ("word",), ("x",), ("word", "k"), ("x", "word", "k")], ids=str)
def test_aggregate_is_a_summary_of_each_group_at_each_time(by: tuple[str, ...]) -> None:
    for seed in SEEDS[:6]:
        epochs = records(seed)
        groups: dict[Any, list[int]] = defaultdict(list)
        for time, record in everything(epochs):
            groups[time, tuple(record[name] for name in by)].append(record["n"])
        expected = Counter(
            (time, (*zip(by, key, strict=True), *summary(values).items())) for (time, key), values in groups.items()
        )
        assert run(seed, lambda s: s.columns.aggregate(by, **ALL), epochs) == expected


@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i4", "u8", "f4", "f8"])
def test_aggregates_of_every_type_do_not_overflow(kind: str) -> None:
    values = np.array([1, 0, 1, 1] if kind == "?" else [100, 1, 27, 127] * 2, kind)
    plan = Aggregates((), {"total": ("sum", "n"), "least": ("min", "n"), "most": ("max", "n"), "mean": ("mean", "n")})
    parts = [plan.partial(Columns({"n": part})) for part in (values[:3], values[3:], values[:0])]
    expected = [int(v) for v in values]
    ((total, least, most, mean),) = plan.finish(plan.merge(parts), "here").rows()
    assert (total, least, most, mean) == (sum(expected), min(expected), max(expected), sum(expected) / len(expected))


def test_aggregate_without_aggregates_is_distinct() -> None:
    epochs = [[{"k": n % 3} for n in range(9)], [{"k": 1}] * 4]
    assert run(3, lambda s: s.columns.aggregate("k"), epochs) == Counter(
        [(0, row(k=0)), (0, row(k=1)), (0, row(k=2)), (1, row(k=1))]
    )


@pytest.mark.parametrize("key", ["k", "word", "x", ("word", "k")], ids=str)
def test_join_is_a_nested_loop_at_each_time(key: Any) -> None:
    names = (key,) if isinstance(key, str) else key
    for seed in SEEDS[:6]:
        left, right = records(seed), records(seed + 50)
        expected: Counter[Any] = Counter()
        for time, a in everything(left):
            for other, b in everything(right):
                if time == other and all(a[name] == b[name] for name in names):
                    rest = {f"{name}_right": value for name, value in b.items() if name not in names}
                    expected[time, tuple((a | rest).items())] += 1
        assert run(seed, lambda a, b: a.columns.join(b, key), left, right) == expected


def test_join_with_keys_of_other_names_and_columns_of_the_same() -> None:
    left = [[{"a": 1, "v": 10, "v_right": 0}]]
    right = [[{"b": 1, "a": 5, "v": 20}, {"b": 2, "a": 6, "v": 30}]]
    out = run(2, lambda x, y: x.columns.join(y, "a", "b"), left, right)
    assert out == Counter([(0, row(a=1, v=10, v_right=0, a_right=5, v_right_right=20))])
    out = run(2, lambda x, y: y.columns.join(x, ["b"], ["a"]), left, right)
    assert out == Counter([(0, row(b=1, a=5, v=20, v_right=10, v_right_right=0))])


def test_join_compares_what_can_be_compared() -> None:
    def pairs(left: Any, right: Any) -> list[tuple[int, int]]:
        ours, theirs = match(Columns({"k": left}), Columns({"k": right}), ["k"], ["k"])
        return sorted(zip(ours.tolist(), theirs.tolist(), strict=True))

    signed, unsigned = np.array([-1, 5, 2**53 + 1]), np.array([2**64 - 1, 5, 2**53, 2**53 + 1], np.uint64)
    assert pairs(signed, unsigned) == [(1, 1), (2, 3)]  # and not by way of floats, where 2^53 is 2^53 + 1
    assert pairs(np.array([1, 2], "i1"), np.array([2, 1], ">i8")) == [(0, 1), (1, 0)]
    assert pairs(np.array([1.5], "f4"), np.array([1.5])) == [(0, 0)]
    assert pairs(pa.array(["x", None]), pa.array([None, "x"], pa.large_string())) == [(0, 1), (1, 0)]
    assert pairs(np.array([math.nan]), np.array([math.nan])) == []
    assert pairs(np.array([1, 2], "M8[s]"), np.array([2000, 1001, 1000], "M8[ms]")) == [(0, 2), (1, 0)]
    for left, right, kinds in (
        (signed, np.array([1.0]), "int64 and float64"),
        (signed, pa.array(["1"]), "int64 and string"),
        (pa.array(["1"]), pa.array([b"1"]), "string and binary"),
        (np.array([1], "M8[s]"), np.array([1], "m8[s]"), "datetime64[s] and timedelta64[s]"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"a join compares 'k' with 'k', which hold {kinds}: make them")):
            pairs(left, right)


def window_records(seed: int, times: int) -> Epochs:
    """Records that are never late for a window: their time is that of the dataflow, or ahead of it."""
    chance = Random(seed)
    return [
        [{"t": time + chance.randint(0, 4), "k": chance.choice("ab"), "n": chance.randint(-5, 5)} for _ in range(4)]
        if chance.random() < 0.7
        else []
        for time in range(times)
    ]


@pytest.mark.parametrize(("size", "slide"), [(1, 1), (3, 3), (4, 2), (6, 1), (9, 3)])
@pytest.mark.parametrize("by", [(), ("k",)], ids=str)
def test_windows_are_those_that_contain_a_record(size: int, slide: int, by: tuple[str, ...]) -> None:
    for seed in range(4):
        epochs = window_records(seed, 8)
        groups: dict[Any, list[int]] = defaultdict(list)
        for _, record in everything(epochs):
            for end in range(0, 40, slide):
                if end - size <= record["t"] < end:
                    groups[end, tuple(record[name] for name in by)].append(record["n"])
        expected = Counter(
            (end, (("window_end", end), *zip(by, key, strict=True), *summary(values).items()))
            for (end, key), values in groups.items()
        )

        def build(stream: Any) -> Any:
            if size == slide and size > 1:
                return stream.columns.tumbling("t", size, by, **ALL)
            return stream.columns.sliding("t", size, slide, by, **ALL)

        assert run(seed, build, epochs) == expected


def test_a_record_that_is_too_late_for_its_window_is_an_error() -> None:
    epochs = [[], [], [], [{"t": 1, "n": 1}]]
    with pytest.raises(ValueError, match="tumbling: a record of the window that ends at 2 came at 3: too late"):
        run(1, lambda s: s.columns.tumbling("t", 2, n="count"), epochs)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s: s.columns.exchange(), ConstructionError, "exchange needs the name of at least one column"),
        (lambda s: s.columns.map(5), ConstructionError, "map"),
        (lambda s: s.columns.filter(None), ConstructionError, "filter"),
        (lambda s: s.columns.join(s, ()), ConstructionError, "join needs as many key columns on either side"),
        (lambda s: s.columns.join(s, "k", ("k", "n")), ConstructionError, "join needs as many key columns"),
        (lambda s: s.columns.sliding("t", 5, 2), ConstructionError, "must be a multiple of its slide: 5 and 2"),
        (lambda s: s.columns.sliding("t", 2, 4), ConstructionError, "must be a multiple of its slide: 2 and 4"),
        (lambda s: s.columns.tumbling("t", 0), ConstructionError, "above zero, not 0 and 0"),
        (lambda s: s.columns.aggregate("k", n="sum"), ValueError, "n='sum' is not an aggregate: say 'count', or"),
        (lambda s: s.columns.aggregate("k", n=("median", "n")), ValueError, "n=('median', 'n') is not an aggregate"),
        (lambda s: s.columns.aggregate("k", n=("count", "n")), ValueError, "n=('count', 'n') is not an aggregate"),
        (lambda s: s.columns.aggregate("k", k="count"), ValueError, "'k' is a column to group by"),
    ],
)
def test_what_cannot_be_built(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run(1, build, [[{"k": 1, "n": 1, "t": 1}]], workers=1)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s: s.columns.map(lambda b: None), TypeError, "map: the function returned nothing"),
        (lambda s: s.columns.map(lambda b: 5), TypeError, "columns are made from a mapping of names to arrays"),
        (lambda s: s.columns.filter(lambda b: b["k"]), TypeError, "a mask has one boolean per row, 1 here, not int64"),
        (lambda s: s.columns.project("k", "z"), KeyError, "there is no column 'z'; there are k, n, word"),
        (lambda s: s.columns.exchange("z"), KeyError, "there is no column 'z'"),
        (lambda s: s.columns.with_columns(lambda b: {"q": [1, 2]}), ValueError, "columns must have one length"),
        (lambda s: s.columns.aggregate("k", n=("sum", "word")), TypeError, "column 'word' holds strings, of which"),
        (lambda s: s.columns.join(s, "k", "word"), TypeError, "a join compares 'k' with 'word'"),
    ],
)
def test_what_goes_wrong_while_it_runs(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        run(1, build, [[{"k": 1, "n": 1, "word": "x"}]], workers=1 if error is not KeyError else 2)


def test_complex_numbers_are_no_keys() -> None:
    with pytest.raises(TypeError, match="complex numbers cannot be keys: use their parts, as two columns"):
        places(np.array([1j]))


def test_rows_in_the_place_of_columns() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.columns.filter(lambda b: b["k"] > 0).probe()
        handle.send([1, 2, 3])

    message = "filter works on columns, and rows came: send a mapping of names to arrays, such as {'key': array}"
    with pytest.raises(TypeError, match=re.escape(message)):
        dataflow.execute(main, workers=1, in_process=True)
