"""Capabilities: made and ended visibly; every misuse is an error at the line that does it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import dataflow
from dataflow import CapabilityError, Product, TimeError
from dataflow.errors import ConstructionError, Stuck
from dataflow.lowlevel import OperatorBuilder
from tests.engine.harness import Run, notes

SEED = Run(1, seed=0)


def with_first_message(use: Callable[[Any, Any], Any], run: Run = SEED, start: int = 0) -> list[Any]:
    """What comes out when an operator does `use(message, output)` with the first message that it gets."""
    seen: list[Any] = []

    def make(context: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, _ in input:
                use(message, output)

        return step

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("user", make).inspect(lambda t, r: seen.append((t, r)))
        if worker.index == 0:
            handle.advance_to(start)
            handle.send(["x"])

    run(main)
    return seen


def held(worker: dataflow.Worker) -> tuple[Any, Any, Any]:
    """An input at 0, the capability of an operator behind it, and a probe behind that."""
    kept: list[Any] = []

    def make(context: Any) -> Any:
        kept.append(context.capability())

        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                output.give(message, batch)

        return step

    with worker.dataflow() as scope:
        handle, stream = scope.input()
        probe = stream.unary("holder", make, initial=True).probe()
    return handle, kept[0], probe


def test_the_frontier_follows_a_capability(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> list[Any]:
        handle, capability, probe = held(worker)
        handle.close()
        states: list[Any] = []

        async def look(passed: int | None = None) -> None:
            if passed is not None:
                await probe.wait_passed(passed)
            else:
                await worker.step()
            states.append(list(probe.frontier))

        await look()
        later = capability.delayed(7)
        await look()
        capability.downgrade(3)
        await look(2)
        second = capability.clone()
        capability.drop()
        await look()
        second.downgrade(5)
        await look(4)
        second.drop()
        await look(6)
        later.drop()
        await probe.wait_done()
        return states

    for states in run(main):
        if run.workers == 1:
            assert states == [[0], [0], [3], [3], [5], [7]]
        else:  # the slowest worker holds the frontier for all
            assert [time for (time,) in states] == sorted(time for (time,) in states)


def test_a_capability_with_a_block_ends_with_it() -> None:
    async def main(worker: dataflow.Worker) -> None:
        handle, capability, probe = held(worker)
        with capability.delayed(2) as two, capability.clone() as zero:
            assert (two.time, zero.time, two.live) == (2, 0, True)
            zero.drop()  # early is fine
        assert not two.live and not zero.live and capability.live
        with suppress(KeyError), capability as same:
            assert same is capability
            raise KeyError
        assert not capability.live
        handle.close()
        await probe.wait_done()

    SEED(main)


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.drop(),
        lambda c: c.clone(),
        lambda c: c.delayed(9),
        lambda c: c.downgrade(9),
    ],
    ids=["drop", "clone", "delayed", "downgrade"],
)
def test_use_after_drop(use: Callable[[Any], Any]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        _, capability, _ = held(worker)
        capability.drop()
        with pytest.raises(CapabilityError, match=r"holder \(#1\) at 0 was used after it was dropped"):
            use(capability)
        assert "dropped" in repr(capability)

    SEED(main)


@pytest.mark.parametrize("verb", ["delay", "downgrade"])
def test_a_capability_cannot_go_back(verb: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        _, capability, _ = held(worker)
        capability.downgrade(5)
        move = capability.delayed if verb == "delay" else capability.downgrade
        with pytest.raises(CapabilityError, match=rf"cannot {verb} the capability of holder \(#1\) from 5 to 4"):
            move(4)
        with pytest.raises(TimeError, match="is not a time"):
            move("6")
        assert (capability.time, capability.live) == (5, True)
        move(5)
        capability.drop()

    if verb == "downgrade":
        SEED(main)
    else:  # the delayed one is still there, and whoever forgets to drop it is named
        with pytest.raises(Stuck, match=r"holder \(#1\) holds 1 capability at 5"):
            SEED(main)


def test_a_capability_cannot_go_sideways_in_a_partial_order() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Product(int, int)) as scope:
            handle, _ = scope.unordered_input()
        handle.capability.downgrade((1, 1))
        for sideways in ((0, 5), (5, 0)):
            with pytest.raises(CapabilityError, match="not later"):
                handle.capability.delayed(sideways)
        handle.capability.delayed((1, 5))

    SEED(main)


def test_sending_at_the_time_of_a_capability_or_later() -> None:
    def use(message: Any, output: Any) -> None:
        output.give(message, ["now"])
        output.give(message, ["later"], at=message.time + 2)
        with message.retain() as kept:
            output.give(kept, ["kept"])
            output.give(kept, ["kept, later"], at=9)
        with message.delayed(4) as later:
            output.give(later, ["delayed"])

    seen = with_first_message(use, start=1)
    assert sorted(seen) == [(1, "kept"), (1, "now"), (3, "later"), (4, "delayed"), (9, "kept, later")]


def test_sending_earlier_than_allowed() -> None:
    def use(message: Any, output: Any) -> None:
        with pytest.raises(CapabilityError, match=r"user \(#1\) may send at 5 or later, and tried to send at 4"):
            output.give(message, ["early"], at=4)
        with pytest.raises(CapabilityError, match="gives no right to send at 4"):
            message.delayed(4)
        with message.retain() as kept, pytest.raises(CapabilityError, match="tried to send at 4"):
            output.give(kept, ["early"], at=4)
        with pytest.raises(TimeError, match="is not a time"):
            output.give(message, ["never"], at="5")

    assert with_first_message(use, start=5) == []


def test_an_error_that_is_not_caught_ends_the_computation_at_that_line(run: Run) -> None:
    with pytest.raises(CapabilityError, match="tried to send at 4") as failure:
        with_first_message(lambda message, output: output.give(message, ["early"], at=4), run, start=5)
    assert "in operator user (#1) of dataflow 'dataflow 0' on worker 0" in notes(failure.value)
    assert any(frame.name == "<lambda>" for frame in failure.traceback), "the traceback shows the user's own line"


def test_giving_nothing_sends_nothing_but_still_needs_the_right() -> None:
    def use(message: Any, output: Any) -> None:
        output.give(message, [])
        kept = message.retain()
        kept.drop()
        with pytest.raises(CapabilityError, match="was used after it was dropped"):
            output.give(kept, [])

    assert with_first_message(use) == []


def test_a_message_s_capability_ends_with_its_message() -> None:
    kept: list[Any] = []

    def make(context: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, _ in input:
                assert message.live
                kept.append((message, output))
            with pytest.raises(CapabilityError, match=r"user \(#1\) was used after the message was done with.*retain"):
                output.give(kept[0][0], ["late"])

        return step

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("user", make)
        handle.send(["x"])
        handle.send(["y"])
        await worker.step()
        message, output = kept[0]
        for use in (message.retain, lambda: message.delayed(5), lambda: output.give(message, [1])):
            with pytest.raises(CapabilityError, match="after the message was done with"):
                use()

    SEED(main)
    assert len(kept) == 2


def test_a_message_s_capability_ends_with_the_step_even_if_its_iterator_is_kept() -> None:
    kept: list[Any] = []

    def make(context: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            if not kept:
                messages = iter(input)
                kept.extend([next(messages)[0], messages])

        return step

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("user", make).probe()
        handle.send(["x"])
        handle.advance_to(5)
        await probe.wait_passed(4)
        with pytest.raises(CapabilityError):
            kept[0].retain()  # at 0, though 4 has passed

    SEED(main)


def test_a_message_of_another_operator_gives_no_right() -> None:
    outputs: list[Any] = []

    def take(input: Any, output: Any) -> None:
        outputs[:] = [output]
        for _ in input:
            pass

    def trespass(input: Any, output: Any) -> None:
        for message, _ in input:
            with pytest.raises(CapabilityError, match=r"a message to thief \(#2\) gives no right to owner \(#1\)"):
                outputs[0].give(message, ["x"])
            with message.retain() as kept, pytest.raises(CapabilityError, match=r"not for output 0 of owner \(#1\)"):
                outputs[0].give(kept, ["x"])

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("owner", lambda _: take, frontier=True)
            stream.unary("thief", lambda _: trespass)
        await worker.step()
        handle.send(["x"])

    SEED(main)
    assert outputs


def test_messages_that_nobody_takes_hold_the_dataflow() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("lazy", lambda _: lambda input, output: None)
        handle.send(["x"])

    with pytest.raises(Stuck, match=r"1 message at 0 to lazy \(#1\) \(1 queued on this worker\)"):
        SEED(main)


def two_outputs(connections: list[Any], use: Callable[[Any, Any], None]) -> Any:
    """The frontiers of two outputs, declared with `connections`, of an operator that does `use(message, outputs)`."""

    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            builder = OperatorBuilder(scope, "two")
            builder.add_input(stream)
            for connection in connections:
                builder.add_output(connection)

            def make(context: Any) -> Any:
                def step() -> None:
                    for message, _ in context.inputs[0]:
                        use(message, context.outputs)

                return step

            probes = [out.probe() for out in builder.build(make)]
        handle.send(["x"])
        handle.advance_to(1)
        await probes[0].wait_passed(0)
        return [list(probe.frontier) for probe in probes]

    return SEED(main)[0]


def test_an_output_that_is_not_connected_gives_no_right_and_has_no_frontier() -> None:
    def use(message: Any, outputs: Any) -> None:
        complaint = r"input 0 of two \(#1\) is not connected to its output 1"
        with pytest.raises(CapabilityError, match=complaint):
            message.retain(1)
        with pytest.raises(CapabilityError, match=complaint):
            message.delayed(5, 1)
        with pytest.raises(CapabilityError, match=complaint):
            outputs[1].give(message, ["x"])
        message.retain(0).drop()

    assert two_outputs([None, {}], use) == [[1], []]


def test_a_capability_is_for_one_output_only() -> None:
    def use(message: Any, outputs: Any) -> None:
        kept = message.retain(1)
        with pytest.raises(CapabilityError, match=r"for output 1 of two \(#1\), not for output 0 of two \(#1\)"):
            outputs[0].give(kept, ["x"])
        kept.drop()

    assert two_outputs([None, None], use) == [[1], [1]]


def test_a_connection_with_an_increment_moves_the_time() -> None:
    times: list[Any] = []

    def use(message: Any, outputs: Any) -> None:
        with message.retain(1) as kept:
            times.append(kept.time)
        with pytest.raises(CapabilityError, match="may send at 3 or later, and tried to send at 2"):
            outputs[1].give(message, ["x"], at=2)

    assert two_outputs([None, {0: 3}], use) == [[1], [4]]
    assert times == [3]


def test_only_an_output_declared_initial_starts_with_a_capability() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            stream.unary("late", lambda context: context.capability())

    with pytest.raises(ConstructionError, match=r"output 0 of late \(#1\) was not declared initial"):
        Run()(main)


@pytest.mark.parametrize("use", [lambda c: c.drop(), lambda c: c.downgrade(5)], ids=["drop", "downgrade"])
def test_an_initial_capability_may_be_given_up_when_the_operator_is_made(use: Callable[[Any], Any]) -> None:
    def make(context: Any) -> Any:
        use(context.capability())
        return lambda input, output: None

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("holder", make, initial=True).probe()
            stream.map(str)  # some operator after it, to be miscounted
        handle.advance_to(1)
        await probe.wait_passed(0)
        worker.drop_dataflow(scope)

    SEED(main)


def test_giving_without_a_capability_says_so() -> None:
    with pytest.raises((CapabilityError, TypeError), match="capability"):
        with_first_message(lambda _, output: output.give(None, ["x"]))


def test_a_capability_dropped_in_the_step_in_which_its_message_is_sent(run: Run) -> None:
    def use(message: Any, output: Any) -> None:
        kept = message.retain()
        output.give(kept, ["sent"])
        kept.drop()

    assert with_first_message(use, run) == [(0, "sent")]
