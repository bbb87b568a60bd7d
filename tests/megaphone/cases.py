"""Random migrations of random streams, and what must come of them: the properties of section 3.2.

- Correctness: what comes out is what one worker, applying everything in the order of time, would have put out.
- Migration: every update to a key at a time is made at the worker that the configuration names for that time.
- Completion: when the inputs are past a time, so is the output, with nothing further.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of

Inputs = dict[tuple[int, int], list[Any]]  # (worker, time): records, or updates
END = 1 << 30  # a time after all others


@dataclass(frozen=True)
class Agreed:
    """What all workers know of an operator's configuration."""

    pinned: dict[Any, int]
    bins: list[str]

    @classmethod
    def of(cls, handle: Any) -> Agreed:
        return cls(handle.pinned, handle.tree.names)


def post_dated(time: int, value: int) -> int | None:
    """When a record comes back, if it does."""
    return time + value % 4 + 1 if value % 3 == 0 and value > 0 else None


async def main(
    worker: dataflow.Worker, records: Inputs, updates: Inputs, times: int, bins: int, ahead: int, by_key: bool = False
) -> Any:
    """Counts by key, with records that come back later. Returns what came out here, what was applied here and, once
    everything has come back, what is left here: in bins, and apart."""
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
        counts = megaphone.unary(configuration, stream, key=lambda r: r[0], fold=fold, bins=bins, by_key=by_key)
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
    for handle in (control, data):
        handle.close()
    await probe.wait_done()
    store = counts.handle.store.held
    home = [entry for number in store.numbers for entry in store.state(number).items()]
    return out, applied, home, [*store.apart.items()], Agreed.of(counts.handle)


def oracle(records: Inputs) -> tuple[list[Any], list[Any]]:
    """The same on one worker, in the order of time: what comes out, and what is left."""
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
    return out, [*state.items()]


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


def pinned(updates: Inputs, key: Any, time: int) -> int | None:
    """Where a key is pinned at a time: what was last said about it; the greatest worker, and any before none."""
    place = None
    for at in sorted({at for _, at in updates if at <= time}):
        said = [update for (_, t), batch in updates.items() if t == at for update in batch]
        here = [update for update in said if isinstance(update, megaphone.Pin | megaphone.Unpin) and update.key == key]
        workers = [update.worker for update in here if isinstance(update, megaphone.Pin)]
        if here:
            place = max(workers, default=None)
    return place


def place(updates: Inputs, bins: int, peers: int, key: Any, time: int, dense: bool = False) -> tuple[int, bool]:
    """At which worker a key is at a time, and whether apart from its bin."""
    pin = pinned(updates, key, time)
    number = key & (bins - 1) if dense else bin_of(key, shift_of(bins))
    return (owner(updates, bins, peers, number, time), False) if pin is None else (pin, True)


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


def with_pins(updates: Inputs, keys: Sequence[Any], times: int, peers: int, chance: random.Random) -> Inputs:
    """The same updates with pins among them, many of them at the times of moves."""
    result = {at: list(batch) for at, batch in updates.items()}
    for time in range(times):
        for worker in range(peers):
            if chance.random() < 0.35:
                for key in chance.choices(keys, k=chance.randint(1, 3)):
                    pin = chance.random() < 0.65
                    update = megaphone.Pin(key, chance.randrange(peers)) if pin else megaphone.Unpin(key)
                    result.setdefault((worker, time), []).append(update)
    return result


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
    out, left = oracle(records)
    check_places(results, out, left, lambda key, time: place(updates, bins, peers, key, time))


def check_places(
    results: list[Any], expected: list[Any], left: list[Any], where: Callable[[Any, int], tuple[int, bool]]
) -> None:
    """The properties, of (what came out, what was applied, what is left in bins, and apart, what is pinned) by worker;
    `where`: at which worker a key is at a time, and whether apart."""
    assert Counter(entry for out, *_ in results for entry in out) == Counter(expected), "Correctness: what came out"
    rows = Counter(row for *_, home, apart, _ in results for row in (*home, *apart))
    assert rows == Counter(left), "Correctness: the state that is left"
    for worker, (_, applied, home, apart, pins) in enumerate(results):
        for time, key in applied:
            at, _ = where(key, time)
            assert worker == at, f"Migration: {key!r} at {time} was applied at {worker}, not at {at}"
        for rows_here, is_apart in ((home, False), (apart, True)):
            for key, _ in rows_here:
                assert where(key, END) == (worker, is_apart), f"Migration: {key!r} was left at {worker}"
        assert pins == results[0][-1], "all agree on which bins there are, and what is pinned"
