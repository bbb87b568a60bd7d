"""Journals: what was appended is there, in order, whatever happened to the process; and sources that stand behind
one."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

import dataflow
from dataflow import sinks, sources
from dataflow.errors import ConstructionError
from dataflow.recovery.memory import MemoryStorage
from dataflow.sources.journals import Journal
from tests.engine.harness import failsafe


@pytest.mark.parametrize("seed", range(20))
def test_a_journal_against_a_list(seed: int, tmp_path: Path) -> None:
    """Appends, reads from any position, crashes that leave half a record, segments that are deleted: the oracle is a
    list of (position, record)."""
    chance = random.Random(seed)
    segment = chance.choice([1, 50, 1000])
    journal = Journal(tmp_path / "j", segment)
    written: list[tuple[int, bytes]] = []  # (position before, record)
    end, forgotten = 0, 0
    for _ in range(60):
        action = chance.choice("aaarrrcf")
        if action == "a":
            records = [chance.randbytes(chance.randrange(40)) for _ in range(chance.randrange(1, 5))]
            journal.append(records)
            for record in records:
                written.append((end, record))
                end += 8 + len(record)
            assert journal.end == end
        elif action == "c":  # a crash, perhaps in the middle of an append
            journal.close()
            last = max((tmp_path / "j").glob("*.log"), default=None)
            if last is not None and chance.random() < 0.7:
                torn = (20).to_bytes(4, "little") + chance.randbytes(4) + chance.randbytes(chance.choice([3, 20]))
                with open(last, "ab") as file:
                    file.write(torn[: chance.randrange(1, len(torn) + 1)])
            journal = Journal(tmp_path / "j", segment)
            assert journal.end == end
        elif action == "f" and written:
            forgotten = max(forgotten, chance.choice(written)[0])
            journal.forget(forgotten)
        else:
            start = chance.choice([place for place, _ in written if place >= forgotten] + [end])
            most = chance.randrange(1, 10)
            expected = [record for place, record in written if place >= start]
            found, position = [], start
            while len(found) < len(expected):
                position, some = journal.read(position, most)
                assert 0 < len(some) <= most
                found += some
            assert found == expected and position == end
            assert journal.read(end, most) == (end, [])
    journal.close()


def test_one_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 100)
    with pytest.raises(sources.SourceError, match=r"the journal .* is in use"):
        Journal(tmp_path, 100)
    journal.close()
    Journal(tmp_path, 100).close()


class Said(sources.Partitions[Any]):
    """What others say, once: numbers from where the speaker is. It notes what was taken."""

    resumable = False

    def __init__(self, last: int) -> None:
        self.next, self.last = 0, last
        self.taken = 0

    async def partitions(self) -> list[str]:
        return ["a/b"]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Any]:
        assert position is None
        while self.next < self.last:
            batch = list(range(self.next, min(self.next + 3, self.last)))
            self.next += len(batch)  # said, whether or not anybody takes it
            yield None, None, batch
            self.taken = batch[-1] + 1
            await trio.sleep(0.001)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_taken_counts_once_through_failures(seed: int, tmp_path: Path) -> None:
    """A speaker that cannot repeat itself: what it said is lost only if the failure came before it was taken."""
    chance = random.Random(seed)
    said = Said(300)
    trips = {chance.randrange(300) for _ in range(2)}
    seen: list[int] = []

    def trip(number: int) -> int:
        if number in trips:
            trips.discard(number)
            raise RuntimeError("tripped on purpose")
        return number

    async def main(worker: dataflow.Worker) -> None:
        source = sources.journaled(said, tmp_path / "journal", batch=10, most=300)
        with worker.dataflow() as scope:
            numbers = scope.source(source).map(trip)
            numbers.sink(sinks.json_lines(tmp_path / "out", columns=["n"]))

    with failsafe(60):
        recovery = dataflow.Recovery(MemoryStorage(), every=0.005, restarts=10)
        dataflow.execute(main, workers=2, in_process=True, recovery=recovery)
    lines = [line for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    seen = sorted(int(line.split(":")[1].rstrip("}")) for line in lines)
    assert len(seen) == len(set(seen)), "something counts twice"
    lost = set(range(300)) - set(seen)
    assert len(lost) <= 3 * 2, f"at most what was being said at each failure may be lost: {sorted(lost)}"
    kept = sum(path.stat().st_size for path in (tmp_path / "journal").rglob("*.log"))
    assert kept < 300 * 12, "what is in a snapshot is deleted"


def test_without_a_journal(tmp_path: Path) -> None:
    """With recovery a source that cannot go back is refused, unless somebody says that its records may be lost."""

    async def main(worker: dataflow.Worker, source: sources.Partitions[Any]) -> None:
        with worker.dataflow() as scope:
            scope.source(source).sink(sinks.callback(lambda time, batch: seen.extend(batch)))

    seen: list[int] = []
    with pytest.raises(ConstructionError, match=r"cannot be set to where it was.*journaled.*at_most_once"):
        dataflow.execute(main, Said(10), in_process=True, recovery=dataflow.Recovery(MemoryStorage()))
    dataflow.execute(
        main, sources.at_most_once(Said(10)), in_process=True, recovery=dataflow.Recovery(MemoryStorage())
    )
    assert seen == list(range(10))
    for wrap in (sources.at_most_once, lambda source: sources.journaled(source, tmp_path)):
        with pytest.raises(ConstructionError, match="for sources that cannot go back"):
            wrap(sources.lines(tmp_path))


def test_a_journal_that_was_replaced_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        reader: Any = sources.journaled(Said(3), tmp_path).read("a/b", 1000)
        with pytest.raises(sources.SourceError, match="ends at 0, and was read up to 1000: it was replaced"):
            await anext(reader)

    trio.run(main)
