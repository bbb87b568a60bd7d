"""Notifications come once, in order, and not before their time is complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
from dataflow import CapabilityError, Product
from dataflow.lowlevel import OperatorBuilder
from tests.engine.harness import Run


def notified(
    run: Run,
    feed: Callable[[Any], Any],
    on_batch: Callable[..., None],
    on_notify: Callable[..., None] = lambda *_: None,
    time: Any = int,
) -> list[Any]:
    """The times of which an operator is notified, in order; `await feed(handle)` feeds it on worker 0."""
    log: list[Any] = []

    def notify(capability: Any, output: Any, notificator: Any) -> None:
        log.append(capability.time)
        on_notify(capability, output, notificator)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=time) as scope:
            handle, stream = scope.unordered_input()
            stream.unary_notify("waiter", on_batch, notify)
        if worker.index == 0:
            await feed(handle)

    run(main)
    return log


def ask(message: Any, batch: Any, output: Any, notificator: Any) -> None:
    notificator.notify_at(message.retain())


def sender(*times: Any) -> Callable[[Any], Any]:
    """Sends one record at each of the times, in this order, and closes."""

    async def feed(handle: Any) -> None:
        for time in times:
            with handle.capability.delayed(time) as capability:
                handle.send([time], capability)

    return feed


def test_notifications_come_in_the_order_of_their_times(run: Run) -> None:
    assert notified(run, sender(5, 1, 3, 0, 4), ask) == [0, 1, 3, 4, 5]


def test_asking_twice_for_a_time_is_asking_once(run: Run) -> None:
    def on_batch(message: Any, batch: Any, output: Any, notificator: Any) -> None:
        ask(message, batch, output, notificator)
        ask(message, batch, output, notificator)
        capability = message.retain()
        notificator.notify_at(capability)
        if capability.live:
            notificator.notify_at(capability)  # the same one again
        assert message.time in notificator and notificator.pending.count(message.time) == 1

    assert notified(run, sender(2, 1, 2, 1), on_batch) == [1, 2]


def test_a_notification_may_ask_for_a_later_one(run: Run) -> None:
    def again(capability: Any, output: Any, notificator: Any) -> None:
        if capability.time < 6:
            notificator.notify_at(capability.delayed(capability.time + 2))

    assert notified(run, sender(0, 1), ask, again) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_capability_of_a_notification_may_be_moved_and_handed_back(run: Run) -> None:
    def again(capability: Any, output: Any, notificator: Any) -> None:
        if capability.time < 6:
            capability.downgrade(capability.time + 3)
            notificator.notify_at(capability)

    assert notified(run, sender(1), ask, again) == [1, 4, 7]


def test_a_notification_s_capability_may_be_dropped_early(run: Run) -> None:
    assert notified(run, sender(1, 2), ask, lambda capability, *_: capability.drop()) == [1, 2]


def test_a_notification_may_ask_for_a_time_that_another_waits_for(run: Run) -> None:
    def again(capability: Any, output: Any, notificator: Any) -> None:
        if capability.time == 0:
            notificator.notify_at(capability.delayed(1))

    assert notified(run, sender(0, 1), ask, again) == [0, 1]


def test_no_notification_before_the_time_is_complete() -> None:
    log: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary_notify("waiter", ask, lambda capability, *_: log.append(capability.time))
            probe = stream.probe()
        handle.send(["x"])
        handle.send(["y"], at=2)
        for time in (1, 2, 3):
            while await worker.step():
                pass
            log.append(f"before {time}")
            handle.advance_to(time)
            await probe.wait_passed(time - 1)

    Run()(main)
    assert log == ["before 1", 0, "before 2", "before 3", 2]


def test_a_notification_waits_for_all_inputs(run: Run) -> None:
    log: list[Any] = []

    def make(context: Any) -> Any:
        due = context.notificator()

        def step(left: Any, right: Any, output: Any) -> None:
            for input in (left, right):
                for message, _ in input:
                    due.notify_at(message.retain())
            for capability in due:
                log.append(capability.time)
                assert not left.could_see(capability.time) and not right.could_see(capability.time)

        return step

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            left, left_stream = scope.input()
            right, right_stream = scope.input()
            both = left_stream.binary(right_stream, "both", make, frontier=True).probe()
            sent = left_stream.probe()
        if worker.index == 0:
            left.send(["x"])
        left.advance_to(5)
        await sent.wait_passed(4)
        right.advance_to(1)
        await both.wait_passed(0)
        assert log == [0]

    run(main)
    assert log == [0]


def test_one_of_several_incomparable_times_may_come_first() -> None:
    log: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Product(int, int)) as scope:
            handle, stream = scope.unordered_input()
            probe = stream.unary_notify("waiter", ask, lambda capability, *_: log.append(capability.time)).probe()
        low, high = handle.capability.delayed((0, 3)), handle.capability.delayed((3, 0))
        handle.capability.drop()
        handle.send(["x"], low)
        handle.send(["y"], high)
        high.drop()  # nothing can come at (3, 0) any more, though (0, 3) still can
        await probe.wait_passed((3, 0))
        log.append("then")
        low.drop()
        await probe.wait_passed((0, 3))

    Run(1, seed=0)(main)
    assert log == [(3, 0), "then", (0, 3)]


@pytest.mark.parametrize("seed", range(5))
def test_random_order_of_arrival_gives_sorted_linear_extensions(seed: int) -> None:
    times = [(a, b) for a in range(3) for b in range(3)]
    log = notified(Run(2, seed=seed), sender(*reversed(times)), ask, time=Product(int, int))
    assert sorted(log) == times
    assert all(not (u != t and u[0] <= t[0] and u[1] <= t[1]) for i, t in enumerate(log) for u in log[i + 1 :])


def test_a_dead_capability_cannot_be_waited_for() -> None:
    def on_batch(message: Any, batch: Any, output: Any, notificator: Any) -> None:
        capability = message.retain()
        capability.drop()
        with pytest.raises(CapabilityError, match="cannot be waited for"):
            notificator.notify_at(capability)

    assert notified(Run(), sender(1), on_batch) == []


def test_what_a_notification_sends_arrives_at_its_time(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            out = stream.unary_notify("echo", ask, lambda cap, output, _: output.give(cap, [f"end of {cap.time}"]))
            out.inspect(lambda t, r: seen.append((t, r)))
        if worker.index == 0:
            handle.send(["x"])
            handle.send(["y"], at=4)

    run(main)
    assert sorted(seen) == [(0, "end of 0"), (4, "end of 4")]


def test_an_operator_without_inputs_is_notified_at_once() -> None:
    log: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            builder = OperatorBuilder(scope, "generator")
            builder.add_output(initial=True)

            def make(context: Any) -> Any:
                due = context.notificator()
                due.notify_at(context.capability())
                context.activate()
                return lambda: log.extend(capability.time for capability in due)

            builder.build(make)

    Run(1, seed=0)(main)
    assert log == [0]
