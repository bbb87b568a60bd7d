"""Steps without state against Arrow's own engine, on random expressions over columns of all types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import acero

from dataflow.columns import Columns
from megaphone.frames import col, lit
from megaphone.frames.expressions import Expression
from megaphone.frames.running import Keeping, Making, run

ROWS = 40
MOMENT = datetime(2026, 7, 1, 12, tzinfo=UTC)


def table(chance: Random) -> pa.Table:
    def some(kind: pa.DataType) -> pa.Array:
        return pa.array([chance.randint(0, 9) for _ in range(ROWS)], pa.int64()).cast(kind)

    return pa.table(
        {
            "wide": some(pa.int64()),
            "narrow": some(pa.int32()),
            "byte": some(pa.uint8()),
            "float": some(pa.float64()),
            "half": some(pa.float32()),
            "word": pa.array([chance.choice(["a", "b", None]) for _ in range(ROWS)]),
            "large": pa.array([chance.choice("abc") for _ in range(ROWS)], pa.large_string()),
            "flag": pa.array([chance.random() < 0.5 for _ in range(ROWS)]),
            "at": pa.array([MOMENT] * ROWS, pa.timestamp("ms", "UTC")),
            "day": pa.array([date(2026, 7, chance.randint(1, 9)) for _ in range(ROWS)]),
        }
    )


def number(chance: Random, depth: int = 2) -> Expression:
    if depth == 0 or chance.random() < 0.3:
        return chance.choice([col(name) for name in ("wide", "narrow", "byte", "float", "half")] + [lit(3), lit(0.1)])
    left, right = number(chance, depth - 1), number(chance, depth - 1)
    return chance.choice([lambda: left + right, lambda: left * right, lambda: left + 7, lambda: right / 2])()


def truth(chance: Random, depth: int = 2) -> Expression:
    if depth and chance.random() < 0.6:
        left, right = truth(chance, depth - 1), truth(chance, depth - 1)
        return chance.choice([left & right, left | right, ~left])
    return chance.choice(
        [
            number(chance) > 5,
            number(chance) <= number(chance),
            col("word") == "a",
            col("large") != "b",
            col("large").is_in(["a", "c"]),
            col("narrow").is_in([1, 2, 3]),
            col("flag"),
            col("at") >= MOMENT,
            col("day") < date(2026, 7, 4),
        ]
    )


def by_engine(steps: list[Keeping | Making], given: pa.Table) -> pa.Table:
    names = given.column_names
    plan = [acero.Declaration("table_source", acero.TableSourceNodeOptions(given))]
    for step in steps:
        if isinstance(step, Keeping):
            plan.append(acero.Declaration("filter", acero.FilterNodeOptions(step.where.arrow)))
            continue
        made = {name: each.arrow for name, each in step.columns.items()}
        all_of = {name: pc.field(name) for name in names} | made if step.adds else made
        names = list(all_of)
        plan.append(acero.Declaration("project", acero.ProjectNodeOptions([*all_of.values()], names)))
    return acero.Declaration.from_sequence(plan).to_table(use_threads=False)


@pytest.mark.parametrize("seed", range(60))
def test_steps_are_what_arrow_says(seed: int) -> None:
    chance = Random(seed)
    given = table(chance)
    steps: list[Keeping | Making] = []
    for _ in range(chance.randint(1, 4)):
        if chance.random() < 0.5:
            steps.append(Keeping(truth(chance)))
        else:
            steps.append(Making({"made": number(chance), "again": col("word")}, adds=True))
    if chance.random() < 0.5:
        steps.append(Making({"x": number(chance), "word": col("word"), "at": col("at")}, adds=False))
    found, expected = run(steps, None, Columns(given)), Columns(by_engine(steps, given))
    assert found == expected
    assert found.to_arrow().schema.types == expected.to_arrow().schema.types


def test_what_goes_wrong_says_so() -> None:
    given = Columns({"a": [1, 2], "b": [0, 1 << 62], "s": ["x", "y"]})
    for step, error, message in [
        (Keeping(col("a")), TypeError, "a filter needs an expression that is true or false, and this is int64"),
        (Keeping(col("c") > 1), KeyError, "there is no column 'c'; there are a, b, s"),
        (Making({"d": col("a") / col("b")}, adds=True), pa.ArrowInvalid, "divide by zero"),
        (Making({"d": col("a") * col("b") * 2}, adds=True), pa.ArrowInvalid, "overflow"),
        (Making({"d": col("a") + col("s")}, adds=True), pa.ArrowNotImplementedError, "no kernel matching"),
    ]:
        raised: Any = error
        with pytest.raises(raised, match=message):
            run([step], None, given)
    halves = run([Making({"half": col("b") * 0.5}, adds=False)], None, Columns({"b": [(1 << 24) + 1]}))
    assert halves.rows() == [((1 << 23) + 0.5,)]  # which no float of 32 bits is
    assert run([Making({"one": lit(1)}, adds=False)], None, given).rows() == [(1,), (1,)]
    assert len(run([Keeping(lit(False))], ["a"], given)) == 0
