"""The seeded scheduler itself: runs replay, differ, and fail with their seeds; its clock costs no time; what hangs is
explained."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
from random import Random
from typing import Any

import pytest
import trio

import dataflow
from dataflow.errors import Stuck
from dataflow.testing import simulate
from tests.programs import word_count
from tests.programs.cases import PROGRAMS, check_program
from tests.programs.running import CLOSED, PACES, Simulated

LINES = [["the quick brown fox", "the dog"], ["a fox", "a dog"], ["the end"]]


# ------------------------------------------------------------------------------------------------- one seed is one run


def traced(seed: int, workers: int = 3) -> tuple[Any, list[Any]]:
    """The results of a word count, and every turn that led to them."""
    trace: list[Any] = []
    results = simulate(word_count.main, CLOSED, LINES, workers=workers, seed=seed, trace=trace)
    return results, trace


def fingerprint() -> str:
    """One word for all that happens under some seeds."""
    return hashlib.sha256(repr([traced(seed) for seed in range(5)]).encode()).hexdigest()


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_a_seed_replays_exactly(workers: int) -> None:
    for seed in range(5):
        first = traced(seed, workers)
        traced(seed + 1, workers)  # what happened before must not matter
        assert traced(seed, workers) == first


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_replays_exactly(program: str) -> None:
    for seed in range(3):
        traces: list[list[Any]] = [[], []]
        for trace in traces:
            check_program(program, Simulated(3, seed, trace=trace), seed)
        assert traces[0] == traces[1]


def test_a_seed_replays_though_sleepers_wake_at_one_instant() -> None:
    """Mains that sleep equally long wake in an order that is the seed's to choose, not that of their addresses."""

    async def main(worker: dataflow.Worker, order: list[int]) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.exchange(lambda n: n).probe()
        for epoch in range(5):
            await trio.sleep(1)
            order.append(worker.index)
            numbers.send([worker.index])
            numbers.advance_to(epoch + 1)

    def run(seed: int) -> tuple[list[int], list[Any]]:
        order: list[int] = []
        trace: list[Any] = []
        simulate(main, order, workers=4, seed=seed, trace=trace)
        return order, trace

    clutter: list[list[Any]] = []
    for seed in range(10):
        first = run(seed)
        for size in range(5):
            clutter.append([object() for _ in range(97 * size)])  # so that what is made next is made elsewhere
            assert run(seed) == first


def test_a_seed_replays_in_another_process() -> None:
    """A seed that failed on one machine is looked into on another, where strings hash differently."""
    command = [sys.executable, "-c", "from tests.programs.test_seeds import fingerprint; print(fingerprint())"]
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        assert told.strip() == fingerprint()


def test_the_caller_keeps_its_own_chance() -> None:
    """The simulation seeds trio's generator; whoever uses that next gets what they would have got."""
    chance = trio._core._run._r
    chance.seed(5)
    expected = Random(5).random()
    traced(1)
    assert chance.random() == expected


# ---------------------------------------------------------------------------------------------- and every seed another


def test_different_seeds_are_different_runs() -> None:
    traces = [traced(seed)[1] for seed in range(30)]
    assert len({tuple(trace) for trace in traces}) == len(traces)


def test_everything_is_subject_to_the_seed() -> None:
    """Each kind of turn happens, for every worker; messages to one worker overtake each other."""
    trace = traced(0)[1]
    kinds = {(turn[0], worker) for turn in trace for worker in turn if re.fullmatch(r"worker \d", worker)}
    assert kinds == {(kind, f"worker {n}") for kind in ("run", "flush", "settle") for n in range(3)}
    lanes = {turn[1:3] for turn in trace if turn[0] == "deliver"}
    assert lanes == {(f"from worker {a}", f"to worker {b}") for a, b in itertools.permutations(range(3), 2)}


def test_data_arrive_in_every_order() -> None:
    """Two messages of one sender on one channel, and two senders: all that may be in any order is in every order."""

    async def main(worker: dataflow.Worker) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.exchange(lambda n: 0).inspect(lambda _, n: seen.append(n))
        if worker.index:
            numbers.send([10 * worker.index])
            numbers.send([10 * worker.index + 1])
        return seen

    orders = {tuple(simulate(main, workers=3, seed=seed)[0]) for seed in range(300)}
    assert orders == set(itertools.permutations((10, 11, 20, 21)))


# ----------------------------------------------------------------------------------------------- failures name a seed


class OutOfOrderError(Exception):
    """What the fragile program below raises."""


async def fragile(worker: dataflow.Worker) -> None:
    """A program with a race: it relies on worker 1 being heard before worker 2."""
    heard: list[int] = []

    def hear(_: int, sender: int) -> None:
        heard.append(sender)
        if sender == 2 and 1 not in heard:
            raise OutOfOrderError(heard)

    with worker.dataflow("fragile") as scope:
        numbers, stream = scope.input()
        stream.exchange(lambda _: 0).inspect(hear, name="listen")
    numbers.send([worker.index])


def failure(seed: int) -> list[str] | None:
    """The notes of what a seed raises; None if it does not."""
    try:
        simulate(fragile, workers=3, seed=seed)
    except OutOfOrderError as error:
        return error.__notes__
    return None


def test_a_failing_seed_is_named_and_replays() -> None:
    failures = {seed: failure(seed) for seed in range(40)}
    failing = [seed for seed, notes in failures.items() if notes]
    assert 0 < len(failing) < 40  # a race: neither always nor never
    for seed in failing:
        notes = failures[seed]
        assert notes is not None
        assert any(re.search(rf"workers=3, seed={seed}: failed after turn \d+", note) for note in notes)
        assert any("listen" in note and "'fragile'" in note and "worker 0" in note for note in notes)
        assert failure(seed) == notes  # the same turn, too


def test_a_failure_in_main_names_its_worker_and_seed() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            probe = stream.exchange(lambda n: n).probe()
        if worker.index == 1:
            raise ValueError("no")
        await probe.wait_passed(0)  # for ever, were it not for the failure

    for seed in range(10):
        with pytest.raises(ValueError, match="no") as raised:
            simulate(main, workers=3, seed=seed)
        assert any("in main on worker 1 of 3" in note for note in raised.value.__notes__)
        assert any(f"seed={seed}" in note for note in raised.value.__notes__)


# --------------------------------------------------------------------------------------------------- the virtual clock

HOUR = 3600.0  # were this real time, nobody would wait for these tests


async def paced(worker: dataflow.Worker, every: float, records: int) -> list[Any]:
    """When each record of a paced source appeared: (time, record, virtual seconds)."""
    seen: list[Any] = []
    start = trio.current_time()
    with worker.dataflow() as scope:
        numbers = scope.source(range(records), batch=1, every=every)
        numbers.exchange(lambda n: n).inspect(lambda t, n: seen.append((t, n, trio.current_time() - start)))
    return seen


@pytest.mark.parametrize("every", [0.5, HOUR])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_paced_source_keeps_the_virtual_time(workers: int, every: float) -> None:
    for seed in range(5):
        seen = [entry for result in simulate(paced, every, 10, workers=workers, seed=seed) for entry in result]
        assert sorted((time, n) for time, n, _ in seen) == sorted([(n, n) for n in range(10)] * workers)
        # Sleepers are kept apart by nanoseconds, so that their order is not trio's to choose.
        assert all(seconds == pytest.approx(n * every, abs=1e-6) for _, n, seconds in seen)


def test_mains_that_sleep_wake_in_the_order_of_their_deadlines() -> None:
    async def main(worker: dataflow.Worker, order: list[int]) -> float:
        await trio.sleep(HOUR * (worker.peers - worker.index))
        order.append(worker.index)
        return trio.current_time()

    for seed in range(5):
        order: list[int] = []
        times = simulate(main, order, workers=4, seed=seed)
        assert order == [3, 2, 1, 0]
        assert times == pytest.approx([4 * HOUR, 3 * HOUR, 2 * HOUR, HOUR])


def test_everything_that_can_happen_happens_before_the_clock_moves() -> None:
    """An epoch is counted at the very instant at which the slowest worker has sent its part, however late that is."""

    async def main(worker: dataflow.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.count(lambda n: n).inspect(lambda time, count: seen.append((time, count, trio.current_time())))
        for epoch in range(3):
            numbers.send([0])
            numbers.advance_to(epoch + 1)
            await trio.sleep(1 + worker.index)
        return seen

    for seed in range(10):
        results = simulate(main, workers=2, seed=seed)
        assert sorted(results[0] + results[1]) == [(0, (0, 2), 0.0), (1, (0, 2), 2.0), (2, (0, 2), 4.0)]


# ------------------------------------------------------------------------------------------------- programs that hang


async def forgetful(worker: dataflow.Worker) -> None:
    """Worker 1 sleeps with its input at time 3; the others wait for that to pass."""
    with worker.dataflow("tally") as scope:
        numbers, stream = scope.input("numbers")
        probe = stream.count(lambda n: n, name="tally up").probe()
    numbers.advance_to(3 if worker.index == 1 else 9)
    if worker.index == 1:
        await trio.sleep_forever()
    await probe.wait_passed(5)


async def hoarding(worker: dataflow.Worker) -> None:
    """An operator that keeps a capability for ever."""
    kept: list[Any] = []

    def make(_: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                kept.append(message.retain())
                output.give(message, batch)

        return step

    with worker.dataflow("tally") as scope:
        numbers, stream = scope.input("numbers")
        stream.unary("hoarder", make).probe()
    numbers.send([worker.index], at=7)


def stuck(main: Any, **options: Any) -> str:
    """What the simulation says about a program that hangs."""
    with pytest.raises(Stuck) as raised:
        simulate(main, **options)
    assert any(f"seed={options['seed']}" in note for note in raised.value.__notes__)
    return str(raised.value)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_an_input_that_was_forgotten_is_named(workers: int) -> None:
    for seed in range(10):
        told = stuck(forgetful, workers=workers, seed=seed)
        assert "'tally'" in told
        for n in range(workers):
            (mine,) = re.findall(rf"worker {n} of {workers}:\n((?:  .*\n?)*)", told)
            where = "on this worker" if n == 1 else "on another worker"
            assert f"numbers (#0) holds 1 capability at 3 ({where}): not advanced past it, nor closed" in mine
            waits = re.search(r"somebody waits for <.*tally up.*> to pass 5; held by numbers \(#0\) at 3", mine)
            assert bool(waits) == (n != 1)


def test_an_operator_that_hoards_is_named() -> None:
    for seed in range(10):
        told = stuck(hoarding, workers=2, seed=seed)
        assert "hoarder (#1) holds 2 capabilities at 7 (1 of them on this worker)" in told
        assert "numbers" not in told  # closed when main returned: not to blame


def test_an_endless_loop_runs_out_of_turns() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("hamster") as scope:
            numbers, stream = scope.input("numbers")
            stream.iterate(lambda inner: inner.map(lambda n: n + 1, name="wheel"))
        numbers.send([1])

    for seed in range(3):
        told = stuck(main, workers=2, seed=seed, turns=2000)
        assert "still running after 2000 turns" in told
        assert "'hamster'" in told
        assert "busy" in told
        assert re.search(r"messages? at \(0, \d+\) to|(wheel|concat|feedback|leave) \(#\d+\) is about to run", told)


def test_what_ends_does_not_run_out_of_turns() -> None:
    trace: list[Any] = []
    simulate(word_count.main, PACES[1], LINES, workers=2, seed=1, trace=trace)
    simulate(word_count.main, PACES[1], LINES, workers=2, seed=1, turns=len(trace))
    with pytest.raises(Stuck):
        simulate(word_count.main, PACES[1], LINES, workers=2, seed=1, turns=len(trace) - 1)
