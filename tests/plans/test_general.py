"""Opaque plans: GMS, GPT and GHM give what never changing the plan gives, as long as the reach is true."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.plans import Opaque
from megaphone.plans.bins import Asked
from megaphone.plans.general import GENERAL, OpaqueBin, OpaqueBins
from megaphone.plans.trees import BadPlan
from tests.plans.boxes import V, W, all_pairs, by_key, first_only, join_first
from tests.plans.cases import Epochs
from tests.plans.engine_cases import Updates, random_updates, send

PLANS = {"join first": join_first, "by key": by_key}
CASES = 120


def random_records(chance: Random, times: int) -> Epochs:
    return [
        {
            name: [(chance.randrange(3), chance.randrange(9)) for _ in range(chance.choice([0, 0, 1, 1, 2]))]
            for name in "ab"
        }
        for _ in range(times)
    ]


async def main(
    worker: dataflow.Worker, opaque: Opaque, records: list[Epochs], updates: Updates, bins: int, budget: int
) -> Any:
    out: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = {}, {}
        for name in opaque.streams:
            inputs[name], streams[name] = scope.input(name)
        operator = megaphone.opaque(configuration, streams, opaque, plan="join first", bins=bins, budget=budget)
        probe = operator.inspect(lambda t, r: out.append((t, r))).probe()
    waiting = {at: said for (index, at), said in sorted(updates.items()) if index == worker.index}
    for time, epoch in enumerate(records[worker.index]):
        for at in [at for at in waiting if at <= time + 2]:
            send(control, waiting.pop(at), at)
        for name, batch in epoch.items():
            if batch:
                inputs[name].send(batch)
            inputs[name].advance_to(time + 1)
        control.advance_to(time + 1)
        await probe.wait_passed(time - 2)
    for handle in (*inputs.values(), control):
        handle.close()
    await probe.wait_done()
    return out


def run(seed: int, methods: tuple[str, ...], reach: int) -> bool:
    """Whether a random case gives what all pairs give."""
    chance = Random(seed)
    peers, bins, times = chance.randint(1, 4), 1 << chance.randrange(3), 26
    records = [random_records(chance, times) for _ in range(peers)]
    updates = random_updates(chance, [*PLANS], methods, times, bins, peers)
    opaque = Opaque(("a", "b"), PLANS, reach, on=0)
    budget = chance.choice([1, 4, 100])
    results = simulate(main, opaque, records, updates, bins, budget, workers=peers, seed=seed)
    together: Epochs = [{name: [r for mine in records for r in mine[t][name]] for name in "ab"} for t in range(times)]
    found = Counter(entry for out in results for entry in out)
    return found == Counter({(t, r): n for t, rows in all_pairs(together).items() for r, n in rows.items()})


@pytest.mark.parametrize("method", GENERAL)
def test_each_method_gives_what_never_changing_gives(method: str) -> None:
    for seed in range(CASES // 3):
        assert run(seed, (method,), W + V), seed


def test_methods_one_after_the_other() -> None:
    for seed in range(1000, 1000 + CASES // 3):
        assert run(seed, GENERAL, W + V), seed


@pytest.mark.parametrize("method", GENERAL)
def test_a_second_window_adds_to_the_reach(method: str) -> None:
    """With the window of the join alone, the median lacks what came out of records before that."""
    assert any(not run(seed, (method,), W) for seed in range(40))


def test_what_has_no_reach() -> None:
    """A distinct that keeps only the first of equal records depends on all of the past."""
    opaque = Opaque(("a",), {"one": first_only, "other": lambda *given: first_only(*given)}, W)
    changed, same = OpaqueBin(opaque, "one"), OpaqueBin(opaque, "one")
    changed.note(Asked(6, "other", "gms"))
    found = [(changed.run(t, {"a": ["x"]}), same.run(t, {"a": ["x"]})) for t in range(12)]
    assert any(one != other for one, other in found)


def test_bins_are_forgotten_when_nothing_is_in_reach() -> None:
    bin = OpaqueBin(Opaque(("a", "b"), PLANS, 5), "join first")
    bin.run(3, {"a": [(1, 1)], "b": []})
    assert bin.wakes == 9 and not bin.is_empty
    bin.run(9, {})
    assert bin.is_empty and bin.wakes is None and not bin.state


def test_ghm_ends_when_it_has_caught_up() -> None:
    opaque = Opaque(("a", "b"), PLANS, W + V)
    bin = OpaqueBin(opaque, "join first")
    for time in range(6):
        bin.run(time, {"a": [(0, time)], "b": [(0, time)]})
    bin.note(Asked(6, "by key", "ghm"))
    bin.note(Asked(7, "join first", "gms"))
    for time in range(6, 10):
        bin.run(time, {"a": [(0, time)], "b": []})
        bin.work(2)
        entries = dict(bin.entries())
        assert dict(OpaqueBins(opaque, "join first").arrived(0, dict(entries)).entries()) == entries
    assert bin.plan.next == "by key" and bin.plan.queued == ("join first",)
    while bin.can_work:
        bin.work(2)
    assert bin.plan.plan == "join first" and bin.plan.next is None, "what waited has begun, and gms is over at once"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Opaque((), PLANS, 5), "there is no stream"),
        (lambda: Opaque(("a",), PLANS, 0), "a reach is a positive number"),
        (lambda: Opaque(("a",), {}, 5), "there is no plan"),
        (lambda: Opaque(("a",), {"one": 3}, 5), "functions by name"),  # type: ignore[dict-item]
        (lambda: Opaque(("a",), PLANS, 5, on="key"), "on= is a function"),  # type: ignore[arg-type]
    ],
)
def test_opaque_plans_that_cannot_be(make: Any, complaint: str) -> None:
    with pytest.raises(BadPlan, match=complaint):
        make()


def test_a_controller_paces_opaque_plans_too() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            inputs, streams = {}, {}
            for name in "ab":
                inputs[name], streams[name] = scope.input()
            plans = Opaque(("a", "b"), PLANS, W + V, on=0)
            operator = megaphone.opaque(configuration, streams, plans, plan="join first", bins=4)
            probe = operator.probe()
        controller = megaphone.Controller(control, operator)
        if worker.index == 0:
            controller.replan(megaphone.Replan("by key", "gms"), megaphone.fluid())
            for bad, complaint in [
                (megaphone.Replan("by key", "hybmig"), "needs to know what is in a plan"),
                (megaphone.Replan("by hand", "gms"), "there is no plan 'by hand': there are join first, by key"),
                (megaphone.Replan("by key", "ghm", background=False), "ghm works in the background alone"),
            ]:
                with pytest.raises(megaphone.ControlError, match=complaint):
                    control.send([bad])
        for time in range(20):
            for handle in inputs.values():
                handle.send([(time % 5, time)])
                handle.advance_to(time + 1)
            controller.advance_to(time + 1)
            await probe.wait_passed(time)
        return controller.plans

    assert simulate(main, workers=2) == [["by key"] * 4] * 2
