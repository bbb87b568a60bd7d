"""Random migrations of random streams, and what must come of them: the properties of section 3.2.

- Correctness: what comes out is what one worker, applying everything in the order of time, would have put out.
- Migration: every update to a key at a time is made at the worker that the configuration names for that time.
- Completion: when the inputs are past a time, so is the output, with nothing further.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.hashing import bin_of, shift_of

Inputs = dict[tuple[int, int], list[Any]]  # (worker, time): records, or updates


def post_dated(time: int, value: int) -> int | None:
    """When a record comes back, if it does."""
    return time + value % 4 + 1 if value % 3 == 0 and value > 0 else None


async def main(worker: dataflow.Worker, records: Inputs, updates: Inputs, times: int, bins: int, ahead: int) -> Any:
    """Counts by key, with records that come back later. Returns what came out here, and what was applied here."""
    out: list[Any] = []
    applied: list[Any] = []

    def fold(time: int, batch: list[Any], state: dict[Any, int], notificator: Any) -> Any:
        for key, value in batch:
            applied.append((time, key))
            state[key] = state.get(key, 0) + value
            later = post_dated(time, value)
            if later is not None:
                notificator.notify_at(later, (key, -1))
        yield from ((key, state[key]) for key in dict(batch))

    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda r: r[0], fold=fold, bins=bins)
        probe = counts.inspect(lambda t, r: out.append((t, r))).probe()
    for time in range(times):
        for (index, at), batch in updates.items():
            if index == worker.index and at >= time and (at == time or (at + index) % 3 == 0) and batch:
                control.send(batch, at=at)  # some are given ahead
                updates = {**updates, (index, at): []}
        if (worker.index, time) in records:
            data.send(records[worker.index, time])
        control.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time - ahead)
    await probe.wait_passed(times - 1)  # Completion
    return out, applied


def oracle(records: Inputs) -> list[Any]:
    """The same on one worker, in the order of time."""
    todo: dict[int, list[Any]] = defaultdict(list)
    for (_, time), batch in records.items():
        todo[time] += batch
    state: dict[Any, int] = {}
    out = []
    while todo:
        time = min(todo)
        batch = todo.pop(time)
        for key, value in batch:
            state[key] = state.get(key, 0) + value
            later = post_dated(time, value)
            if later is not None:
                todo[later].append((key, -1))
        out += [(time, (key, state[key])) for key in {key for key, _ in batch}]
    return out


def owner(updates: Inputs, bins: int, peers: int, number: int, time: int) -> int:
    """Where a bin is at a time: the last time at which anything was said about it, and there the greatest worker."""
    best = (-1, number % peers)
    for at in sorted({at for _, at in updates if at <= time}):
        said = [update for (_, t), batch in updates.items() if t == at for update in batch]
        moves = [update.worker for update in said if isinstance(update, megaphone.Move) and update.bin == number]
        maps = [update.workers[number] for update in said if isinstance(update, megaphone.Assign)]
        if moves or maps:
            best = (at, max(moves or maps))
    return best[1]


def random_updates(chance: random.Random, times: int, bins: int, peers: int) -> Inputs:
    updates: Inputs = defaultdict(list)
    for time in range(times):
        for worker in range(peers):
            if chance.random() < 0.4:
                count = chance.randint(1, 4)
                moves = [megaphone.Move(chance.randrange(bins), chance.randrange(peers)) for _ in range(count)]
                updates[worker, time] += moves
            if chance.random() < 0.1:
                updates[worker, time].append(megaphone.Assign(tuple(chance.randrange(peers) for _ in range(bins))))
    return dict(updates)


def run_case(seed: int) -> None:
    """One random case under a random schedule, against all three properties."""
    chance = random.Random(seed)
    peers = chance.randint(1, 4)
    records, updates, times, bins = random_inputs(chance, peers)
    debug = chance.random() < 0.2
    ahead = chance.randint(0, 3)
    results = simulate(main, records, updates, times, bins, ahead, workers=peers, seed=seed, debug=debug)
    check(results, records, updates, bins, peers)


def run_on_processes(seed: int, peers: int) -> None:
    """One random case on real processes, whose schedule is the system's."""
    records, updates, times, bins = random_inputs(random.Random(seed), peers)
    results = dataflow.execute(main, records, updates, times, bins, seed % 3, workers=peers)
    check(results, records, updates, bins, peers)


def random_inputs(chance: random.Random, peers: int) -> tuple[Inputs, Inputs, int, int]:
    """Records, updates, how many times and how many bins."""
    bins, times = 1 << chance.randint(0, 4), chance.randint(1, 8)
    keys = [chance.choice([n, f"key {n}"]) for n in range(chance.randint(1, 12))]
    records = {
        (worker, time): [(chance.choice(keys), chance.randint(-3, 9)) for _ in range(chance.randint(1, 6))]
        for worker in range(peers)
        for time in range(times)
        if chance.random() < 0.7
    }
    return records, random_updates(chance, times, bins, peers), times, bins


def check(results: list[Any], records: Inputs, updates: Inputs, bins: int, peers: int) -> None:
    """Correctness and Migration (that the run ended at all is Completion)."""
    out = [entry for part, _ in results for entry in part]
    assert Counter(out) == Counter(oracle(records)), "Correctness"
    for worker, (_, applied) in enumerate(results):
        for time, key in applied:
            expected = owner(updates, bins, peers, bin_of(key, shift_of(bins)), time)
            assert worker == expected, f"Migration: {key!r} at {time} was applied at {worker}, not at {expected}"
