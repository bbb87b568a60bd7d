"""Whether several ways of answering a query give the same rows, and in what they differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from megaphone import Assign, Move
from megaphone.control.updates import Update
from nexmark.events.rows import Cell
from nexmark.runs.running import RunPlan

Rows: TypeAlias = Counter[tuple[Cell, ...]]


def random_updates(plan: RunPlan, workers: int, count: int, seed: int) -> list[tuple[int, Update]]:
    """Moves of single bins and whole maps, at random times of a run."""
    chance = random.Random(seed)
    source = plan.source()
    times = [source.time(number) for number in range(source.epochs)] or [0]
    updates: list[tuple[int, Update]] = []
    for _ in range(count):
        update: Update = Move(chance.randrange(plan.bins), chance.randrange(workers))
        if chance.random() < 0.5:
            update = Assign(tuple(chance.randrange(workers) for _ in range(plan.bins)))
        updates.append((chance.randint(times[0], times[-1] + source.grid), update))
    return updates


@dataclass(frozen=True)
class Difference:
    """Rows that one way gave and the other did not, with how many more of each."""

    missing: Rows
    extra: Rows

    @classmethod
    def between(cls, expected: Rows, found: Rows) -> Difference:
        """In what `found` is not as expected.

        >>> difference = Difference.between(Counter([(1,), (2,), (2,)]), Counter([(2,), (3,)]))
        >>> print(difference.describe(["price"]))
        2 rows are missing, 1 row should not be there:
          missing: price=1
          missing: price=2
          extra:   price=3
        """
        return cls(expected - found, found - expected)

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)

    def describe(self, columns: Sequence[str], most: int = 5) -> str:
        """For people: how many, and the first few of each, in order."""
        missing, extra = self.missing.total(), self.extra.total()
        counts = [f"{missing:,} {_rows(missing)} missing"] if missing else []
        counts += [f"{extra:,} row{'s' if extra > 1 else ''} should not be there"] if extra else []
        lines = [", ".join(counts) + ":"]
        for label, rows in (("missing:", self.missing), ("extra:", self.extra)):
            for row in sorted(rows)[:most]:
                times = f" ({rows[row]} times)" if rows[row] > 1 else ""
                values = ", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=True))
                lines.append(f"  {label:<8} {values}{times}")
            if len(rows) > most:
                lines.append(f"  {label:<8} and {len(rows) - most:,} others")
        return "\n".join(lines)


def _rows(count: int) -> str:
    return "row is" if count == 1 else "rows are"


def asked_of_spark(query: str, directory: Path, options: Mapping[str, int | Sequence[int]]) -> Rows:
    """The rows that Spark SQL gives for the events in a folder. ModuleNotFoundError if pyspark is not installed."""
    from nexmark.answers import spark_oracle

    with spark_oracle.local_session(directory) as session:
        spark_oracle.load(session, directory)
        return Counter(spark_oracle.answer(session, query, **options))
