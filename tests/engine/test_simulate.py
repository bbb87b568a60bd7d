"""dataflow.testing: every interleaving is a seed, and a seed is one interleaving."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import dataflow
from dataflow.errors import Stuck
from dataflow.testing import simulate
from tests.engine.harness import notes


async def program(worker: dataflow.Worker) -> list[Any]:
    """A bit of everything: a loop, timers, a source, an asynchronous sink, two tasks in main."""
    log: list[Any] = []

    async def write(time: int, batch: list[int]) -> None:
        await trio.sleep(0.5)
        log.append((trio.current_time(), time, tuple(batch)))

    with worker.dataflow() as scope:
        handle, stream = scope.input()
        ticks = scope.source(range(5), batch=1, every=1.0)
        both = stream.concat(ticks.broadcast()).exchange(lambda n: n)
        both.iterate(lambda s: (s.filter(lambda n: n > 3).map(lambda n: n - 2).exchange(lambda n: n), s)).sink(write)
        probe = both.count(lambda n: n % 2).inspect(lambda t, r: log.append((t, r))).probe()

    async def feed() -> None:
        for time in range(3):
            handle.send([time, 7 * worker.index])
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            log.append(f"passed {time}")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed)
        nursery.start_soon(trio.sleep, 2)
    return log


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_replays_exactly(seed: int) -> None:
    runs = []
    for _ in range(2):
        trace: list[Any] = []
        runs.append((simulate(program, workers=3, seed=seed, trace=trace), trace))
    assert runs[0] == runs[1]


def test_different_seeds_are_different_runs() -> None:
    traces: list[list[Any]] = [[] for _ in range(6)]
    for seed, trace in enumerate(traces):
        simulate(program, workers=2, seed=seed, trace=trace)
    assert len({tuple(trace) for trace in traces}) == 6


def test_turns_say_what_was_done() -> None:
    trace: list[Any] = []
    simulate(program, workers=2, seed=0, trace=trace)
    assert {turn[0] for turn in trace} == {"run", "flush", "settle", "deliver"}
    assert ("run", "worker 0", "dataflow 0", "concat (#3)") in trace
    assert any(turn[:3] == ("deliver", "from worker 0", "to worker 1") for turn in trace)


def test_messages_may_overtake_each_other() -> None:
    orders = set()
    for seed in range(20):
        seen: list[int] = []

        async def main(worker: dataflow.Worker, seen: list[int] = seen) -> None:
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                stream.exchange(lambda _: 1).inspect(lambda _, n: seen.append(n))
            if worker.index == 0:
                for n in range(3):
                    handle.send([n])

        simulate(main, workers=2, seed=seed)
        orders.add(tuple(seen))
    assert len(orders) > 1 and all(sorted(order) == [0, 1, 2] for order in orders)


def test_a_failure_says_its_seed() -> None:
    async def main(worker: dataflow.Worker) -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError) as failure:
        simulate(main, workers=2, seed=17)
    assert "workers=2, seed=17" in notes(failure.value)


def test_the_virtual_clock_jumps() -> None:
    async def main(worker: dataflow.Worker) -> float:
        start = trio.current_time()
        await trio.sleep(50_000)
        return trio.current_time() - start

    assert simulate(main, workers=1) == [50_000]


def test_waiting_for_nothing_is_reported() -> None:
    async def main(worker: dataflow.Worker) -> None:
        await trio.sleep_forever()

    with pytest.raises(Stuck, match="nothing can happen any more"):
        simulate(main, workers=2)


def test_running_for_ever_is_reported() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.iterate(lambda s: s)
        handle.send([1])

    with pytest.raises(Stuck, match="still running after 500 turns"):
        simulate(main, workers=1, turns=500)


def test_trio_s_own_dice_are_left_as_they_were() -> None:
    chance = trio._core._run._r
    before = chance.getstate()
    simulate(program, workers=2, seed=5)
    assert chance.getstate() == before
