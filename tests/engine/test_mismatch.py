"""Workers that build different graphs are told so, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
from dataflow import Product
from dataflow.errors import GraphMismatch
from dataflow.lowlevel import OperatorBuilder, Pact, ToWorker, unary
from tests.engine.harness import Run

ADVICE = "Every worker must build the same"


def differing(run: Run, build: Callable[[Any, bool], Any]) -> str:
    """The complaint when `build(stream, odd)` is called with odd=True on worker 1 only."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            handle, stream = scope.input()
            build(stream, worker.index == 1)
            probe = stream.probe()
        handle.send([1])
        handle.advance_to(1)
        await probe.wait_passed(0)

    with pytest.raises(GraphMismatch, match=ADVICE) as failure:
        run(main)
    return str(failure.value)


def test_a_different_operator(together: Run) -> None:
    complaint = differing(together, lambda s, odd: s.filter(bool) if odd else s.map(bool))
    assert "'shop'" in complaint and "#1 filter" in complaint and "#1 map" in complaint and "worker 1" in complaint


def test_a_different_name(together: Run) -> None:
    complaint = differing(together, lambda s, odd: s.map(bool, name="yours" if odd else "mine"))
    assert "#1 yours" in complaint and "#1 mine" in complaint


@pytest.mark.parametrize("more", [True, False])
def test_an_extra_operator(together: Run, more: bool) -> None:
    complaint = differing(together, lambda s, odd: s.map(bool, name="extra") if odd == more else None)
    assert "only worker" in complaint and "#1 extra" in complaint


def test_a_different_connection(together: Run) -> None:
    def build(stream: Any, odd: bool) -> None:
        mapped = stream.map(bool)
        (stream if odd else mapped).filter(bool)

    complaint = differing(together, build)
    assert "#2 filter (from #0.0" in complaint and "#2 filter (from #1.0" in complaint


def test_a_different_number_of_outputs(together: Run) -> None:
    complaint = differing(together, lambda s, odd: s.partition(3 if odd else 2, lambda _: 0))
    assert "2 outputs" in complaint and "3 outputs" in complaint


@pytest.mark.parametrize(("one", "other"), [(None, ToWorker(0)), (ToWorker(0), ToWorker(1))])
def test_a_different_pact(together: Run, one: Pact | None, other: Pact) -> None:
    def build(stream: Any, odd: bool) -> None:
        unary(stream, "op", lambda _: lambda i, o: [None for _ in i], pact=other if odd else one)  # type: ignore[arg-type, return-value]

    assert "to worker" in differing(together, build)


def test_an_exchange_on_one_and_a_broadcast_on_the_other(together: Run) -> None:
    complaint = differing(together, lambda s, odd: s.broadcast("op") if odd else s.exchange(lambda n: n, "op"))
    assert "op [broadcast]" in complaint and "op [exchange]" in complaint


def test_a_different_scope(together: Run) -> None:
    def build(stream: Any, odd: bool) -> None:
        with stream.scope.nested() as one, one.nested() as two:
            inside = stream.enter(one)
            (inside.enter(two) if odd else inside.map(bool, name="enter")).map(bool)

    assert "depth" in differing(together, build)


def test_a_different_increment_of_a_loop() -> None:
    def build(stream: Any, odd: bool) -> None:
        loop, back = stream.scope.feedback(2 if odd else 1)
        stream.concat(back).filter(lambda _: False).connect_loop(loop)

    differing(Run(2, seed=0), build)


def test_a_different_inner_connection() -> None:
    def build(stream: Any, odd: bool) -> None:
        builder = OperatorBuilder(stream.scope, "op")
        builder.add_input(stream)
        builder.add_output({} if odd else None)
        builder.build(lambda context: lambda: [None for _ in context.inputs[0]])  # type: ignore[arg-type, return-value]

    differing(Run(2, seed=0), build)


def test_a_different_start() -> None:
    def build(stream: Any, odd: bool) -> None:
        def make(context: Any) -> Any:
            def step(input: Any, output: Any) -> None:
                for _ in input:
                    pass
                if odd and context.capability().live:
                    context.capability().drop()

            return step

        unary(stream, "op", make, initial=odd, frontier=True)

    differing(Run(2, seed=0), build)


@pytest.mark.parametrize("run", [Run(2, seed=seed) for seed in range(3)], ids=str)
def test_a_different_type_of_time(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop", time=Product(int, int) if worker.index else int) as scope:
            handle, stream = scope.input()
            probe = stream.probe()
        await probe.wait_passed((0, 0) if worker.index else 0)
        handle.close()

    with pytest.raises(GraphMismatch):
        run(main)


# Dataflows that only some workers build


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("first", ["shared", "none"])
def test_a_dataflow_that_not_every_worker_builds(together: Run, more: bool, first: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        if first == "shared":
            with worker.dataflow("shared") as scope:
                handle, stream = scope.input()
                probe = stream.probe()
            handle.advance_to(1)
            await probe.wait_passed(0)
        if (worker.index == 1) == more:
            with worker.dataflow("extra") as scope:
                handle, stream = scope.input()
                probe = stream.exchange(lambda n: n).probe()
            handle.send([1, 2])
            handle.advance_to(1)
            await probe.wait_passed(0)

    with pytest.raises(GraphMismatch, match=ADVICE) as failure:
        together(main)
    number = "number 1" if first == "shared" else "number 0"
    assert "'extra' exists here only" in str(failure.value) or number in str(failure.value)


def test_the_order_of_dataflows_matters(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        kinds = ["map", "filter"] if worker.index == 0 else ["filter", "map"]
        for kind in kinds:
            with worker.dataflow(f"a {kind}") as scope:
                getattr(scope.input()[1], kind)(bool)

    with pytest.raises(GraphMismatch, match="differs between workers"):
        together(main)


def test_a_worker_that_builds_later_than_the_others_is_waited_for(together: Run) -> None:
    seen: list[Any] = []

    def second(worker: dataflow.Worker) -> None:
        with worker.dataflow("second") as scope:
            handle, stream = scope.input()
            stream.exchange(lambda n: n).inspect(lambda t, n: seen.append(n))
        handle.send(range(4))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("first") as scope:
            first, stream = scope.input()
            others_are_done = stream.probe()
        if worker.index == 0:
            first.advance_to(1)
            await others_are_done.wait_passed(0)
            second(worker)
        else:
            second(worker)
            await worker.step()
            first.advance_to(1)

    together(main)
    assert sorted(seen) == sorted(list(range(4)) * together.workers)
