"""Where lives begin: what is chosen and claimed, crashes in simulations, snapshots that turn out to be damaged."""

from __future__ import annotations

import re

import pytest
import trio

import dataflow
import megaphone
from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.manifest import SnapshotDamaged
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.storage import StorageError
from dataflow.testing import Crashed, simulate

EPOCHS = 30


def count(word: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


async def main(worker: dataflow.Worker, seen: dict[int, int], pause: float = 1.0) -> int:
    """Counts; the last totals that come out are in `seen`."""
    with worker.dataflow("counts") as scope:
        control, updates = scope.input()
        words, stream = scope.input()
        totals = megaphone.state_machine(updates, stream, fold=count, bins=8, name="totals")
        probe = totals.inspect(lambda time, total: seen.update([total])).probe()
    start = worker.resume_at
    for time in range(start, EPOCHS):
        control.advance_to(time)
        words.advance_to(time)
        words.send([(word, word * time) for word in range(20)])
        await probe.wait_passed(time - 1)
        await trio.sleep(pause)
    return start


def expected(workers: int) -> dict[int, int]:
    return {word: workers * sum(word * time for time in range(EPOCHS)) for word in range(20)}


def crashed(storage: MemoryStorage, seed: int, after: int, workers: int = 2) -> None:
    with pytest.raises(Crashed, match=f"after {after} turns"):
        simulate(
            main, {}, workers=workers, seed=seed, recovery=dataflow.Recovery(storage, every=4.0), crash_after=after
        )


def test_a_crash_loses_nothing_but_what_is_done_again() -> None:
    for seed in range(5):
        storage = MemoryStorage()
        for after in (0, 1500, 700):
            crashed(storage, seed, after)
        seen: dict[int, int] = {}
        starts = simulate(main, seen, workers=2, seed=seed, recovery=dataflow.Recovery(storage))
        assert seen == expected(2)
        assert 0 < starts[0] < EPOCHS


def test_a_main_that_begins_at_the_beginning_again_is_told_where_to_go_on() -> None:
    storage = MemoryStorage()
    crashed(storage, 0, 400, workers=1)

    async def forgets(worker: dataflow.Worker) -> None:
        with worker.dataflow("counts") as scope:
            control, updates = scope.input()
            words, stream = scope.input("words")
            megaphone.state_machine(updates, stream, fold=count, bins=8, name="totals")
        assert worker.resume_at > 1
        control.advance_to(worker.resume_at)
        with pytest.raises(dataflow.TimeError, match=r"goes on from a snapshot, at .*worker\.resume_at"):
            words.advance_to(1)
        words.advance_to(worker.resume_at + 2)
        with pytest.raises(dataflow.TimeError, match=rf"cannot go back to {worker.resume_at + 1}$"):
            words.advance_to(worker.resume_at + 1)

    simulate(forgets, workers=1, seed=0, recovery=dataflow.Recovery(storage))


def test_a_crash_replays_exactly() -> None:
    blobs = []
    for _ in range(2):
        storage = MemoryStorage()
        crashed(storage, 3, 1200)
        blobs.append(set(storage.blobs))
    assert blobs[0] == blobs[1]


def test_what_runs_after_the_crash_has_no_effect() -> None:
    storage = MemoryStorage()

    async def writes_at_the_end(worker: dataflow.Worker) -> None:
        recovery = worker._pump.recovery
        assert recovery is not None
        try:
            await main(worker, {})
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(1):
                where = recovery.recovery.where
                assert not isinstance(where, str)
                await where.put("after/death", b"")  # type: ignore[union-attr]

    with pytest.raises(Crashed):
        simulate(writes_at_the_end, workers=2, recovery=dataflow.Recovery(storage, every=4.0), crash_after=900)
    assert "after/death" not in storage.blobs


# --------------------------------------------------------------------------------------------------- damaged snapshots


def damage(storage: MemoryStorage, how: str) -> None:
    """Does something to the file of state that was written last."""
    parts = [name for name in storage.blobs if "/manifest-" not in name]
    assert len(parts) >= 2, sorted(storage.blobs)
    name = parts[-1]  # blobs are in the order of their puts
    whole = storage.blobs.pop(name)
    if how != "lose":
        storage.blobs[name] = whole[:-1] + b"\0" if how == "alter" else whole[: len(whole) // 2]


def with_snapshots() -> MemoryStorage:
    storage = MemoryStorage()
    crashed(storage, 1, 1800)
    return storage


def test_the_snapshot_before_a_damaged_one_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    for run, how in (("simulate", "alter"), ("execute", "alter"), ("simulate", "tear"), ("simulate", "lose")):
        storage = with_snapshots()
        whole = simulate(main, {}, workers=2, recovery=dataflow.Recovery(copy_of(storage)))[0]
        damage(storage, how)
        seen: dict[int, int] = {}
        if run == "simulate":
            starts = simulate(main, seen, workers=2, recovery=dataflow.Recovery(storage))
        else:
            starts = dataflow.execute(
                main, seen, 0.0, workers=2, in_process=True, recovery=dataflow.Recovery(storage, restarts=0)
            )
            (line,) = capsys.readouterr().err.splitlines()
            assert re.search(r": back to the snapshot before, from snapshot \d+ at time \d+", line), line
        assert seen == expected(2)
        assert starts[0] < whole


def test_none_is_left() -> None:
    storage = with_snapshots()
    for name in list(storage.blobs):
        storage.blobs[name] = b"nonsense"
    for run in (
        lambda: simulate(main, {}, workers=2, recovery=dataflow.Recovery(storage)),
        lambda: dataflow.execute(main, {}, recovery=dataflow.Recovery(storage)),
    ):
        with pytest.raises(SnapshotDamaged, match="can be used"):
            run()


def copy_of(storage: MemoryStorage) -> MemoryStorage:
    other = MemoryStorage()
    other.blobs.update(storage.blobs)
    return other


# ----------------------------------------------------------------------------------------------- choosing, life by life


class Away(MemoryStorage):
    """Cannot be reached, so many times, by whoever asks for everything in it."""

    def __init__(self, storage: MemoryStorage, times: int) -> None:
        super().__init__()
        self.blobs = storage.blobs
        self.times = times

    async def names(self, prefix: str) -> list[str]:
        if self.times and not prefix:
            self.times -= 1
            raise StorageError("away")
        return await super().names(prefix)


def test_a_storage_that_is_away_at_first_is_an_error_at_once() -> None:
    with pytest.raises(StorageError, match="away"):
        dataflow.execute(main, {}, recovery=dataflow.Recovery(Away(MemoryStorage(), 1)))


def test_a_storage_that_is_away_later_is_one_more_failure(capsys: pytest.CaptureFixture[str]) -> None:
    storage = Away(MemoryStorage(), 0)

    async def fails_once(worker: dataflow.Worker, failed: list[int]) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            stream.probe()
        if not failed:
            failed.append(1)
            storage.times = 1
            raise ValueError("once")

    dataflow.execute(fails_once, [], recovery=dataflow.Recovery(storage))
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("ValueError: once; in main on worker 0 of 1: restart 1 of 5")
    assert second.endswith("away: restart 2 of 5, from the beginning")


def test_fresh_is_for_the_first_life_alone() -> None:
    storage = with_snapshots()

    async def run() -> list[str]:
        beginnings = Beginnings(dataflow.Recovery(storage, fresh=True), 2, print)
        titles = [(await beginnings.choose(older=False)).title]
        titles.append((await beginnings.choose(older=False)).title)
        return titles

    assert trio.run(run) == ["the beginning", "the beginning"]
    incarnations = []

    async def later() -> None:
        beginnings = Beginnings(dataflow.Recovery(storage), 2, print)
        for _ in range(2):
            incarnations.append((await beginnings.choose(older=False)).resume.incarnation)

    trio.run(later)
    assert incarnations[0] < incarnations[1]
