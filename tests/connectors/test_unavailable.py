"""An outside that does not answer: a full disk, a locked database. What it does not take is tried again, nothing is
lost or doubled, it is told, and in the end it is an error."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dataflow
from dataflow import sinks, sources
from dataflow.recovery.memory import MemoryStorage
from dataflow.sinks import databases, staged
from dataflow.testing import simulate
from tests.connectors.cases import crash_until_done, right_rows
from tests.connectors.places import (
    Arrow,
    CompressedJsonLines,
    Delta,
    JsonLines,
    KeyedSqlite,
    Parquet,
    Shown,
    Sqlite,
    place,
)
from tests.engine.harness import failsafe


class Flaky:
    """A disk that is full now and then, and takes only half of what it is given at times."""

    def __init__(self, seed: int, share: float = 0.4) -> None:
        self.chance, self.share, self.refused = Random(f"flaky {seed}"), share, 0
        self._write, self._replace = os.write, os.replace

    def write(self, fd: int, data: Any) -> int:
        """Of files of sinks."""
        drawn = self.chance.random()
        if drawn < self.share:
            self.refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(fd, memoryview(data)[: max(1, len(data) // 2)] if drawn < 2 * self.share else data)

    def replace(self, *names: Any) -> None:
        """Commits of files."""
        if self.chance.random() < self.share / 2:
            self.refused += 1
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        self._replace(*names)

    def refusing(self, method: Any) -> Any:
        """Transactions of databases."""

        def call(*arguments: Any) -> None:
            if self.chance.random() < self.share:
                self.refused += 1
                raise sinks.SinkUnavailable("database or disk is full")
            method(*arguments)

        return call


@pytest.mark.parametrize("kind", [JsonLines, CompressedJsonLines, Parquet, Arrow, Delta, Sqlite, KeyedSqlite])
def test_nothing_is_lost_or_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Shown]) -> None:
    """Through crashes, with memory for very little, so that writing meets the disk as well as preparing."""
    refused = 0
    monkeypatch.setattr(staged, "_DRAIN_AT", 20)
    monkeypatch.setattr(databases, "_STAGE_AT", 4)
    monkeypatch.setattr(databases, "_MOST", 8)
    for seed in range(5):
        disk, shown = Flaky(seed), kind(tmp_path / str(seed))
        shown.folder.mkdir()
        with monkeypatch.context() as patch, failsafe(60):
            patch.setattr(os, "write", disk.write)
            patch.setattr(os, "replace", disk.replace)
            writer = type(sinks.sqlite("x", "t", columns=["a"]).open(place()))
            for method in ("stage", "publish"):
                patch.setattr(writer, method, disk.refusing(getattr(writer, method)))
            crash_until_done(shown, seed, lives=4)
        assert shown.rows() == right_rows(shown), f"seed {seed}"
        refused += disk.refused
    assert refused > 20


class Silent(sinks.Sink):
    """Does not answer until it has been asked so often."""

    def __init__(self, until: float, where: str) -> None:
        self.until, self.where, self.rows = until, where, list[Any]()

    def open(self, place: sinks.Place) -> sinks.Writer:
        return SilentWriter(self)


class SilentWriter(sinks.Writer):
    def __init__(self, sink: Silent) -> None:
        self.sink, self.waiting = sink, list[Any]()

    def _ask(self, where: str) -> None:
        self.sink.until -= where == self.sink.where
        if where == self.sink.where and self.sink.until > 0:
            raise sinks.SinkUnavailable("the outside does not answer")

    async def write(self, time: int, batch: Any) -> None:
        self._ask("write")
        self.waiting += batch

    async def prepare(self, time: int) -> object:
        return list(self.waiting) or None

    async def commit(self, token: Any) -> None:
        self._ask("commit")
        self.sink.rows += [row for row in token if row not in self.sink.rows]
        self.waiting = [row for row in self.waiting if row not in token]

    async def recover(self, tokens: Any) -> None:
        self._ask("recover")


def run(sink: Silent, recovery: dataflow.Recovery | None, epochs: int = 20) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.restartable(lambda start: ((n + 1, n) for n in range(start or 0, epochs)))).sink(sink)

    simulate(main, workers=1, recovery=recovery)


@pytest.mark.parametrize("where", ["write", "commit", "recover"])
def test_it_is_told_once_and_goes_on(where: str, capfd: pytest.CaptureFixture[str]) -> None:
    sink = Silent(7, where)
    run(sink, dataflow.Recovery(MemoryStorage(), every=0.5))
    assert sorted(sink.rows) == list(range(20))
    told = [line for line in capfd.readouterr().err.splitlines() if "tried again every 1 s" in line]
    assert told == ["dataflow: the outside does not answer; this is tried again every 1 s"]


@pytest.mark.parametrize("where", ["write", "commit"])
def test_after_long_it_is_an_error_that_is_not_tried_again(where: str) -> None:
    recovery = dataflow.Recovery(MemoryStorage(), every=0.5, give_up_after=60.0)
    with pytest.raises(sinks.SinkUnavailable, match="the outside does not answer") as found:
        run(Silent(float("inf"), where), recovery)
    assert any("it was tried for 6" in note and "give_up_after" in note for note in found.value.__notes__)


def test_without_recovery_it_is_an_error_at_once() -> None:
    with pytest.raises(sinks.SinkUnavailable):
        run(Silent(2, "write"), None)


def test_a_snapshot_that_comes_meanwhile_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    sink = Silent(9, "write")
    run(sink, dataflow.Recovery(MemoryStorage(), every=0.5))
    assert sorted(sink.rows) == list(range(20))
    assert "was given up (worker 0: the outside does not answer)" in capfd.readouterr().err
