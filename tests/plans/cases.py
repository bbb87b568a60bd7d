"""Random joins, random plans and random migrations; and the oracle: every combination of records, one by one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from megaphone.plans.migrating import METHODS, Options, Running
from megaphone.plans.query import Query
from megaphone.plans.trees import Join, Leaf, Tree

Epochs = list[dict[str, list[Any]]]  # by time, the records of each stream
Results = dict[int, Counter[Any]]  # by time


def near(one: Any, other: Any) -> bool:
    """A predicate that is not transitive."""
    return abs(one[1] - other[1]) <= 2


@dataclass(frozen=True)
class Replanned:
    """A replan: when, to which tree, how; and at which times the background has how much of a budget."""

    time: int
    tree: Tree
    method: str
    budgets: dict[int, int]
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Case:
    """A query over some records, its first plan, and replans in the order of their times."""

    query: Query
    epochs: Epochs
    tree: Tree
    replans: list[Replanned]


def random_tree(chance: Random, names: list[str]) -> Tree:
    """Any binary tree over these."""
    if len(names) == 1:
        return Leaf(frozenset(names))
    names = chance.sample(names, len(names))
    cut = chance.randrange(1, len(names))
    return Join(random_tree(chance, names[:cut]), random_tree(chance, names[cut:]))


def in_halves(chance: Random, names: list[str]) -> Tree:
    """A tree whose two sides are always of the same streams: two such have more in common."""
    cut = len(names) // 2
    return Join(random_tree(chance, names[:cut]), random_tree(chance, names[cut:]))


def random_case(seed: int, methods: tuple[str, ...] = METHODS) -> Case:
    chance = Random(seed)
    names = list("abcdef"[: chance.choice([2, 3, 3, 4, 4, 5, 6])])
    window = chance.choice([1, 3, 6, 12])
    where = {pair: near for pair in itertools.combinations(names, 2) if chance.random() < 0.3}
    query = Query(tuple(names), window, on=0 if chance.random() < 0.8 else None, where=where)
    times, keys = 4 * window + 8, chance.choice([1, 2, 4])
    each = chance.choice([3.0, 4.5, 6.0]) / len(names) ** 2 / (1 + window // 6)
    make_tree = chance.choice([random_tree, in_halves])
    epochs: Epochs = [
        {name: [(chance.randrange(keys), chance.randrange(6), f"{name}{time}.{i}") for i in range(count(chance, each))]
         for name in names}
        for time in range(times)
    ]  # fmt: skip
    replans, time = [], chance.randrange(1, window + 3)
    while time < times and len(replans) < 3:
        budgets = {at: chance.choice([0, 1, 5, 1000]) for at in range(time, times) if chance.random() < 0.4}
        options = Options(share=chance.random() < 0.7)
        replans.append(Replanned(time, make_tree(chance, names), chance.choice(methods), budgets, options))
        time += window + chance.randrange(4)
    return Case(query, epochs, make_tree(chance, names), replans)


def dense_case(seed: int) -> Case:
    """Four streams with one key, replanned once by HybMig, whose background work goes slowly: chains are long."""
    chance = Random(seed)
    query = Query(tuple("abcd"), 8, on=0)
    epochs: Epochs = [
        {name: [(0, 0, f"{name}{time}")] * (chance.random() < 0.3) for name in "abcd"} for time in range(24)
    ]
    budgets = {at: chance.randrange(1, 4) for at in range(6, 24) if chance.random() < 0.4}
    trees = [random_tree(chance, list("abcd")) for _ in range(2)]
    return Case(query, epochs, trees[0], [Replanned(6, trees[1], "hybmig", budgets)])


def count(chance: Random, mean: float) -> int:
    return sum(chance.random() < mean / 3 for _ in range(3))


def oracle(query: Query, epochs: Epochs) -> Results:
    """Every combination of one record of each stream in which each two belong together, at the latest of its times."""
    of = [[(time, record) for time, epoch in enumerate(epochs) for record in epoch[name]] for name in query.streams]
    results: Results = {}

    def fit(one: int, first: Any, other: int, second: Any) -> bool:
        if abs(first[0] - second[0]) > query.window or query.key_of(first[1]) != query.key_of(second[1]):
            return False
        return (query.streams[one], query.streams[other]) not in query.where or near(first[1], second[1])

    def extend(parts: list[Any]) -> None:
        if len(parts) == len(of):
            results.setdefault(max(time for time, _ in parts), Counter())[tuple(record for _, record in parts)] += 1
            return
        for part in of[len(parts)]:
            if all(fit(i, earlier, len(parts), part) for i, earlier in enumerate(parts)):
                extend([*parts, part])

    extend([])
    return results


def run(case: Case) -> Iterator[tuple[int, Counter[Any], Running]]:
    """The results at each time, with migrations; and the plan as it is then."""
    running = Running(case.query, case.tree)
    replans = {replan.time: replan for replan in case.replans}
    budgets = {at: budget for replan in case.replans for at, budget in replan.budgets.items()}
    waiting: list[Replanned] = []
    for time, epoch in enumerate(case.epochs):
        running.work(budgets.get(time, 0), time)
        if time in replans:
            waiting.append(replans[time])
        if waiting and (running.migration is None or running.migration.is_over(time)):
            if running.migration is not None:
                running._finish()
            replan = waiting.pop(0)
            running.replan(replan.tree, replan.method, time, replan.options)
        yield time, Counter(running.run(time, epoch)), running


def run_case(seed: int, methods: tuple[str, ...] = METHODS) -> None:
    """Every method gives what all combinations give, at the same times."""
    check(random_case(seed, methods), seed)


def check(case: Case, seed: int) -> None:
    """The results at each time are those of the oracle."""
    expected = oracle(case.query, case.epochs)
    for time, results, _ in run(case):
        assert results == expected.get(time, Counter()), f"seed {seed}, time {time}"
