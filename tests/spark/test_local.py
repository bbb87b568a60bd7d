"""A session on this machine, whose slots are threads of one JVM; guests are processes all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dataflow.spark
from dataflow.errors import NotAsGuest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_function_within_a_function_with_what_it_uses(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    factor = 3

    async def main(worker: dataflow.Worker, first: int) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.map(lambda n: n * factor).exchange(lambda n: n).inspect(lambda _, n: seen.append(n))
        numbers.send([first + worker.index])
        print("at", worker.index)
        return seen

    results = dataflow.spark.execute(main, 4, workers=2, session=spark)
    assert results == [[12], [15]]
    assert sorted(capfd.readouterr().out.splitlines()) == ["at 0", "at 1"]


def test_too_few_slots(spark: SparkSession) -> None:
    async def main(worker: dataflow.Worker) -> None: ...

    with pytest.raises(NotAsGuest, match=r"3 workers need 3 slots of the session at once, and there are 2 in all aft"):
        dataflow.spark.execute(main, workers=3, session=spark, wait=0.1)


def test_what_cannot_be_right_is_refused_before_anything_runs(spark: SparkSession) -> None:
    async def main(worker: dataflow.Worker) -> None: ...

    with pytest.raises(ValueError, match="ports= is a range"):
        dataflow.spark.execute(main, workers=2, session=spark, ports=(5, 6))
    with pytest.raises(ValueError, match="only this one can see"):
        dataflow.spark.execute(main, workers=2, session=spark, recovery="memory://here")
    with pytest.raises(ValueError, match="workers must be a positive integer"):
        dataflow.spark.execute(main, workers=0, session=spark)
