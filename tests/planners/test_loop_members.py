"""The loop and workers that come and go: it asks for them, and moves nothing to one that has left or is leaving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
import megaphone
from dataflow.testing import simulate
from planners.intervals.baselines import storm
from planners.loop import Decision, Driver, Loop
from planners.loop.observation import Observation
from planners.loop.planning import by_bins, by_intervals, by_keys

BINS = 16
Make = Callable[[dataflow.Worker, megaphone.Controller], Driver[Any]]


def test_workers_are_asked_for_with_the_load_and_the_loop_does_not_flap() -> None:
    loop = Loop(by_intervals(tau=0.3, capacity=100.0), patience=2, cool_down=2, most=4)
    workers, there, asked = 1, [], []
    for total in [80] * 4 + [150] * 8 + [990] * 8 + [310, 290] * 5 + [100] * 10:
        cost, places = np.full(BINS, total / BINS), np.arange(BINS) * workers // BINS
        decision = loop.decide(Observation(workers, places, cost, np.full(BINS, 100.0)))
        assert decision.acts == (decision.ask is not None) and decision.proposal is None
        workers = decision.ask or workers  # they come, or go, and bins are dealt out
        asked += [str(decision)] if decision.ask is not None else []
        there.append(workers)
    assert there[3] == 1 and there[11] == 2 and set(there[19:30]) == {4} and there[-1] == 2
    assert asked[0].endswith("scale to 2: 1 workers are used, and 2 wanted") and len(asked) == 3


def test_a_loop_asks_for_workers_only_if_it_can() -> None:
    with pytest.raises(ValueError, match="by a planner that knows how many it wants"):
        Loop(by_bins(), most=4)
    for loop, scale in ((Loop(by_intervals(capacity=1.0), most=2), None), (Loop(), lambda count: None)):
        with pytest.raises(ValueError, match="if it has both"):
            Driver(None, loop, scale=scale)  # type: ignore[arg-type]


def sent(time: int, amount: int) -> list[int]:
    """Keys of a time. A third is of one key, another one now and then."""
    return [number % 40 if number % 3 else time // 12 % 40 for number in range(amount)]


async def main(worker: dataflow.Worker, make: Make, amounts: list[int], plan: list[int], out: Any) -> Any:
    """A loop on worker 0. `plan`: somebody asks for so many workers, each time in the midst of a migration."""

    def count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
        return (total or 0) + one, [(key, (total or 0) + one)]

    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        totals = megaphone.state_machine(configuration, stream, fold=count, bins=BINS, interval=0.0)
        probe = totals.inspect(lambda _, row: out.update([row])).probe()
    controller = megaphone.Controller(control, totals)
    if worker.index == 0:
        control.send([megaphone.Assign((0,) * BINS)], at=0)  # for a migration to all others
    driver, change = make(worker, controller) if worker.index == 0 else None, None
    for time in range(worker.resume_at, len(amounts)):
        if driver is not None:
            data.send([(key, 1) for key in sent(time, amounts[time])])
            if plan and controller.busy and (change is None or change.done):
                change = worker.scale(plan.pop(0))
            driver.step()
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time - 1)
        await trio.sleep(0.01)  # the clock of a simulation stands still otherwise, and requests are tried again by it
    return driver and driver.decisions, [*controller.members], {*controller.configuration}


def run(make: Make, amounts: list[int], plan: list[int], workers: int, seed: int) -> tuple[list[Decision], Any, Any]:
    """What worker 0 saw. Each key was counted once for each of its records, wherever that was."""
    out: Counter[tuple[int, int]] = Counter()
    results = simulate(main, make, amounts, plan, out, workers=workers, seed=seed)
    counts = Counter(key for time, amount in enumerate(amounts) for key in sent(time, amount))
    assert out == Counter((key, total) for key, count in counts.items() for total in range(1, count + 1))
    assert not plan
    return results[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(("planner", "seed"), [(by_bins, 1), (by_bins, 2), (by_keys, 3)])
def test_workers_that_have_left_or_are_leaving_get_nothing(planner: Any, seed: int) -> None:
    def make(_: dataflow.Worker, controller: megaphone.Controller) -> Driver[Any]:
        return Driver(controller, Loop(planner(), patience=1, cool_down=0), least=0, strategy=megaphone.fluid())

    decisions, members, used = run(make, [60] * 120, [2, 4], 3, seed)
    assert members == [0, 1, 3, 4] and used <= {*members} and any(decision.acts for decision in decisions)


class Once:
    """In place of a loop: a program's own migration, of all bins to worker 2."""

    def __init__(self, _: dataflow.Worker, controller: megaphone.Controller) -> None:
        self._controller, self._steps, self.decisions = controller, 0, [controller]

    def step(self) -> None:
        self._steps += 1
        if self._steps == 5:
            self._controller.migrate([2] * BINS, megaphone.fluid())


def test_a_programs_own_migration_outlives_the_worker_that_it_goes_to(caplog: pytest.LogCaptureFixture) -> None:
    (controller,), members, used = run(Once, [60] * 60, [2], 3, 1)  # type: ignore[arg-type]
    assert members == [0, 1] and used <= {0, 1} and not controller.busy  # type: ignore[attr-defined]
    assert controller.progress.bins < BINS  # type: ignore[attr-defined]
    assert "bins stay where they are: worker 2 leaves" in caplog.text


def test_a_loop_has_workers_come_and_go() -> None:
    def make(worker: dataflow.Worker, controller: megaphone.Controller) -> Driver[Any]:
        loop = Loop(by_intervals(tau=4.0, capacity=100.0, otherwise=storm), patience=1, most=3)
        return Driver(controller, loop, least=0, scale=worker.scale)

    decisions, members, used = run(make, [50] * 10 + [280] * 50 + [50] * 60, [], 1, 1)
    assert [decision.ask for decision in decisions if decision.ask is not None] == [3, 1]
    assert members == [0] and used == {0}
