"""Opaque plans: GMS, GPT and GHM give what never changing the plan gives, as long as the reach is true."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
import trio

import dataflow
import megaphone
from dataflow.lowlevel import OperatorBuilder
from dataflow.testing import simulate
from megaphone.plans import Built, Opaque
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
            send(control, waiting.pop(at), at, worker.peers == 1)
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


def test_a_plan_that_returns_nothing_is_named() -> None:
    bin = OpaqueBin(Opaque(("a",), {"one": lambda time, arrivals, state: None}, 5), "one")  # type: ignore[dict-item, return-value]
    with pytest.raises(TypeError, match="the plan 'one' returns its results, in a list or with yield, not None"):
        bin.run(0, {"a": [(0, 0)]})


def test_what_was_built_for_a_plan_goes_with_it() -> None:
    """It is found by the address of its state, which the state of the plan after the next may have."""

    async def change() -> None:
        bin = OpaqueBin(Opaque(("a",), {name: Built(lambda streams: streams["a"]) for name in ("x", "y")}, 5), "x")
        for time, plan in enumerate("yxyx"):
            bin.run(2 * time, {"a": [(0, time)]})
            bin.note(Asked(2 * time + 1, plan, "gms"))
            bin.run(2 * time + 1, {"a": [(0, time)]})
            assert bin.plan.plan == plan and [*bin._inside] == [id(bin.state)]

    trio.run(change)


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
        (lambda: Opaque(("a",), PLANS, 0), "a reach is a positive integer"),
        (lambda: Opaque(("a",), {}, 5), "there is no plan"),
        (lambda: Opaque(("a",), {"one": 3}, 5), "functions by name"),  # type: ignore[dict-item]
        (lambda: Opaque(("a",), [by_key], 5), "functions by name"),  # type: ignore[arg-type]
        (lambda: Opaque(("a",), {"one": lambda time: []}, 5), "'one' cannot be called with a time, what arrived and a"),  # type: ignore[dict-item, misc]
        (lambda: Opaque(("a",), {"one": Built(lambda: 7)}, 5), "'one' cannot be called with streams by name"),  # type: ignore[arg-type, misc]
        (lambda: Opaque(("a",), {"one": Built(5)}, 5), "built by 5, which cannot be called"),  # type: ignore[arg-type]
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


# ------------------------------------------------------------------------------------------------- built of operators


def building(box: Any) -> Any:
    """The same plan as operators on streams: records of a time are gathered, and an operator with state joins them."""

    def build(streams: Any) -> Any:
        tagged = [stream.map(lambda record, name=name: (name, record)) for name, stream in streams.items()]

        def construct(context: Any) -> Any:
            waiting: dict[int, Any] = {}
            state: dict[Any, Any] = {}

            def step() -> None:
                for message, batch in context.inputs[0]:
                    held = waiting.setdefault(message.time, (message.retain(), {"a": [], "b": []}))
                    for name, record in batch:
                        held[1][name].append(record)
                for time in sorted(waiting):
                    if not context.inputs[0].could_see(time):
                        capability, arrivals = waiting.pop(time)
                        context.outputs[0].give(capability, [*box(time, arrivals, state)])
                        capability.drop()

            return step

        builder = OperatorBuilder(tagged[0].scope, "box")
        builder.add_input(tagged[0].concat(*tagged[1:]))
        builder.add_output()
        return builder.build(construct, frontier=True)[0]

    return Built(build)


@pytest.mark.parametrize("method", GENERAL)
def test_plans_that_are_built_of_operators(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANS, "by key", building(by_key))
    if method != "gpt":
        monkeypatch.setitem(PLANS, "join first", building(join_first))
    for seed in range(700, 715):
        assert run(seed, (method,), W + V), seed
    assert not all(run(seed, ("gms",), 1) for seed in range(700, 715)), "with too small a reach it is wrong"


def misplaced(streams: Any) -> Any:
    return streams["a"].delay(lambda time, record: time + 1)


BAD_BUILDS = [
    (lambda streams: 7, "plan 'bad' returns a stream that it made of those it was given, not 7"),
    (misplaced, r"plan 'bad' gave .* at 1, and not at 3, when its records arrived"),
    (lambda streams: streams["c"], "c"),
]


@pytest.mark.parametrize(("build", "complaint"), BAD_BUILDS)
def test_what_cannot_be_a_plan(build: Any, complaint: str) -> None:
    async def call() -> None:
        bin = OpaqueBin(Opaque(("a", "b"), {"bad": Built(build)}, 5), "bad")
        for time in (0, 3):
            bin.history[time] = {"a": [(1, 2)]}
            bin._call("bad", time, bin.state)

    with pytest.raises((dataflow.DataflowError, KeyError), match=complaint):
        trio.run(call)
