"""A migration under overload does not queue behind the data that it is to relieve.

Sources have a backlog of epochs, all there from the beginning, and keep it to themselves: a bounded number of epochs is
outstanding. A step that is decided upon is complete after those, and not after the backlog.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.comm.flow import Flow
from dataflow.run.worker import pump_of
from dataflow.testing import simulate
from megaphone.router.routing import Router

BINS, BACKLOG, DECIDED = 8, 120, 20


def count(time: int, records: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key in records:
        state[key] = state.get(key, 0) + 1
    yield from ((key, state[key]) for key in set(records))


async def main(worker: dataflow.Worker, ahead: int, limit: int | None) -> Any:
    """Decides on a step when DECIDED epochs are done; how many were when it was complete, and what had been pulled."""
    out: list[Any] = []
    pulled = 0

    def backlog() -> Any:
        nonlocal pulled
        for _ in range(BACKLOG):
            pulled += 1
            yield (worker.index + pulled) % 11

    if limit is not None:
        pump_of(worker).flow = Flow(worker.peers, limit)
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        stream = scope.source(backlog, batch=1, ahead=ahead)
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS)
        probe = counts.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, counts)
    complete = None
    for time in range(BACKLOG):
        if time == DECIDED:
            controller.migrate(to=[1] * BINS)
        controller.advance_to(time + ahead)  # as far as the source may be
        if time > DECIDED and complete is None and not controller.busy:
            complete = (time, pulled)
        await probe.wait_passed(time)
    return out, complete, controller.configuration


def expected() -> Counter[Any]:
    state: Counter[int] = Counter()
    out: Counter[Any] = Counter()
    for time in range(BACKLOG):
        keys = [(worker + time + 1) % 11 for worker in range(2)]
        state.update(keys)
        out.update((time, (key, state[key])) for key in set(keys))
    return out


@pytest.mark.parametrize("limit", [None, 64], ids=["memory enough", "hardly any credit for data"])
@pytest.mark.parametrize("ahead", [1, 4, 16])
def test_a_step_waits_for_the_outstanding_epochs_and_not_for_the_backlog(ahead: int, limit: int | None) -> None:
    for seed in range(3):
        results = simulate(main, ahead, limit, workers=2, seed=seed)
        assert sum((Counter(out) for out, *_ in results), Counter()) == expected()
        for _, complete, configuration in results:
            assert configuration == (1,) * BINS
            assert complete is not None
            time, pulled = complete
            assert time <= DECIDED + ahead + 2, "the epochs that were outstanding when it was decided, and its own"
            assert pulled <= DECIDED + 2 * ahead + 3, "the backlog has stayed where it was"


def test_without_a_bound_the_step_comes_after_the_backlog() -> None:
    """The same program where everything may be outstanding: the measure tells them apart."""
    (_, complete, _), _ = simulate(main, BACKLOG, None, workers=2, seed=0)
    assert complete is not None and complete[1] == BACKLOG, "all of it had been let in"


def test_in_one_step_f_serves_control_and_state_before_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that waits at F, of times when the bins are gone, is routed after they have left."""
    steps: list[list[str]] = []
    step, departures = Router.step, Router.departures
    route = megaphone.router.rows.RowRouter.route

    def note_step(self: Any) -> None:
        steps.append([])
        step(self)

    def note_departures(self: Any, migration: Any) -> Any:
        for parts in departures(self, migration):
            steps[-1].append("state")
            yield parts

    def note_route(self: Any, *args: Any) -> Any:
        steps[-1].append("data")
        return route(self, *args)

    monkeypatch.setattr(Router, "step", note_step)
    monkeypatch.setattr("megaphone.router.routing.Router.departures", note_departures)
    monkeypatch.setattr("megaphone.router.rows.RowRouter.route", note_route)
    for seed in range(20):
        simulate(main, 8, None, workers=2, seed=seed)
    both = [kinds for kinds in steps if len(set(kinds)) == 2]
    assert both, "steps with both to do occur"
    assert all(kinds == sorted(kinds, reverse=True) for kinds in both), "state, then data"
