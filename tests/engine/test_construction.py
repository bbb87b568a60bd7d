"""Every misuse that can be seen at construction is refused there, by name, and leaves the worker usable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import dataflow
from dataflow import Product
from dataflow.errors import ConstructionError, ScopeMismatch, UnadvancedCycle
from dataflow.lowlevel import Exchange, OperatorBuilder, unary
from tests.engine.harness import ALONE, Run, outcome, timed


def building(build: Callable[[Any], Any], time: Any = int, run: Run = Run()) -> None:  # noqa: B008
    """Runs `build(scope)` in a dataflow's block."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=time) as scope:
            build(scope)

    run(main)


# Cycles


def cycle(scope: Any, **options: Any) -> None:
    """A loop at the root: input, concat, double, feedback."""
    _, stream = scope.input()
    loop, back = scope.feedback(**options)
    stream.concat(back).map(lambda n: n, name="double").connect_loop(loop)


def test_a_cycle_that_does_not_advance_time_is_named() -> None:
    with pytest.raises(UnadvancedCycle, match="does not advance time") as failure:
        building(lambda scope: cycle(scope, summary=0, name="back"))
    assert {name.split()[0] for name in failure.value.names} == {"concat", "double", "back"}
    assert all(name in str(failure.value) for name in failure.value.names)
    assert "feedback(increment)" in str(failure.value)


def test_a_cycle_that_leaves_and_enters_again_forgets_its_rounds() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as inner:
            loop, back = inner.feedback(1)
            out = stream.enter(inner).concat(back).leave()
            out.enter(inner).connect_loop(loop)

    with pytest.raises(UnadvancedCycle, match=r"enter.*feedback|feedback.*enter"):
        building(build)


def test_such_a_cycle_is_fine_if_it_advances_outside() -> None:
    def build(stream: Any) -> Any:
        scope = stream.scope
        loop, back = scope.feedback(1)
        with scope.nested() as inner:
            out = stream.concat(back).enter(inner).map(lambda n: n - 1).leave()
        out.filter(lambda n: n > 0).connect_loop(loop)
        return out

    assert outcome(Run(1, seed=0), build, [[3]], wait=False) == timed([2], [1], [0])


@pytest.mark.parametrize(("summary", "complaint"), [(-1, "back in time"), ("1", "is not an increment"), (0.5, "incr")])
def test_increments_must_be_integers_that_are_not_negative(summary: Any, complaint: str) -> None:
    with pytest.raises(ConstructionError, match=complaint):
        building(lambda scope: cycle(scope, summary=summary))


def test_a_product_s_summary_has_one_part_per_component() -> None:
    with pytest.raises(ConstructionError, match=r"1 is not a summary for times \(int, int\)"):
        building(lambda scope: cycle(scope, summary=1), time=Product(int, int))
    with pytest.raises(UnadvancedCycle):
        building(lambda scope: cycle(scope, summary=(0, 0)), time=Product(int, int))
    building(lambda scope: cycle(scope, summary=(0, 1)), time=Product(int, int))


def test_a_loop_that_is_never_connected_is_named() -> None:
    def build(scope: Any) -> None:
        scope.feedback(name="back")

    with pytest.raises(ConstructionError, match=r"back \(#0\): the loop is open"):
        building(build)


def test_a_loop_is_connected_once() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        loop, _ = scope.feedback(name="back")
        stream.connect_loop(loop)
        stream.connect_loop(loop)

    with pytest.raises(ConstructionError, match=r"back \(#1\) is connected already: concat"):
        building(build)


def test_a_loop_is_connected_in_its_own_scope() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as inner:
            loop, _ = inner.feedback()
            stream.connect_loop(loop)

    with pytest.raises(ScopeMismatch, match="feedback is in a nested scope"):
        building(build)


# Scopes


def test_a_stream_of_an_inner_scope_outside() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as inner:
            stream.concat(stream.enter(inner))

    with pytest.raises(ScopeMismatch, match=r"concat is in dataflow .*nested scope \(depth 1\).*enter.*leave"):
        building(build)


def test_a_stream_of_an_outer_scope_inside() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as inner:
            stream.enter(inner).join(stream, lambda n: n)

    with pytest.raises(ScopeMismatch, match="join is in a nested scope"):
        building(build)


def test_a_stream_of_a_scope_that_has_ended() -> None:
    def build(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as inner:
            inside = stream.enter(inner)
        inside.leave()

    with pytest.raises(ConstructionError, match="leave cannot be added: the `with` block of a nested scope"):
        building(build)


def test_a_stream_of_another_dataflow() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("first") as scope:
            _, old = scope.input()
        with worker.dataflow("second") as scope:
            _, new = scope.input()
            new.concat(old)

    with pytest.raises(ConstructionError, match="'first' has ended"):
        Run()(main)


@pytest.mark.parametrize(
    "use",
    [
        lambda scope, stream: stream.map(str),
        lambda scope, stream: stream.probe(),
        lambda scope, stream: scope.input(),
        lambda scope, stream: scope.feedback(),
        lambda scope, stream: scope.source([]),
        lambda scope, stream: scope.nested().__enter__(),
        lambda scope, stream: unary(stream, "late", lambda _: lambda i, o: None),
    ],
    ids=["map", "probe", "input", "feedback", "source", "nested", "unary"],
)
def test_nothing_is_added_after_the_block(use: Callable[[Any, Any], Any]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
        use(scope, stream)

    with pytest.raises(ConstructionError, match="has ended"):
        Run()(main)


def test_nothing_leaves_the_root() -> None:
    with pytest.raises(ScopeMismatch, match=r"root.*which nothing can leave"):
        building(lambda scope: scope.input()[1].leave())


def test_a_stream_enters_only_a_scope_directly_inside_its_own() -> None:
    def skip(scope: Any) -> None:
        with scope.nested() as one, one.nested() as two:
            scope.input()[1].enter(two)

    def sideways(scope: Any) -> None:
        _, stream = scope.input()
        with scope.nested() as one, scope.nested() as other:
            stream.enter(one).enter(other)

    for wrong in (skip, sideways, lambda scope: scope.input()[1].enter(scope)):
        with pytest.raises(ScopeMismatch, match="is not directly inside"):
            building(wrong)


@pytest.mark.parametrize("make", ["input", "unordered_input"])
def test_inputs_are_made_at_the_root(make: str) -> None:
    def build(scope: Any) -> None:
        with scope.nested() as inner:
            getattr(inner, make)()

    with pytest.raises(ConstructionError, match="must be in the root"):
        building(build)


# Functions and numbers


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(5),
        lambda s: s.flat_map(None),
        lambda s: s.filter("x"),
        lambda s: s.inspect([]),
        lambda s: s.inspect_batch(1),
        lambda s: s.partition(2, 1),
        lambda s: s.branch(True),
        lambda s: s.exchange("key"),
        lambda s: s.delay(3),
        lambda s: s.count("key"),
        lambda s: s.aggregate("key", int, max),
        lambda s: s.aggregate(len, 0, max),
        lambda s: s.aggregate(len, int, None),
        lambda s: s.reduce(0, print),
        lambda s: s.reduce(len, 0),
        lambda s: s.join(s, "key"),
        lambda s: s.join(s, len, "key"),
        lambda s: s.sink("file"),
        lambda s: s.capture([]),
    ],
)
def test_what_is_no_function_is_refused_at_once(build: Callable[[Any], Any]) -> None:
    with pytest.raises(ConstructionError, match="needs a function"):
        building(lambda scope: build(scope.input()[1]))


@pytest.mark.parametrize(
    "build", [lambda s: s.aggregate(len, int, max, emit="no"), lambda s: s.join(s, len, emit="no")]
)
def test_an_emit_that_is_no_function_is_refused_at_once(build: Callable[[Any], Any]) -> None:
    with pytest.raises(ConstructionError, match="needs a function"):
        building(lambda scope: build(scope.input()[1]))


def test_there_is_at_least_one_part_and_one_stream() -> None:
    with pytest.raises(ConstructionError, match="at least one part, not 0"):
        building(lambda scope: scope.input()[1].partition(0, len))
    with pytest.raises(ConstructionError, match="concat needs at least one stream"):
        building(lambda scope: scope.concat([]))


def test_streams_are_not_iterated() -> None:
    with pytest.raises(ConstructionError, match="cannot be iterated"):
        building(lambda scope: list(scope.input()[1]))


@pytest.mark.parametrize("result", [None, []])
def test_an_iteration_s_body_must_return_one_stream_or_two(result: Any) -> None:
    with pytest.raises(ConstructionError, match="body"):
        building(lambda scope: scope.input()[1].iterate(lambda _: result))


@pytest.mark.parametrize("time", [5, "int", int | str, 1.5])
def test_a_dataflow_s_time_is_a_type_of_time(time: Any) -> None:
    with pytest.raises(ConstructionError, match="is not a type of time"):
        building(lambda scope: scope.input(), time=time)


@pytest.mark.parametrize("time", [float, str, list, object])
def test_a_timestamp_class_must_have_what_a_timestamp_needs(time: type) -> None:
    with pytest.raises(ConstructionError, match=f"{time.__name__} cannot be a timestamp: it lacks minimum, less_equal"):
        building(lambda scope: scope.input(), time=time)


def test_a_product_of_one_is_refused() -> None:
    with pytest.raises(ConstructionError, match="at least two"):
        Product(int)


# Operators by hand


def test_an_output_is_connected_to_inputs_that_exist() -> None:
    def build(scope: Any) -> None:
        builder = OperatorBuilder(scope, "odd")
        builder.add_input(scope.input()[1])
        builder.add_output({1: None})
        builder.build(lambda _: lambda: None)

    with pytest.raises(ConstructionError, match="output 0 of odd is connected to input 1, which does not exist"):
        building(build)


def test_an_operator_is_built_once() -> None:
    def build(scope: Any) -> None:
        builder = OperatorBuilder(scope, "once")
        builder.build(lambda _: lambda: None)
        builder.build(lambda _: lambda: None)

    with pytest.raises(ConstructionError, match="once was built already"):
        building(build)


def test_an_exchange_needs_a_key() -> None:
    with pytest.raises(ConstructionError, match="function from a record to its key"):
        Exchange(5)  # type: ignore[arg-type]


# Blocks


def test_an_empty_dataflow_is_refused() -> None:
    with pytest.raises(ConstructionError, match="at least one operator"):
        building(lambda scope: None)


def test_blocks_do_not_nest() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("outer") as scope:
            scope.input()
            with worker.dataflow("inner"):
                pass

    with pytest.raises(ConstructionError, match="'outer' is still being built"):
        Run()(main)


@pytest.mark.parametrize(
    "run",
    [Run(), Run(1, seed=0)],
    ids=str,
)
def test_a_dataflow_cannot_be_built_inside_an_operator(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        def build(_: Any) -> None:
            with worker.dataflow() as inner:
                inner.input()

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map(build)
        handle.send([1])

    with pytest.raises(ConstructionError, match="cannot be built from inside an operator"):
        run(main)


def test_an_operator_cannot_be_added_inside_an_operator() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map(lambda _: stream.map(str))
        handle.send([1])

    with pytest.raises(ConstructionError, match="has ended"):
        Run()(main)


def test_a_block_that_fails_leaves_the_worker_usable(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with suppress(ZeroDivisionError), worker.dataflow("broken") as scope:
            scope.input()[1].map(str).exchange(len)
            raise ZeroDivisionError
        with suppress(UnadvancedCycle), worker.dataflow("circular") as scope:
            cycle(scope, summary=0)
        with suppress(ConstructionError), worker.dataflow("empty"):
            pass
        with suppress(ConstructionError), worker.dataflow("odd", time="no type"):
            pass
        with worker.dataflow("fine") as scope:
            handle, stream = scope.input()
            stream.exchange(lambda n: n).inspect(lambda t, n: seen.append(n))
        handle.send([worker.index])

    run(main)
    assert sorted(seen) == list(range(run.workers))


@pytest.mark.parametrize("run", ALONE, ids=str)
def test_dataflows_are_numbered_and_named(run: Run) -> None:
    names: list[str] = []

    async def main(worker: dataflow.Worker) -> None:
        for name in (None, "mine", None):
            with worker.dataflow(name) as scope:
                scope.input()
            names.append(scope.dataflow.name)

    run(main)
    assert names == ["dataflow 0", "mine", "dataflow 2"]


# execute itself


@pytest.mark.parametrize("workers", [0, -1])
def test_there_is_at_least_one_worker(workers: int) -> None:
    async def main(worker: dataflow.Worker) -> None: ...

    with pytest.raises(ValueError, match="workers must be a positive integer"):
        dataflow.execute(main, workers=workers)


@pytest.mark.parametrize("main", [lambda worker: None, print, 5, None])
def test_main_is_an_asynchronous_function(main: Any) -> None:
    with pytest.raises(TypeError, match="async def main"):
        dataflow.execute(main)


def test_main_gets_the_arguments_and_its_results_come_back_by_worker(run: Run) -> None:
    async def main(worker: dataflow.Worker, factor: int) -> int:
        return worker.index * factor

    assert run(main, 10) == [index * 10 for index in range(run.workers)]
