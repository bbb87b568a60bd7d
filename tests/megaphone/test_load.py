"""Control computed inside the same dataflow, from measured load: an operator counts records per bin and time, and moves
the hottest bins away from the busiest worker at a later time. Results are the oracle's; the load is better balanced."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.lowlevel import ToWorker
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of

BINS, PEERS, TIMES, LATER = 16, 3, 30, 3
PLANNED_AT = (8, 16)  # the times whose load is looked at


def keys_at(worker: int, time: int) -> list[int]:
    """Most records are of keys whose bins start at worker 0."""
    chance = random.Random(1000 * worker + time)
    hot = [key for key in range(200) if bin_of(key, shift_of(BINS)) % PEERS == 0]
    return [chance.choice(hot) if chance.random() < 0.8 else chance.randrange(200) for _ in range(20)]


def balance(loads: Counter[int], placed: list[int]) -> list[megaphone.Move]:
    """Moves the hottest bins off the busiest worker while that helps."""
    moves = []
    while True:
        by_worker = [sum(loads[b] for b in range(BINS) if placed[b] == w) for w in range(PEERS)]
        busiest, idlest = int(np.argmax(by_worker)), int(np.argmin(by_worker))
        gain = (by_worker[busiest] - by_worker[idlest]) // 2
        fitting = [b for b in range(BINS) if placed[b] == busiest and 0 < loads[b] <= gain]
        if not fitting:
            return moves
        hottest = max(fitting, key=lambda b: loads[b])
        placed[hottest] = idlest
        moves.append(megaphone.Move(hottest, idlest))


def planner(counts: Any, planned: list[Any]) -> Any:
    """(bin, records) at each time, all on one worker; updates, each LATER times after the load that caused it."""

    def make(context: Any) -> Any:
        due = context.notificator()
        seen: dict[int, Counter[int]] = {}
        placed = [number % PEERS for number in range(BINS)]
        total: Counter[int] = Counter()

        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                if message.time not in seen:
                    seen[message.time] = Counter()
                    due.notify_at(message.retain())
                for number, records in batch:
                    seen[message.time][number] += records
            for capability in due:
                total.update(seen.pop(capability.time))
                if capability.time in PLANNED_AT:
                    moves = balance(total, placed)
                    planned.append((capability.time, moves))
                    output.give(capability, moves, at=capability.time + LATER)
                    total.clear()

        return step

    return counts.unary("planner", make, pact=ToWorker(0), frontier=True)


def count(kind: str, configuration: Any, stream: Any, applied: list[Any]) -> Any:
    """Counts by key; notes what is applied here. `stream` has lists of keys."""
    if kind == "rows":

        def fold(time: int, keys: list[int], state: dict[int, int], notificator: Any) -> Any:
            for key in keys:
                applied.append((time, key))
                state[key] = state.get(key, 0) + 1
                yield key, state[key]

        return megaphone.unary(configuration, stream, key=lambda key: key, fold=fold, bins=BINS)

    @megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"}, compiled=False)
    def machine(time, key, state):
        applied.append((int(time), int(key)))
        state.count += 1
        return key, state.count

    def step(input: Any, output: Any) -> None:
        for message, keys in input:
            output.give(message, Columns({"key": np.array(keys, np.int64)}))

    columns = stream.unary("as columns", lambda _: step)
    return megaphone.state_machine(configuration, columns, key="key", fold=machine, bins=BINS)


async def main(worker: dataflow.Worker, kind: str) -> Any:
    """What was applied here, what came out, the plans, and the configuration at the end."""
    applied: list[Any] = []
    planned: list[Any] = []
    out: list[Any] = []
    with worker.dataflow() as scope:
        data, stream = scope.input("data")
        load = stream.map(lambda key: (bin_of(key, shift_of(BINS)), 1))
        counts = count(kind, planner(load, planned), stream, applied)
        probe = counts.inspect_batch(lambda t, rows: out.extend(map(tuple, rows))).probe()
    for time in range(TIMES):
        data.send(keys_at(worker.index, time))
        data.advance_to(time + 1)
        await probe.wait_passed(time - 2)
    await probe.wait_passed(TIMES - 1)
    return applied, out, planned, counts.handle.configuration.tolist()


def imbalance(results: list[Any], times: range) -> float:
    """The busiest worker's load over the mean, within some times."""
    loads = [sum(time in times for time, _ in applied) for applied, *_ in results]
    return max(loads) * PEERS / sum(loads)


@pytest.mark.parametrize("kind", ["rows", "columns"])
@pytest.mark.parametrize("seed", range(3))
def test_an_operator_that_measures_load_balances_it(kind: str, seed: int) -> None:
    results = simulate(main, kind, workers=PEERS, seed=seed)
    sent = Counter((time, key) for w in range(PEERS) for time in range(TIMES) for key in keys_at(w, time))
    assert sum((Counter(applied) for applied, *_ in results), Counter()) == sent
    totals = Counter(key for _, key in sent.elements())
    rows = Counter(row for _, out, *_ in results for row in out)
    assert rows == Counter((key, n) for key, total in totals.items() for n in range(1, total + 1))

    plans = results[0][2]
    assert [time for time, _ in plans] == list(PLANNED_AT) and len(plans[0][1]) > 2
    assert not results[1][2] and not results[2][2], "one worker plans"
    first = PLANNED_AT[0] + LATER
    assert imbalance(results, range(first)) > 2
    assert imbalance(results, range(first, TIMES)) < 1.3
    place = [number % PEERS for number in range(BINS)]
    for _, moves in plans:
        for move in moves:
            place[move.bin] = move.worker
    assert [configuration for *_, configuration in results] == [place] * PEERS
    check_places(results, plans)


def check_places(results: list[Any], plans: list[Any]) -> None:
    """Every update at the worker that the plans in force named."""
    for worker, (applied, *_) in enumerate(results):
        for time, key in applied:
            number = bin_of(key, shift_of(BINS))
            said = [m.worker for at, moves in plans if at + LATER <= time for m in moves if m.bin == number]
            assert worker == (said[-1] if said else number % PEERS)


def test_an_update_that_makes_no_sense_is_raised_in_the_operator_that_gives_it() -> None:
    """Where it can be caught: the stream goes on, and the configuration stays."""
    caught: list[str] = []

    async def main(worker: dataflow.Worker, careful: bool) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                for number in batch:
                    try:
                        output.give(message, [megaphone.Move(number, 0)])
                    except megaphone.ControlError as error:
                        if not careful:
                            raise
                        caught.append(str(error))

        with worker.dataflow() as scope:
            data, stream = scope.input("data")
            counts = count("rows", stream.unary("planner", lambda _: step), stream, [])
            probe = counts.probe()
        data.send([BINS, 1, -1] if worker.index == 0 else [])
        data.advance_to(1)
        await probe.wait_passed(0)
        return counts.handle.configuration.tolist()

    assert simulate(main, True, workers=2) == [[0, 0, *([0, 1] * 7)]] * 2
    assert caught == [f"there is no bin {bad}: there are {BINS}, from 0 to {BINS - 1}" for bad in (BINS, -1)]
    with pytest.raises(megaphone.ControlError, match="no bin") as failure:
        simulate(main, False, workers=2)
    assert any("planner" in note for note in failure.value.__notes__)
