"""Savepoints on demand, simulated: what they hold, when they are refused, that none is left behind."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

import megaphone
from dataflow import Recovery, Worker, sinks
from dataflow.operators.sinks import SinkError
from dataflow.recovery import savepoints
from dataflow.recovery.announcing import Announcer
from dataflow.recovery.catalogue import list_savepoints, read_savepoint
from dataflow.recovery.faulty import Faulty
from dataflow.recovery.keeper import Keeper
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.parts import SnapshotOutcome
from dataflow.recovery.savepoints import Saved, SaveFailed, Wish, Wishes, save_run
from dataflow.recovery.storage import Blob, NotThere, StorageError
from dataflow.run.worker import pump_of
from dataflow.testing import simulate

EPOCHS = 8
KEYS = 5
Act = Callable[[Worker, int], Awaitable[object]]
fresh = itertools.count()


def count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]


def fed(worker: int, time: int) -> list[tuple[int, int]]:
    """What a worker sends at a time: the same in every run, whatever the number of workers that there are."""
    chance = random.Random(f"{worker} {time}")
    return [(chance.randrange(KEYS), 1) for _ in range(3)]


def oracle(workers: int, time: int) -> dict[int, int]:
    """What was counted before a time."""
    return dict(
        Counter(key for worker in range(workers) for at in range(min(time, EPOCHS)) for key, _ in fed(worker, at))
    )


async def counting(worker: Worker, act: Act) -> list[object]:
    """Counts, and does something on worker 0 at each time, beside the stream."""
    with worker.dataflow("counts") as scope:
        handle, stream = scope.input()
        totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=4, name="totals")
        probe = totals.probe()
    handle.advance_to(worker.resume_at)
    seen: list[object] = []

    async def remember(time: int) -> None:
        seen.append(await act(worker, time))

    async with trio.open_nursery() as nursery:
        for time in range(worker.resume_at, EPOCHS):
            if worker.index == 0:
                nursery.start_soon(remember, time)
            handle.send(fed(worker.index, time))
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            await trio.sleep(0.5 + worker.index / 1000)  # of a clock that jumps; no two wake at once
        handle.close()
    return seen


async def asking(worker: Worker, expected: list[int]) -> dict[int, int]:
    """The changed program: another operator is there, and each key is asked for its total."""
    found: dict[int, int] = {}
    with worker.dataflow("counts") as scope:
        handle, stream = scope.input()
        totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=4, name="totals")
        doubled = totals.map(lambda pair: (pair[0], 2 * pair[1]))
        megaphone.state_machine(scope.control(name="control of more"), doubled, fold=count, bins=2, name="more")
        totals.inspect(lambda time, pair: found.update([pair]))
    expected.append(worker.resume_at)
    handle.advance_to(worker.resume_at)
    if worker.index == 0:
        handle.send([(key, 0) for key in range(KEYS)])
    return found


def at(moment: int, name: str = "now") -> Act:
    """Saves once, when that time comes."""

    async def act(worker: Worker, time: int) -> list[Saved] | None:
        return await save_run(pump_of(worker), name) if time == moment else None

    return act


def saved_by(results: list[list[object]]) -> list[Saved]:
    return [saved for each in results[0] if isinstance(each, list) for saved in each]


def check(storage: MemoryStorage, workers: int, seed: int, name: str = "now") -> None:
    """A changed program, on another number of workers and in a place of its own, has what was counted."""
    place = f"savepoints-{next(fresh)}"
    MemoryStorage.named(place).blobs.update(storage.blobs)
    times: list[int] = []
    policy = Recovery(f"memory://{place}-2", start_from=f"memory://{place}#{name}")
    results = simulate(asking, times, workers=workers % 3 + 1, seed=seed, recovery=policy)
    found = dict(pair for each in results for pair in each.items())
    assert found == dict.fromkeys(range(KEYS), 0) | oracle(workers, times[0])


@pytest.mark.parametrize("seed", range(12))
def test_a_savepoint_holds_what_came_before_its_time(seed: int) -> None:
    chance = random.Random(seed)
    workers, moment = chance.randint(1, 3), chance.randrange(EPOCHS)
    storage = Faulty(seed, delay=chance.choice([0.0, 0.1, 3.0]))
    every = chance.choice([0.05, 1.0, 1000.0])
    results = simulate(counting, at(moment), workers=workers, seed=seed, recovery=Recovery(storage, every=every))
    (saved,) = saved_by(results)
    savepoint = trio.run(read_savepoint, storage, "counts", "now")
    assert (saved.number, saved.time) == (savepoint.number, savepoint.time)
    assert moment <= saved.time <= EPOCHS + 1  # the final cut is after all times
    check(storage, workers, seed)


@pytest.mark.parametrize("seed", range(4))
def test_several_at_once_and_at_the_end(seed: int) -> None:
    async def act(worker: Worker, time: int) -> list[Saved]:
        return await save_run(pump_of(worker), f"at {time}")

    storage = Faulty(seed, delay=0.5)
    results = simulate(counting, act, workers=2, seed=seed, recovery=Recovery(storage, every=1000.0))
    assert len(saved_by(results)) == EPOCHS
    assert sorted(trio.run(list_savepoints, storage, "counts")) == sorted(f"at {time}" for time in range(EPOCHS))
    check(storage, 2, seed, f"at {seed % EPOCHS}")


def test_a_run_that_has_done_nothing_yet_keeps_where_it_began() -> None:
    async def again(worker: Worker) -> list[object]:
        with worker.dataflow("counts") as scope:
            handle, stream = scope.input()
            megaphone.state_machine(scope.control(), stream, fold=count, bins=4, name="totals")
        handle.advance_to(worker.resume_at)
        return [await save_run(pump_of(worker), "now") if worker.index == 0 else None]

    storage = MemoryStorage()
    simulate(counting, at(-1), workers=2, recovery=Recovery(storage, every=1000.0))
    (saved,) = saved_by(simulate(again, workers=2, recovery=Recovery(storage, every=1000.0)))
    assert (saved.number, saved.time) == (3, EPOCHS + 1)  # a claim, the final snapshot, the second run's claim
    check(storage, 2, 0)


@pytest.mark.parametrize("seed", range(12))
def test_a_storage_that_fails_gives_a_savepoint_or_an_error(seed: int) -> None:
    storage = Faulty(seed, delay=0.3)

    async def act(worker: Worker, time: int) -> list[Saved] | None:
        if time != 4:
            return None
        storage.failures = 0.5
        try:
            return await save_run(pump_of(worker), "now")
        except Exception as error:  # an error of the storage itself, or of the snapshot
            return [Saved(type(error).__name__, 0, 0)]
        finally:
            storage.failures = 0.0

    results = simulate(counting, act, workers=2, seed=seed, recovery=Recovery(storage, every=1000.0))
    (saved,) = saved_by(results)
    if saved.number:
        check(storage, 2, seed)
    else:
        assert saved.dataflow in ("SaveFailed", "StorageError")


def test_a_name_that_is_taken_is_refused_and_the_first_stays() -> None:
    async def act(worker: Worker, time: int) -> object:
        if time not in (2, 6):
            return None
        try:
            return await save_run(pump_of(worker), "now")
        except SaveFailed as error:
            return str(error)

    storage = MemoryStorage("here")
    (results, _) = simulate(counting, act, workers=2, recovery=Recovery(storage, every=1000.0))
    (refused,) = [each for each in results if isinstance(each, str)]
    assert refused.startswith("there is a savepoint 'now' of 'counts' in here already: choose another name, or delete")
    (saved,) = saved_by([results])
    assert trio.run(read_savepoint, storage, "counts", "now").number == saved.number


class Full(MemoryStorage):
    """A disk on which there is no room for names that begin like that."""

    refused = "?"

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        if name.startswith(self.refused):
            raise StorageError("the disk is full")
        await super().put(name, data, if_absent=if_absent)


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ("counts/manifest-", "the snapshot was given up: the disk is full"),
        ("counts/part-", "the snapshot was given up: worker 0: the disk is full; worker 1: the disk is full"),
        ("counts/savepoint-", r"snapshot \d+ could not be kept as 'now': the disk is full"),
    ],
)
def test_a_full_disk_is_told_and_the_stream_goes_on(refused: str, expected: str) -> None:
    storage = Full()

    async def act(worker: Worker, time: int) -> object:
        if time == 2:
            storage.refused = refused
            with pytest.raises(SaveFailed, match=f"^{expected}$"):
                await save_run(pump_of(worker), "now")
            storage.refused = "?"
            return await save_run(pump_of(worker), "now")
        return None

    results = simulate(counting, act, workers=2, recovery=Recovery(storage, every=1000.0))
    assert len(saved_by(results)) == 1
    check(storage, 2, 0)


def test_a_run_without_recovery_says_so() -> None:
    async def main(worker: Worker) -> None:
        with pytest.raises(SaveFailed, match="keeps no snapshots: say where, with --recovery"):
            await save_run(pump_of(worker), "now")

    simulate(main, workers=1)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_withdrawn_leaves_nothing(seed: int) -> None:
    chance = random.Random(seed)
    storage = Faulty(seed, delay=0.5)

    async def act(worker: Worker, time: int) -> object:
        if time != 3:
            return None
        with trio.move_on_after(chance.uniform(1.0, 3.5)) as scope:
            await save_run(pump_of(worker), "now")
        return scope.cancelled_caught

    results = simulate(counting, act, workers=2, seed=seed, recovery=Recovery(storage, every=1000.0))
    there = "now" in trio.run(list_savepoints, storage, "counts")
    assert there is not any(results[0])


async def two_dataflows(worker: Worker, act: Act) -> list[object]:
    """One that is complete before the other is saved."""
    with worker.dataflow("first") as scope:
        handle, stream = scope.input()
        probe = megaphone.state_machine(scope.control(), stream, fold=count, bins=4, name="totals").probe()
    handle.send([(1, 1)])
    handle.close()
    await probe.wait_done()
    while any(dataflow.name == "first" for dataflow in pump_of(worker).dataflows):
        await worker.step()
    return await counting(worker, act)


def test_all_dataflows_are_saved_or_none() -> None:
    storage = MemoryStorage()
    results = simulate(two_dataflows, at(4), workers=2, recovery=Recovery(storage, every=1000.0))
    assert [saved.dataflow for saved in saved_by(results)] == ["counts", "first"]

    async def taken(worker: Worker, time: int) -> object:
        if time != 4:
            return None
        await storage.put("first/savepoint-now", b"of somebody else")
        with pytest.raises(SaveFailed, match="a savepoint 'now' of 'first'"):
            await save_run(pump_of(worker), "now")
        return None

    storage.blobs.clear()
    simulate(two_dataflows, taken, workers=2, recovery=Recovery(storage, every=1000.0))
    assert not trio.run(list_savepoints, storage, "counts")


async def writing(worker: Worker, act: Act, folder: Path) -> None:
    """What each worker is fed goes to files, by the one that has it."""
    with worker.dataflow("files") as scope:
        handle, stream = scope.input()
        probe = stream.probe()
        stream.sink(sinks.json_lines(folder, columns=("key", "one")), name="out")
    handle.advance_to(worker.resume_at)
    async with trio.open_nursery() as nursery:
        for time in range(worker.resume_at, EPOCHS):
            if worker.index == 0:
                nursery.start_soon(act, worker, time)
            handle.send(fed(worker.index, time))
            handle.advance_to(time + 1)
            await probe.wait_passed(time)
            await trio.sleep(0.5 + worker.index / 1000)


def written(folder: Path) -> list[tuple[int, int]]:
    lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted((line["key"], line["one"]) for line in lines)


@pytest.mark.parametrize("seed", range(4))
def test_output_before_a_savepoint_is_visible_and_stays_with_its_run(seed: int, tmp_path: Path) -> None:
    place, folders = f"savepoints-{next(fresh)}", [tmp_path / "old", tmp_path / "new"]
    found: list[tuple[int, list[tuple[int, int]]]] = []

    async def act(worker: Worker, time: int) -> None:
        if time == 3:
            (saved,) = await save_run(pump_of(worker), "now")
            found.append((saved.time, written(folders[0])))

    policy = Recovery(f"memory://{place}", every=1000.0)
    simulate(writing, act, folders[0], workers=3, seed=seed, recovery=policy)
    (time, visible), *_ = found
    expected = [record for at in range(time) for worker in range(3) for record in fed(worker, at)]
    assert visible == sorted(expected), "not all of it is visible when save returns"
    policy = Recovery(f"memory://{place}-2", start_from=f"memory://{place}#now", every=1000.0)
    simulate(writing, at(-1), folders[1], workers=3, seed=seed, recovery=policy)
    rest = [record for at in range(time, EPOCHS) for worker in range(3) for record in fed(worker, at)]
    assert written(folders[1]) == sorted(rest)


# Mutants: each breaks one rule, and a test above must notice.


MUTANTS = ["named when it is announced", "never taken back", "the one before", "with its output", "told by worker 0"]


@pytest.fixture(params=MUTANTS)
def mutant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "named when it is announced":
        promise = Wishes.promise

        def early(self: Wishes, cut: int) -> None:
            promise(self, cut)
            for wish in self._promised[cut]:
                wish._saved = Saved("counts", 1, cut)
                wish._done.set()

        monkeypatch.setattr(Wishes, "promise", early)
    elif request.param == "never taken back":

        async def leave(self: Wish) -> None:
            """Forgets to delete it."""

        monkeypatch.setattr(Wish, "_take_back", leave)
    elif request.param == "with its output":
        monkeypatch.setattr(savepoints, "_without_output", lambda manifest: manifest)
    elif request.param == "told by worker 0":  # and not when all are done

        async def grant(self: Keeper, outcome: SnapshotOutcome) -> None:
            self._wishes.concluded(outcome)

        monkeypatch.setattr(Keeper, "_grant", grant)
    else:  # the last snapshot will do, also if something was done since

        async def run_savepoints(self: Announcer) -> None:
            while True:
                await self._wishes.news.wait()
                if self._wishes.waiting and self._vault.manifest is not None:
                    await self._wishes.keep_last(self._vault.manifest)

        monkeypatch.setattr(Announcer, "run_savepoints", run_savepoints)
    return str(request.param)


def test_broken_rules_are_noticed(mutant: str, tmp_path: Path) -> None:
    def run_all() -> None:
        for seed in range(12):
            if mutant == "never taken back":
                test_what_is_withdrawn_leaves_nothing(seed)
            elif mutant in MUTANTS[3:]:
                test_output_before_a_savepoint_is_visible_and_stays_with_its_run(seed, tmp_path / str(seed))
            else:
                test_a_savepoint_holds_what_came_before_its_time(seed)

    with pytest.raises((AssertionError, NotThere, SinkError)):
        run_all()
