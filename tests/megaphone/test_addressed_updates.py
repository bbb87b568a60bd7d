"""Updates that are for one operator of several, and the control stream that the run itself advances."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import trio

import dataflow
import megaphone
from dataflow import sources
from dataflow.build.hooks import UnknownOperator
from dataflow.testing import simulate
from megaphone.control.updates import Update, parse_line

BINS = 4


def count(key: int, value: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + value
    return total, [(key, total)]


def steered(send: Callable[[dataflow.Worker, Callable[..., None]], None]) -> tuple[list[int], list[int], list[int]]:
    """Two operators on one control stream: where the bins of each are at the end, and the totals that came out."""
    totals: dict[int, int] = {}

    async def main(worker: dataflow.Worker) -> tuple[list[int], list[int]]:
        with worker.dataflow() as scope:
            control = scope.control()
            numbers, stream = scope.input()
            first = megaphone.state_machine(control, stream, fold=count, bins=BINS, name="first")
            second = megaphone.state_machine(control, first, fold=count, bins=BINS, name="second")
            probe = second.inspect(lambda _, row: totals.update([row])).probe()
        for epoch in range(6):
            numbers.send([(key, 1) for key in range(8) if key % worker.peers == worker.index])
            if epoch == 2 and worker.index == 0:
                send(worker, control.send)
            numbers.advance_to(epoch + 1)
            await probe.wait_passed(epoch - 1)
        await probe.wait_passed(5)
        return first.handle.configuration.tolist(), second.handle.configuration.tolist()

    found = simulate(main, workers=2, seed=3)
    assert found[0] == found[1]
    return (*found[0], [totals[key] for key in range(8)])


def test_an_update_with_a_name_is_for_that_operator_alone() -> None:
    first, second, totals = steered(lambda _, send: send([megaphone.Move(0, 1, operator="second")]))
    assert first == [0, 1, 0, 1] and second == [1, 1, 0, 1]
    assert totals == [sum(range(7))] * 8  # 1 + 2 + ... + 6: the second adds up what the first has counted


def test_an_update_without_a_name_is_for_all() -> None:
    first, second, _ = steered(lambda _, send: send([megaphone.Assign([1, 1, 1, 1])]))
    assert first == second == [1, 1, 1, 1]


def test_a_name_that_nobody_has_is_refused_where_it_is_sent() -> None:
    with pytest.raises(UnknownOperator, match=r"no stateful operator 'third'; there are: 'first', 'second'"):
        steered(lambda _, send: send([megaphone.Move(0, 1, operator="third")]))


@pytest.mark.parametrize(
    ("line", "update"),
    [
        ('{"time": 5, "bin": 3, "worker": 1, "operator": "totals"}', megaphone.Move(3, 1, operator="totals")),
        ('{"time": 5, "map": [0, 1], "operator": "totals"}', megaphone.Assign((0, 1), operator="totals")),
        ('{"time": 5, "key": 7, "worker": 1, "operator": "totals"}', megaphone.Pin(7, 1, operator="totals")),
    ],
)
def test_lines_of_json_may_name_the_operator(line: str, update: Update) -> None:
    assert parse_line(line, 1) == (5, update)


def test_an_operator_in_json_has_a_name() -> None:
    with pytest.raises(megaphone.ControlError, match="line 4: an operator has a name, not 7"):
        parse_line('{"time": 5, "bin": 3, "worker": 1, "operator": 7}', 4)


@pytest.mark.parametrize("seed", range(6))
def test_a_control_stream_follows_sources_to_their_end_also_where_the_leader_has_none(seed: int) -> None:
    """All partitions are worker 1's in the end: worker 0 goes on announcing what can be announced."""
    seen: dict[int, int] = {}

    def numbers(start: int) -> Iterable[tuple[int, int]]:
        return ((number % 5, 1) for number in range(start, 60))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(sources.generator(numbers, batch=4))
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=BINS, name="totals")
            totals.inspect(lambda _, row: seen.update([row]))
        await trio.lowlevel.checkpoint()

    simulate(main, workers=3, seed=seed)
    assert seen == dict.fromkeys(range(5), 12)


def test_a_controller_paces_a_migration_on_it() -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        with worker.dataflow() as scope:
            control = scope.control()
            numbers, stream = scope.input()
            totals = megaphone.state_machine(control, stream, fold=count, bins=BINS, name="totals")
            probe = totals.probe()
        controller = megaphone.Controller(control, totals)
        if worker.index == 0:
            controller.migrate([1] * BINS, megaphone.fluid(budget=None))
        for epoch in range(20):
            numbers.send([(epoch, 1)])
            controller.advance_to(epoch + 1)
            numbers.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        assert not controller.busy
        return list(controller.configuration)

    assert simulate(main, workers=2, seed=1) == [[1] * BINS] * 2
