"""The operator behind a sink object: complete times in order, commits of its own, and exactly once through crashes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

import dataflow
from dataflow import sinks, sources
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.operators import committed
from dataflow.sinks import databases, folders
from dataflow.state import native
from tests.connectors.cases import WORDS, count, crash_until_done, right_rows
from tests.connectors.lives import Lives
from tests.connectors.places import JsonLines, KeyedPostgres, KeyedSqlite, Parquet, Shown
from tests.engine.harness import Run, bag, failsafe, notes

RUNS = [Run(1), Run(3), *(Run(workers, seed=seed) for workers in (1, 2, 3) for seed in range(3))]


class Noted(sinks.Sink):
    """Writes down what it is asked to do."""

    def __init__(self, every: float = 0.0, wait: float = 0.0) -> None:
        self.every = every
        self.wait = wait
        self.said: list[tuple[Any, ...]] = []

    def open(self, place: sinks.Place) -> sinks.Writer:
        return NotedWriter(self, place.worker)


class NotedWriter(sinks.Writer):
    def __init__(self, sink: Noted, worker: int) -> None:
        self.sink, self.worker = sink, worker
        self.written: list[Any] = []

    async def write(self, time: int, batch: Any) -> None:
        await trio.sleep(self.sink.wait)
        self.sink.said.append(("write", self.worker, time, sorted(batch)))
        self.written += batch

    async def prepare(self, time: int) -> object:
        self.sink.said.append(("prepare", self.worker, time))
        return [self.worker, self.written] if self.written else None

    async def commit(self, token: Any) -> None:
        self.sink.said.append(("commit", self.worker, *token[1]))
        self.written = self.written[len(token[1]) :]

    async def recover(self, tokens: Sequence[Any]) -> None:
        raise AssertionError("there is nothing to recover without snapshots")

    def close(self) -> None:
        self.sink.said.append(("close", self.worker))


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_whole_times_in_order_and_all_of_it_is_committed_at_the_end(run: Run) -> None:
    sink = Noted()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            late = scope.source(range(12), batch=3).exchange(lambda n: n % 5)
            late.delay(lambda time, n: time + n % 3).sink(sink)

    run(main)
    for worker in range(run.workers):
        said = [entry for entry in sink.said if entry[1] == worker]
        written = [(time, batch) for kind, _, *rest in said if kind == "write" for time, batch in [rest]]
        assert [time for time, _ in written] == sorted(time for time, _ in written)
        seen = [record for kind, _, *rest in said if kind == "commit" for record in rest]
        assert bag(seen) == bag(record for _, batch in written for record in batch)
    assert Counter(n for kind, _, *rest in sink.said if kind == "commit" for n in rest) == dict.fromkeys(
        range(12), run.workers
    )


def test_a_probe_behind_it_waits_for_the_commit() -> None:
    sink = Noted(wait=1.0)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.sink(sink).probe()
        for time in range(3):
            numbers.send([time])
            numbers.advance_to(time + 1)
            await probe.wait_passed(time)
            assert sink.said[-1] == ("commit", 0, time)

    Run(1, seed=0)(main)
    assert sink.said[-1] == ("close", 0)


def test_commits_without_snapshots_are_as_far_apart_as_the_sink_says() -> None:
    sink = Noted(every=10.0)
    commits: list[tuple[int, int]] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.source(range(25), batch=1, every=1).sink(sink).probe()
        for time in range(25):
            await probe.wait_passed(time)  # which does not wait for commits
            commits.append((round(trio.current_time()), sum(entry[0] == "commit" for entry in sink.said)))

    Run(1, seed=0)(main)
    assert [seconds for seconds, _ in commits] == list(range(25))
    assert dict(commits)[23] == 2
    assert sum(entry[0] == "commit" for entry in sink.said) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_a_time_that_weighs_more_than_may_be_on_its_way(workers: int) -> None:
    """The source waits for room in the middle of a time that the sink cannot write before it is complete."""
    sink = Noted()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            items = [(time, [time] * 100) for time in range(3) for _ in range(20)]
            scope.source(items, timed=True).sink(sink)

    with failsafe(20):
        dataflow.execute(main, workers=workers, in_process=True, limit=10_000)
    assert sum(len(rest) for kind, _, *rest in sink.said if kind == "commit") == workers * 6000


def test_what_waits_for_another_source_does_not_stop_that_source(tmp_path: Path) -> None:
    """A cut may come at the time of the slower source, so the sink of the faster one must wait for it."""
    shown = JsonLines(tmp_path)

    class Slower(sources.Partitions[int]):
        timed = True

        async def partitions(self) -> list[str]:
            return ["all"]

        def read(self, partition: str, position: Any) -> Iterator[Any]:
            for time in range(position or 0, 40):
                yield time + 1, time // 4, [time]

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            rows = sources.generator(lambda start: [(f"w{n:03}", n) for n in range(start, 1000)], batch=100)
            scope.source(rows, name="fast").sink(shown.sink(), name="out")
            scope.source(Slower(), name="slow", ahead=1).probe()

    with failsafe(20):
        dataflow.execute(main, in_process=True, limit=8_000, recovery=tmp_path / "state")
    assert shown.rows() == [(f"w{n:03}", n) for n in range(1000)]


def test_what_waits_to_be_written_slows_sources_down() -> None:
    most = 0
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(300):
            taken.append(n)
            yield n

    class Slow(Noted):
        def open(self, place: sinks.Place) -> sinks.Writer:
            return SlowWriter(self, place.worker)

    class SlowWriter(NotedWriter):
        async def write(self, time: int, batch: Any) -> None:
            nonlocal most
            await trio.lowlevel.checkpoint()
            most = max(most, len(taken) - sum(len(rest[1]) for kind, _, *rest in self.sink.said if kind == "write"))
            await super().write(time, batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(numbers, batch=1, ahead=1000).sink(Slow())

    dataflow.execute(main, in_process=True, limit=64 * 20)
    assert len(taken) == 300 and most < 60


def test_it_must_be_at_the_root_and_errors_name_it(tmp_path: Path) -> None:
    async def nested(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope, scope.nested() as inner:
            scope.source([1]).enter(inner).sink(Noted(), name="out")

    with pytest.raises(ConstructionError, match="out, a sink that commits, must be in the root"):
        Run()(nested)

    async def wrong(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source([(1, 2, 3)]).sink(sinks.sqlite(tmp_path / "x.db", "t", columns=["a"]), name="out")

    for run in (Run(), Run(2, seed=0)):
        with pytest.raises(sinks.SinkError, match=r"1 columns, .'a',., and a record came with 3") as failure:
            run(wrong)
        assert "out" in notes(failure.value) and "writing a batch at 0" in notes(failure.value)


def test_rows_of_one_time_arrive_in_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    """Batches overtake each other on the way to the worker that writes."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            pairs, stream = scope.input()
            stream.sink(sinks.sqlite(tmp_path / "x.db", "t", columns=("key", "value"), key=["key"]))
        if worker.index == 1:
            for value in range(6):
                pairs.send([("a", value)])
            pairs.send(Columns({"key": ["b", "b"], "value": [1, 2]}))
            pairs.send(Columns({"key": ["b"], "value": [3]}))

    for seed in range(8):
        Run(2, seed=seed)(main)
        connection = sqlite3.connect(tmp_path / "x.db")
        assert dict(connection.execute("SELECT key, value FROM t").fetchall()).get("a") == 5
        connection.close()


# With snapshots, and crashes at any turn


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [KeyedSqlite, JsonLines, Parquet, KeyedPostgres], ids=lambda kind: kind.__name__)
def test_each_row_once_whenever_it_crashes(
    kind: type[Shown], seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind is KeyedPostgres:
        KeyedPostgres.address = request.getfixturevalue("postgres")
    shown = kind(tmp_path)
    crash_until_done(shown, seed)
    assert shown.rows() == right_rows(shown)
    assert shown.staged() == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_callback_that_keeps_the_last_time_has_each_row_once(seed: int, tmp_path: Path) -> None:
    seen: list[Any] = []
    last = -1

    async def write(time: int, batch: list[Any]) -> None:
        nonlocal last
        await trio.lowlevel.checkpoint()
        if time > last:
            seen.extend(batch)
            last = time

    class Called(JsonLines):
        def sink(self) -> sinks.Sink:
            return sinks.callback(write)

    crash_until_done(Called(tmp_path), seed)
    assert sorted(seen) == right_rows(Called(tmp_path))


def test_a_callback_is_called_once_for_each_batch_if_nothing_crashes(tmp_path: Path) -> None:
    calls: list[Any] = []
    again: list[Any] = []

    class Called(JsonLines):
        def sink(self) -> sinks.Sink:
            return sinks.callback(lambda time, batch: calls.append((time, batch)))

    class Again(JsonLines):
        def sink(self) -> sinks.Sink:
            return sinks.at_least_once(lambda time, batch: again.append((time, batch)))

    for number, (kind, into) in enumerate(((Called, calls), (Again, again))):
        (tmp_path / str(number)).mkdir()
        crash_until_done(kind(tmp_path / str(number)), 3, lives=0)
        assert sorted(row for _, batch in into for row in batch) == right_rows(kind(tmp_path))
    assert [time for time, _ in calls] == sorted(time for time, _ in calls)


def test_a_run_that_ended_goes_on_with_what_has_grown(tmp_path: Path) -> None:
    """With files that have not grown it ends at once."""
    shown = KeyedSqlite(tmp_path)
    folder = tmp_path / "texts"
    folder.mkdir()
    reads: list[str] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            lines = scope.source(sources.lines(folder, batch=2)).inspect(lambda _, line: reads.append(line))
            words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
            native.state_machine(words, fold=count, name="totals").sink(shown.sink(), name="out")

    lives = Lives()
    total: Counter[str] = Counter()
    for number, text in enumerate(["a b\nb\n", "", "a\n", "", "c c c\n"]):
        for name in ("one", "two") if number % 2 == 0 else ():
            with open(folder / name, "a", encoding="utf-8") as file:
                file.write(text)
            total.update(text.split())
        reads.clear()
        lives.live(main, number % 3 + 1, number)
        assert bag(reads) == bag(text.splitlines() * 2)
        assert shown.rows() == sorted(total.items())
    assert lives.began == sorted(lives.began) and lives.began[1] > 0


def test_workers_in_processes_write_in_threads(tmp_path: Path) -> None:
    """SQLite and Parquet beside each other, from two processes."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("\n".join(WORDS[number::3]), encoding="utf-8")
    table, files = KeyedSqlite(tmp_path), Parquet(tmp_path)
    with failsafe(60):
        for _ in range(2):  # the second goes on from the end of the first
            dataflow.execute(count_words, folder, table.sink(), files.sink(), workers=2, recovery=tmp_path / "state")
            assert table.rows() == right_rows(table)
            assert files.rows() == right_rows(files)


async def count_words(worker: dataflow.Worker, folder: Path, *into: sinks.Sink) -> None:
    with worker.dataflow() as scope:
        lines = scope.source(sources.lines(folder, batch=5))
        words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
        totals = native.state_machine(words, fold=count, name="totals")
        for number, sink in enumerate(into):
            totals.sink(sink, name=f"out {number}")


# Broken on purpose


def _commit_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is visible before its snapshot is durable."""
    prepare = databases.TableWriter.prepare

    async def at_once(self: databases.TableWriter, time: int) -> object:
        token = await prepare(self, time)
        if token is not None:
            await self.commit(token)
        return None

    monkeypatch.setattr(databases.TableWriter, "prepare", at_once)


def _forget_what_was_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash, nobody commits what the snapshot says."""

    async def nothing(self: databases.TableWriter, token: object) -> None:
        """Does nothing."""

    async def recover(self: databases.TableWriter, tokens: Sequence[object]) -> None:
        self.sweep(self.place.incarnation, [])

    commit = databases.TableWriter.commit

    async def half(self: databases.TableWriter, token: Any) -> None:
        own = [stage for stage in token if stage[0].startswith(self._writer)]
        if own:
            await commit(self, own)

    monkeypatch.setattr(databases.TableWriter, "commit", half)
    monkeypatch.setattr(databases.TableWriter, "recover", recover)


def _write_what_is_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes times that a cut may still come before."""
    write = committed._Committing._write_next

    async def through(self: Any) -> bool:
        gate, self._gate = self._gate, None
        try:
            return await write(self)
        finally:
            self._gate = gate

    monkeypatch.setattr(committed._Committing, "_write_next", through)


def _no_staging_by_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was staged and is in no snapshot is committed by the next life."""

    async def recover(self: folders.FolderWriter, tokens: Sequence[object]) -> None:
        late = [name for name in self._shelf.waiting() if name.endswith(".jsonl")]
        if late:
            self._shelf.show([(name, f"late-{name}") for name in late])

    monkeypatch.setattr(folders.FolderWriter, "recover", recover)


class PlainSqlite(KeyedSqlite):
    keyed = False


@pytest.mark.parametrize(
    ("breaks", "kind"),
    [
        (_commit_early, PlainSqlite),
        (_forget_what_was_prepared, PlainSqlite),
        (_write_what_is_not_open, PlainSqlite),
        (_no_staging_by_incarnation, JsonLines),
    ],
    ids=lambda broken: broken.__name__,
)
def test_broken_sinks_are_found(
    breaks: Any, kind: type[Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    for seed in range(30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shown = kind(folder)
        try:
            crash_until_done(shown, seed)
        except sinks.SinkError:
            return
        if shown.rows() != right_rows(shown):
            return
    raise AssertionError("nobody noticed")
