"""The controller paces steps by the output frontier and can be cancelled; bad control is refused where it is sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.migration.strategies import Strategy

BINS = 16


def count(time: int, records: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key in records:
        state[key] = state.get(key, 0) + 1
    yield from ((key, state[key]) for key in set(records))


async def main(worker: dataflow.Worker, strategy: Strategy, times: int, cancel_at: int | None = None) -> Any:
    out: list[Any] = []
    steps: list[int] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS)
        probe = counts.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, counts)
    for time in range(times):
        data.send([(time + worker.index) % 5, time % 3])
        if time == 2 and worker.index == 0:
            controller.migrate(to=[1] * BINS, strategy=strategy)
            with pytest.raises(megaphone.ControlError, match="under way"):
                controller.migrate(to=[0] * BINS)
        if time == cancel_at:
            controller.cancel()
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        steps.append(controller.progress.steps_done)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(times - 1)
    return out, controller.configuration, controller.busy, steps


def expected(times: int, workers: int) -> Counter[Any]:
    state: Counter[int] = Counter()
    out: Counter[Any] = Counter()
    for time in range(times):
        keys = [key for index in range(workers) for key in ((time + index) % 5, time % 3)]
        state.update(keys)
        out.update((time, (key, state[key])) for key in set(keys))
    return out


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    "strategy",
    [megaphone.all_at_once(), megaphone.fluid(), megaphone.batched(3, gap=1), megaphone.matched()],
    ids=lambda s: s.name,
)
def test_every_strategy_ends_where_it_should_and_changes_no_result(strategy: Strategy, workers: int) -> None:
    for seed in range(6):
        results = simulate(main, strategy, 60, workers=workers, seed=seed)
        assert sum((Counter(out) for out, *_ in results), Counter()) == expected(60, workers)
        for _, configuration, busy, steps in results:
            assert configuration == (1,) * BINS
            assert not busy
            assert steps == sorted(steps)


@pytest.mark.parametrize(
    ("to", "strategy", "interval", "complaint"),
    [
        (None, None, 0.25, "a map is a list of workers, one for each of 4 bins, not None"),
        ("0101", None, 0.25, "a map is a list of workers, one for each of 4 bins, not '0101'"),
        ([0] * 4, "fluid", 0.25, "a strategy is what .* return, not 'fluid'"),
        ([0] * 4, megaphone.fluid, 0.25, "a strategy is what all_at_once.* return, not <function fluid"),
        ([0] * 4, megaphone.fluid(budget=5), None, "needs statistics of bins: give the operator an interval"),
        ([0] * 4, megaphone.fluid(order="biggest"), None, "needs statistics of bins: give the operator an interval"),
    ],
)
def test_a_migration_that_makes_no_sense_is_refused(to: Any, strategy: Any, interval: Any, complaint: str) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            _, stream = scope.input()
            counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=4, interval=interval)
        controller = megaphone.Controller(control, counts)
        with pytest.raises((megaphone.ControlError, TypeError), match=complaint):
            controller.migrate(to, strategy)
        return controller.busy, controller.configuration

    assert simulate(main, workers=1) == [(False, (0,) * 4)]


def test_a_cancelled_migration_keeps_what_has_moved() -> None:
    for seed in range(5):
        results = simulate(main, megaphone.fluid(), 30, 8, workers=2, seed=seed)
        assert sum((Counter(out) for out, *_ in results), Counter()) == expected(30, 2)
        configurations = {configuration for _, configuration, _, _ in results}
        assert len(configurations) == 1, "all agree on where bins are"
        moved = sum(worker == 1 for worker in configurations.pop())
        assert BINS // 2 < moved < BINS


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_updates_are_refused_where_they_are_sent_and_the_configuration_stays(workers: int) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS)
            probe = counts.inspect(lambda t, r: out.append(r)).probe()
        controller = megaphone.Controller(control, counts)
        before = controller.configuration
        for bad, complaint in [
            (megaphone.Move(BINS, 0), "no bin 16"),
            (megaphone.Move(0, workers), f"no worker {workers}"),
            (megaphone.Move(0.5, 0), "not the number of a bin"),  # type: ignore[arg-type]
            (megaphone.Assign((0,) * 3), "a map of 3 bins"),
            ("move it", r"^'move it' is not a configuration update: send Move.*, Moves.* Assign.* Pin.*, Unpin.* Pins"),
        ]:
            with pytest.raises(megaphone.ControlError, match=complaint):
                control.send([megaphone.Move(1, 0), bad])
        with pytest.raises(megaphone.ControlError, match="a map of 2 bins"):
            controller.migrate(to=[0, 0])
        control.advance_to(1)
        with pytest.raises(dataflow.TimeError, match="already"):
            control.send([megaphone.Move(0, 0)], at=0)
        data.send([7])
        data.advance_to(1)
        await probe.wait_passed(0)
        assert controller.configuration == before
        return out

    assert [record for out in simulate(main, workers=workers) for record in out] == [(7, workers)]


def test_state_that_cannot_move_is_named() -> None:
    def hoard(time: int, records: list[Any], state: dict[Any, Any], notificator: Any) -> Any:
        state.update((key, object()) for key in records)
        return ()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            data, stream = scope.input()
            megaphone.unary(configuration, stream, key=lambda k: k, fold=hoard, bins=1, name="hoard")
        data.send(["gold"])
        control.send([megaphone.Move(0, 1)], at=1)
        data.advance_to(2)
        control.advance_to(2)

    with pytest.raises(TypeError, match="bin 0, key 'gold', cannot move") as failure:
        simulate(main, workers=2)
    assert any("hoard F" in note for note in failure.value.__notes__)
