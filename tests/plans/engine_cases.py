"""Random joins on the engine: replans, moves and schedules from a seed, against the oracle of all combinations."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

import dataflow
import megaphone
from dataflow.testing import Starving, simulate
from megaphone.plans.migrating import METHODS
from megaphone.plans.query import Query
from tests.plans.cases import Epochs, count, in_halves, near, oracle, random_tree

Updates = dict[tuple[int, int], list[Any]]  # (worker, time)


class Form:
    """How records are sent and come out: as rows."""

    def join(self, case: EngineCase, configuration: Any, streams: Any) -> Any:
        """The join of a case."""
        return megaphone.window_join(
            configuration, streams, case.query, plan=case.plan, bins=case.bins, budget=case.budget
        )

    def batch(self, records: list[Any]) -> Any:
        """Records as they are sent."""
        return records

    def result(self, row: Any) -> Any:
        """A row that came out, as a tuple of records."""
        return row


class ColumnForm(Form):
    """As columns: the third field of a record, which is text, as a number."""

    def __init__(self, case: EngineCase, compiled: bool) -> None:
        every = [r for mine in case.records for epoch in mine for some in epoch.values() for r in some]
        self._texts = [*{record[2]: None for record in every}]
        self._numbers = {text: number for number, text in enumerate(self._texts)}
        self._compiled = compiled

    def join(self, case: EngineCase, configuration: Any, streams: Any) -> Any:
        where = dict.fromkeys(case.query.where, near_columns)
        query = Query(case.query.streams, case.query.window, None if case.query.on is None else "key", where)
        return megaphone.window_join(
            configuration, streams, query, plan=case.plan, bins=case.bins, budget=case.budget, columns=True,
            compiled=self._compiled,
        )  # fmt: skip

    def batch(self, records: list[Any]) -> Any:
        keys, values, texts = zip(*records, strict=True)
        numbers = [self._numbers[text] for text in texts]
        return {"key": np.array(keys), "value": np.array(values, np.int16), "text": np.array(numbers, np.uint32)}

    def result(self, row: Any) -> Any:
        return tuple((row[i], row[i + 1], self._texts[row[i + 2]]) for i in range(0, len(row), 3))


def near_columns(one: Any, other: Any) -> bool:
    """`near`, over columns."""
    return abs(one.value - other.value) <= 2


def in_columns(case: EngineCase, compiled: bool = False) -> EngineCase:
    """The same case in columns. With a key there are two bins at least."""
    bins = None if case.bins is None else max(2, case.bins)
    return replace(case, bins=bins, form=ColumnForm(case, compiled))


@dataclass(frozen=True)
class EngineCase:
    """A join on some workers. `records[worker]`: what each sends. `ahead`: how much earlier updates are sent."""

    query: Query
    plan: str
    bins: int | None
    budget: int
    peers: int
    records: list[Epochs]
    updates: Updates = field(default_factory=dict)
    ahead: int = 0
    form: Form = field(default_factory=lambda: Form())

    @property
    def epochs(self) -> Epochs:
        """What all workers send together."""
        return [
            {name: [r for mine in self.records for r in mine[time][name]] for name in self.query.streams}
            for time in range(len(self.records[0]))
        ]


def random_engine_case(seed: int, methods: tuple[str, ...]) -> EngineCase:
    chance = Random(seed)
    peers = chance.randint(1, 4)
    names = list("abcdef"[: chance.choice([2, 3, 3, 4, 4, 5, 6])])
    window = chance.choice([1, 2, 4, 7, 12])
    where = {pair: near for pair in itertools.combinations(names, 2) if chance.random() < 0.25}
    query = Query(tuple(names), window, on=0 if chance.random() < 0.85 else None, where=where)
    bins = 1 << chance.randrange(4) if query.on is not None else None
    times, keys = 2 * window + chance.randint(4, 8), chance.choice([1, 2, 4])
    each = chance.choice([3.0, 5.0]) / len(names) ** 2 / peers

    def some(what: str) -> list[Any]:
        return [(chance.randrange(keys), chance.randrange(6), f"{what}.{i}") for i in range(count(chance, each))]

    records: list[Epochs] = [
        [{name: some(f"{name}{time}.{w}") for name in names} for time in range(times)] for w in range(peers)
    ]
    make = chance.choice([random_tree, in_halves]) if len(names) > 4 else random_tree
    plans = [*{query.plan(str(make(chance, names))): None for _ in range(6)}]
    updates = random_updates(chance, [*map(str, plans)], methods, times, bins or 1, peers)
    budget = chance.choice([1, 3, 1000])
    return EngineCase(query, str(plans[0]), bins, budget, peers, records, updates, chance.randint(0, 3))


def random_updates(
    chance: Random, plans: list[str], methods: tuple[str, ...], times: int, bins: int, peers: int
) -> Updates:
    """Replans of all bins or of some, moves, both at once, and what is cancelled."""
    updates: Updates = {}
    for time in range(1, times):
        worker = chance.randrange(peers)
        said: list[Any] = updates.setdefault((worker, time), [])
        if chance.random() < 0.3:
            some = sorted(chance.sample(range(bins), chance.randint(1, bins))) if chance.random() < 0.4 else None
            share, background = chance.random() < 0.7, chance.random() < 0.8
            method = chance.choice(methods)
            said.append(megaphone.Replan(chance.choice(plans), method, some, share, background or method == "ghm"))
            if chance.random() < 0.1:
                said.append(megaphone.Replan(None, bins=some))
        if chance.random() < 0.4:
            said += [megaphone.Move(chance.randrange(bins), chance.randrange(peers)) for _ in range(2)]
    return updates


async def main(worker: dataflow.Worker, case: EngineCase) -> Any:
    """Runs a case; what came out here, and how many replans were refused here: those to the plan that is there."""
    out: list[Any] = []
    refused = 0
    query = case.query
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = {}, {}
        for name in query.streams:
            inputs[name], streams[name] = scope.input(name)
        joined = case.form.join(case, configuration, streams)
        probe = joined.inspect(lambda t, r: out.append((t, case.form.result(r)))).probe()
    waiting = {at: said for (index, at), said in sorted(case.updates.items()) if index == worker.index}
    for time, epoch in enumerate(case.records[worker.index]):
        for at in [at for at in waiting if at <= time + case.ahead]:
            refused += send(control, waiting.pop(at), at, worker.peers == 1)
        for name, records in epoch.items():
            if records:
                inputs[name].send(case.form.batch(records))
            inputs[name].advance_to(time + 1)
        control.advance_to(time + 1)
        await probe.wait_passed(time - 2)
    for handle in inputs.values():
        handle.close()
    control.close()
    await probe.wait_done()
    return out, refused, len(joined.handle.store.occupied())


def send(control: Any, updates: list[Any], at: int, alone: bool = True) -> int:
    """With several workers nothing is refused for what was heard by chance."""
    refused = 0
    for update in updates:
        try:
            control.send([update], at=at)
        except megaphone.ControlError as error:
            if "already" not in str(error) or not alone:
                raise
            refused += 1
    return refused


def run_case(seed: int) -> None:
    """One random case of any method, for as many seeds as anybody likes."""
    run_engine_case(seed, METHODS)


def run_engine_case(seed: int, methods: tuple[str, ...]) -> None:
    """What comes out of the engine is what all combinations give, at the same times."""
    check_engine_case(random_engine_case(seed, methods), seed)


def check_engine_case(case: EngineCase, seed: int) -> None:
    starving = Starving(100) if seed % 5 == 1 else None
    results = simulate(main, case, workers=case.peers, seed=seed, debug=seed % 7 == 3, scheduler=starving)
    found: Counter[Any] = Counter(entry for out, *_ in results for entry in out)
    expected = oracle(case.query, case.epochs)
    assert found == Counter({(t, r): n for t, rows in expected.items() for r, n in rows.items()}), f"seed {seed}"
