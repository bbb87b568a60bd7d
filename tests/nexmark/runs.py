"""Runs of queries on the engine, for several tests: random plans, and what must come of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import megaphone
from dataflow.state.folds.fold import Fold
from dataflow.testing import simulate
from nexmark.answers import oracle
from nexmark.events.config import SECOND, Config
from nexmark.events.generator import ENCODED, Generator
from nexmark.events.rows import rows
from nexmark.events.vocabulary import dictionary
from nexmark.queries.queries import NEEDS
from nexmark.runs.running import RunPlan, main, operators
from nexmark.runs.sources import with_dates, with_plain
from tests.nexmark.cases import Row

Events = Mapping[str, Sequence[Row]]


class Plain:
    """A set of operators with folds that run uncompiled: under a random schedule, compiling would take longest."""

    def __init__(self, ops: Any) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def state_machine(self, stream: Any, **options: Any) -> Any:
        return self._ops.state_machine(stream, **_uncompiled(options))

    def binary(self, left: Any, right: Any, **options: Any) -> Any:
        return self._ops.binary(left, right, **_uncompiled(options))


def _uncompiled(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value.without_compiling() if isinstance(value, Fold) else value for name, value in options.items()}


def plain(plan: RunPlan) -> Any:
    """What `main` takes as `ops` for a plan whose folds are to run uncompiled."""
    return partial(lambda plan, configuration: Plain(operators(plan, configuration)), plan)


def columns(events: Events, query: str) -> dict[str, dict[str, Any]]:
    """Rows as the columns that a query reads, words as codes."""
    return {
        kind: {name: _column([row[name] for row in events[kind]], name) for name in names}
        for kind, names in with_dates(NEEDS[query]).items()
    }


def _column(values: list[Any], name: str) -> Any:
    if name in ENCODED:
        return np.array([dictionary(name).index(word) for word in values], np.int32)
    return np.array(values, np.int64)


def random_updates(chance: random.Random, plan: RunPlan, workers: int, count: int) -> list[tuple[int, Any]]:
    """Moves and maps at random times of the run, some of them at one time, some beyond the end of the input."""
    source = plan.source()
    times = [source.time(number) for number in range(source.epochs)] or [0]
    end = times[-1] + 3 * source.grid
    updates: list[tuple[int, Any]] = []
    for _ in range(count):
        time = chance.choice([chance.choice(times), chance.randint(times[0], end)])
        if chance.random() < 0.7:
            updates.append((time, megaphone.Move(chance.randrange(plan.bins), chance.randrange(workers))))
        else:
            updates.append((time, megaphone.Assign(tuple(chance.randrange(workers) for _ in range(plan.bins)))))
    return updates


WINDOWS = {
    "q5": {"window": 3 * SECOND, "slide": SECOND},
    "q7": {"window": 2 * SECOND},
    "q8": {"window": 4 * SECOND},
    "q11": {"gap": SECOND // 10},
    "q12": {"window": SECOND},
    **{query: {"day": 2 * SECOND} for query in ("q15", "q16", "q17", "q18", "q19")},
}


def options_of(query: str, windows: Mapping[str, int]) -> dict[str, int]:
    """The oracle's windows as those of the query."""
    return {f"{query}_{name}": value for name, value in windows.items()}


def random_plan(query: str, seed: int, workers: int, events: int) -> tuple[RunPlan, dict[str, int]]:
    """A plan of everything, and the windows for oracles."""
    chance = random.Random(f"{query} {seed}")
    config = Config(
        seed=seed,
        rate=chance.choice([30, 100, 1000, 333.3]),
        group=chance.choice([1, 1, 3, 10, 100]),
        base_time=chance.choice([0, 1, 12_345_678_901]),
        in_flight=chance.choice([1, 5, 100]),
        persons=chance.choice([1, 5]),
        hot_seller_ratio=chance.choice([1, 4]),
        active_people=chance.choice([20, 1000]),
    )
    windows = chance.choice([{}, WINDOWS.get(query, {})])
    batch = chance.choice([1, 7, 50, 10_000]) if events < 1000 else chance.choice([500, 3000, 1 << 17])
    plan = RunPlan(
        query,
        config,
        events=events,
        variant=chance.choice(["native", "migratable", "migratable", "migratable"]),
        bins=chance.choice([2, 8, 64]),
        batch=max(batch, events // 30),
        windows=options_of(query, windows),
        keep=True,
    )
    if plan.variant == "migratable" and chance.random() < 0.8:
        plan = replace(plan, updates=random_updates(chance, plan, workers, chance.randint(1, 12)))
    return plan, windows


def answer(plan: RunPlan, windows: Mapping[str, int]) -> Counter[Any]:
    """What the sequential oracle says to a plan of generated events."""
    made = Generator(plan.config, with_plain(NEEDS[plan.query])).events(range(plan.events))
    told = {**plan.oracle_options(), **windows}
    return Counter(oracle.QUERIES[plan.query]({kind: rows(table) for kind, table in made.items()}, **told))


def run_case(seed: int) -> None:
    """A random query, plan, migrations and schedule, against the oracle."""
    chance = random.Random(seed)
    query, workers = chance.choice(list(oracle.QUERIES)), chance.choice([1, 2, 3, 4])
    plan, windows = random_plan(query, seed % 2**32, workers, chance.choice([1, 50, 250]))
    results = simulate(main, plan, None, plain(plan), workers=workers, seed=seed)
    assert rows_of(results) == answer(plan, windows), f"{plan}"


def rows_of(results: Sequence[Any]) -> Counter[Any]:
    """The rows of all workers."""
    return Counter(tuple(row) for result in results for row in result.kept)
