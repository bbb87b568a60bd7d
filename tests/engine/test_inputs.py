"""Inputs: what may be sent when, and what misuse says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
from dataflow.errors import ConstructionError
from tests.engine.harness import Run, bag


class Index:
    """What numpy's integers are to the engine: something with `__index__`."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def feed(use: Callable[[Any], Any], run: Run = Run(1, seed=0), **options: Any) -> list[Any]:  # noqa: B008
    """The (time, record) pairs that come out when `use(handle)` feeds an input on worker 0."""
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(**options) as scope:
            handle, stream = scope.input("numbers")
            stream.inspect(lambda t, r: seen.append((t, r)))
        if worker.index == 0:
            use(handle)

    run(main)
    return bag(seen)


def test_send_at_the_input_s_time_and_at_later_ones(run: Run) -> None:
    def use(handle: Any) -> None:
        handle.send(["now"])
        handle.send(["far ahead"], at=7)
        handle.send(["same"], at=0)
        handle.advance_to(3)
        handle.send(["then"])
        handle.send(["ahead"], at=7)

    assert feed(use, run) == bag([(0, "now"), (7, "far ahead"), (0, "same"), (3, "then"), (7, "ahead")])


def test_send_takes_any_iterable_but_not_a_record() -> None:
    def use(handle: Any) -> None:
        handle.send(n for n in range(2))
        handle.send(range(2, 4))
        handle.send((4,))
        handle.send([])
        handle.send(["word"])

    assert [r for _, r in feed(use)] == bag([0, 1, 2, 3, 4, "word"])


@pytest.mark.parametrize("record", ["word", b"word"])
def test_a_record_in_place_of_a_list_of_them_is_refused_with_advice(record: Any) -> None:
    with pytest.raises(TypeError, match=rf"list of records, not a {type(record).__name__}.*send\(\[record\]\)"):
        feed(lambda handle: handle.send(record))


def test_a_generator_that_raises_sends_nothing() -> None:
    def records() -> Any:
        yield 1
        raise KeyError("half-way")

    def use(handle: Any) -> None:
        with pytest.raises(KeyError):
            handle.send(records())

    assert feed(use) == []


def test_the_time_of_an_input() -> None:
    times: list[Any] = []

    def use(handle: Any) -> None:
        times.append(handle.time)
        handle.advance_to(4)
        times.append(handle.time)
        handle.advance_to(4)
        times.append(handle.time)

    feed(use)
    assert times == [0, 4, 4]


def test_integers_of_other_types_are_times() -> None:
    def use(handle: Any) -> None:
        handle.send(["a"], at=Index(2))
        handle.advance_to(Index(1))
        handle.send(["b"])

    out = feed(use)
    assert out == bag([(2, "a"), (1, "b")])
    assert {type(time) for time, _ in out} == {int}


@pytest.mark.parametrize("time", [1.5, "1", None, (1,), object])
def test_what_is_no_time_is_refused_and_the_input_stays_where_it_was(time: Any) -> None:
    def use(handle: Any) -> None:
        with pytest.raises(dataflow.TimeError, match="is not a time of this dataflow: its times are integers"):
            handle.advance_to(time)
        if time is not None:
            with pytest.raises(dataflow.TimeError, match="is not a time"):
                handle.send(["x"], at=time)
        handle.send(["fine"])

    assert feed(use) == [(0, "fine")]


def test_a_product_s_times_are_tuples_of_its_length() -> None:
    def use(handle: Any) -> None:
        for wrong in (1, (1,), (1, 2, 3), [1, 2], (1, "x")):
            with pytest.raises(dataflow.TimeError, match="is not a time"):
                handle.advance_to(wrong)
        handle.advance_to((Index(1), 2))
        handle.send(["x"])

    assert feed(use, time=dataflow.Product(int, int)) == [((1, 2), "x")]


def test_going_back_is_refused_and_nothing_is_lost() -> None:
    def use(handle: Any) -> None:
        handle.advance_to(5)
        with pytest.raises(dataflow.TimeError, match="numbers is at 5 and cannot go back to 4"):
            handle.advance_to(4)
        with pytest.raises(dataflow.TimeError, match="numbers is at 5 already: nothing can be sent at 3"):
            handle.send(["early"], at=3)
        handle.send(["fine"])

    assert feed(use) == [(5, "fine")]


def test_a_partially_ordered_input_refuses_to_go_sideways() -> None:
    def use(handle: Any) -> None:
        handle.advance_to((1, 1))
        with pytest.raises(dataflow.TimeError, match="cannot go back"):
            handle.advance_to((0, 9))
        handle.send(["x"], at=(1, 9))

    assert feed(use, time=dataflow.Product(int, int)) == [((1, 9), "x")]


def test_a_closed_input_refuses_everything_but_closing() -> None:
    def use(handle: Any) -> None:
        handle.send(["before"])
        assert not handle.closed
        handle.close()
        assert handle.closed
        handle.close()
        with pytest.raises(dataflow.InputClosed, match="numbers is closed"):
            handle.send(["after"])
        with pytest.raises(dataflow.InputClosed, match="numbers is closed"):
            handle.advance_to(1)

    assert feed(use) == [(0, "before")]


@pytest.mark.parametrize("use", [lambda h: h.send([1]), lambda h: h.advance_to(1)], ids=["send", "advance_to"])
def test_an_input_cannot_be_used_before_its_block_ends(use: Any) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.input("numbers")
            use(handle)

    with pytest.raises(ConstructionError, match=r"numbers: \w+ after the `with worker.dataflow\(\)` block"):
        Run()(main)


def test_closing_an_input_inside_its_block_closes_it() -> None:
    async def main(worker: dataflow.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.map(str).probe()
            handle.close()
        await probe.wait_done()
        return list(probe.frontier)

    assert Run(1, seed=0)(main) == [[]]


def test_inputs_close_when_main_returns(run: Run) -> None:
    handles: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handles.append(scope.input()[0])
            handles.append(scope.unordered_input()[0])

    run(main)
    assert all(handle.closed for handle in handles) and len(handles) == 2 * run.workers


def test_one_worker_s_input_holds_everybody(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()
            other, other_stream = scope.input()
            told = other_stream.broadcast().probe()
        handle.advance_to(5 if worker.index else 1)
        other.advance_to(1)
        await told.wait_passed(0)
        await probe.wait_passed(0)
        early = probe.passed(1)
        if worker.index == 0:
            await told.wait_passed(0)
            handle.advance_to(5)
        await probe.wait_passed(4)
        return early

    assert together(main)[0] is False


# Unordered inputs


def unordered(use: Callable[[Any, Any], Any], run: Run = Run(1, seed=0)) -> list[Any]:  # noqa: B008
    """The (time, record) pairs that come out when `await use(handle, probe)` feeds an unordered input."""
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.unordered_input("events")
            probe = stream.inspect(lambda t, r: seen.append((t, r))).probe()
        if worker.index == 0:
            await use(handle, probe)

    run(main)
    return bag(seen)


def test_an_unordered_input_sends_at_each_time_that_it_holds() -> None:
    async def use(handle: Any, probe: Any) -> None:
        first = handle.capability
        late, later = first.delayed(3), first.delayed(5)
        first.drop()
        await probe.wait_passed(2)
        assert list(probe.frontier) == [3]
        handle.send(["at 5"], later)
        handle.send(["at 3"], late)
        late.drop()
        await probe.wait_passed(4)
        assert list(probe.frontier) == [5]
        handle.send(["again at 5"], later)
        later.drop()
        await probe.wait_done()

    assert unordered(use) == bag([(5, "at 5"), (3, "at 3"), (5, "again at 5")])


def test_closing_an_unordered_input_ends_all_its_capabilities(run: Run) -> None:
    async def use(handle: Any, probe: Any) -> None:
        with handle.capability.delayed(2) as kept, handle.capability.clone():
            handle.send(["x"], kept)
            handle.close()
            assert not kept.live
            with pytest.raises(dataflow.CapabilityError, match="input was closed"):
                kept.downgrade(3)
            with pytest.raises(dataflow.CapabilityError, match="input was closed"):
                kept.drop()
            with pytest.raises(dataflow.InputClosed):
                handle.send(["y"], kept)
        handle.close()

    assert unordered(use, run) == [(2, "x")]


def test_an_unordered_input_needs_one_of_its_own_capabilities() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            one, _ = scope.unordered_input("one")
            two, _ = scope.unordered_input("two")
        with pytest.raises(dataflow.CapabilityError, match=r"output 0 of one \(#0\), not for output 0 of two \(#1\)"):
            two.send([1], one.capability)
        with pytest.raises(dataflow.CapabilityError, match="needs a capability, not 0"):
            two.send([1], 0)  # type: ignore[arg-type]
        two.capability.drop()
        with pytest.raises(dataflow.CapabilityError, match="used after it was dropped"):
            two.send([1], two.capability)

    Run(1, seed=0)(main)


def test_the_capability_of_an_unordered_input_can_be_delayed_inside_the_block() -> None:
    async def main(worker: dataflow.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.unordered_input()
            probe = stream.map(str).probe()
            handle.capability.downgrade(5)
        await probe.wait_passed(4)
        return list(probe.frontier)

    assert Run(1, seed=0)(main) == [[5]]
