"""An exception anywhere ends the computation everywhere, with that exception and the name of its place."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
import trio

import dataflow
from dataflow.errors import UnstableKey
from tests.engine.harness import Run, notes


class Oops(Exception):
    """Whatever may go wrong in a program."""


def fail(*_: Any) -> Any:
    raise Oops("it broke")


def failing(run: Run, build: Callable[[Any], Any], on: int = 0, records: Any = ("x",)) -> pytest.ExceptionInfo[Any]:
    """The failure of a dataflow in which worker `on` sends a record that breaks it, while everybody waits for ever."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            handle, stream = scope.input()
            build(stream)
            probe = stream.probe()
        if worker.index == on:
            handle.send(records)
        await probe.wait_passed(0)

    with pytest.raises(BaseException) as failure:  # noqa: PT011
        run(main)
    return failure


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda s: s.map(fail), "map (#1)"),
        (lambda s: s.flat_map(fail), "flat_map (#1)"),
        (lambda s: s.filter(fail, name="picky"), "picky (#1)"),
        (lambda s: s.inspect(fail), "inspect (#1)"),
        (lambda s: s.sink(fail), "sink (#1)"),
        (lambda s: s.delay(fail), "delay (#1)"),
        (lambda s: s.capture(fail), "capture (#1)"),
        (lambda s: s.partition(2, fail), "partition (#1)"),
        (lambda s: s.map(str).iterate(lambda t: t.map(fail, name="inner")), "inner"),
        (lambda s: s.aggregate(lambda _: 0, int, fail), "aggregate (#1)"),
        (lambda s: s.unary("own", lambda _: lambda i, o: [fail() for _ in i]), "own (#1)"),
    ],
)
def test_an_exception_in_an_operator(together: Run, build: Callable[[Any], Any], operator: str) -> None:
    failure = failing(together, build, on=1)
    assert failure.type is Oops and str(failure.value) == "it broke"
    assert "in operator" in notes(failure.value) and operator in notes(failure.value)
    assert "of dataflow 'shop'" in notes(failure.value) and f"of {together.workers}" in notes(failure.value)


def test_the_worker_is_named() -> None:
    for worker in (0, 1, 2):
        assert f"on worker {worker} of 3" in notes(failing(Run(3), lambda s: s.map(fail), on=worker).value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, trio.TooSlowError])
def test_exceptions_of_every_kind_come_out_as_they_are(together: Run, kind: type[BaseException]) -> None:
    def function(_: Any) -> None:
        raise kind("this one")

    failure = failing(together, lambda s: s.map(function))
    assert failure.type is kind and failure.value.args == ("this one",)


def test_an_operator_that_runs_out_of_an_iterator_is_named() -> None:
    failure = failing(Run(), lambda s: s.map(lambda _: next(iter(()))))
    assert failure.type in (StopIteration, RuntimeError)
    assert "map (#1)" in notes(failure.value)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_everything(workers: int) -> None:
    failure = failing(Run(workers), lambda s: s.inspect(lambda *_: signal.raise_signal(signal.SIGINT)))
    assert failure.type is KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_an_exception_in_main(together: Run, when: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        if when == "before" and worker.index == 1:
            raise Oops("main broke")
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()
        if when == "between" and worker.index == 1:
            raise Oops("main broke")
        handle.advance_to(1)
        await probe.wait_passed(0)
        if when == "after" and worker.index == 1:
            raise Oops("main broke")
        await probe.wait_passed(1)

    with pytest.raises(Oops, match="main broke") as failure:
        together(main)
    assert f"in main on worker 1 of {together.workers}" in notes(failure.value)


def test_an_exception_after_main_has_returned_on_the_other_workers(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.exchange(lambda _: 0).aggregate(lambda _: 0, int, lambda n, _: n + 1, emit=fail)
        handle.send(["x"])

    with pytest.raises(Oops) as failure:
        together(main)
    assert "aggregate (#2)" in notes(failure.value)


def test_the_program_s_own_exception_comes_before_the_engine_s_complaints() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.input()
        if worker.index == 0:
            raise Oops("mine")
        handle.close()
        handle.send(["too late"])

    with pytest.raises(Oops, match="mine") as failure:
        Run(2)(main)
    assert "in main on worker 0" in notes(failure.value)


def test_several_at_once_are_mentioned() -> None:
    async def main(worker: dataflow.Worker) -> None:
        raise Oops(f"number {worker.index}")

    with pytest.raises(Oops, match="number") as failure:
        Run(2)(main)
    assert "at the same time: Oops: number" in notes(failure.value)


@pytest.mark.parametrize("run", [Run(), Run(1, seed=0)], ids=str)
def test_an_exception_keeps_its_cause(run: Run) -> None:
    def function(_: Any) -> None:
        raise Oops("outer") from KeyError("inner")

    assert isinstance(failing(run, lambda s: s.map(function)).value.__cause__, KeyError)


# Key functions


def test_a_key_function_that_raises(together: Run) -> None:
    failure = failing(together, lambda s: s.map(str).exchange(fail), on=1)
    assert failure.type is Oops


def test_a_key_function_that_raises_when_main_sends() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.count(lambda n: 1 // n)
        if worker.index == 0:
            with pytest.raises(ZeroDivisionError):
                handle.send([1, 0])  # an error at the line that does it
        await trio.lowlevel.checkpoint()

    Run(2)(main)


def test_a_key_function_that_raises_names_the_operator_that_it_belongs_to() -> None:
    failure = failing(Run(2), lambda s: s.map(str).count(fail, name="per customer"))
    assert "per customer (#2)" in notes(failure.value)


def test_a_key_function_that_raises_does_so_on_one_worker_in_debug_mode() -> None:
    """Without it one worker need not look at keys at all."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.exchange(fail)
        handle.send(["x"])

    with pytest.raises(Oops):
        Run(debug=True)(main)


def test_a_key_without_a_stable_hash_is_refused_with_advice(together: Run) -> None:
    failure = failing(together, lambda s: s.map(lambda n: n).exchange(lambda _: object()))
    assert failure.type is UnstableKey and isinstance(failure.value, TypeError)
    assert "Use numbers, strings" in str(failure.value)


def test_records_that_a_key_function_refuses_are_sent_to_nobody() -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.inspect(lambda _, r: seen.append(r))
            stream.exchange(lambda n: 1 // n)
        if worker.index == 0:
            with pytest.raises(ZeroDivisionError):
                handle.send([0])
        await trio.lowlevel.checkpoint()

    Run(2)(main)
    assert seen == []


def test_a_program_may_run_again_after_a_failure() -> None:
    failing(Run(2), lambda s: s.map(fail))
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.inspect(lambda _, r: seen.append(r))
        handle.send([worker.index])

    Run(2)(main)
    assert sorted(seen) == [0, 1]
