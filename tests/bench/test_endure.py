"""The endurance run: short, with each part that could hide a fault broken on purpose."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bench.endure.command import main
from bench.endure.judging import judge
from bench.endure.living import LongRun, RunFolder
from bench.endure.watching import Glance, Lookout, differences, shown_words
from bench.endure.writing import WordWriter

CALM = Glance(0.0, 2, 100.0, 13, 55.0, 21, 0.01, 0.1, 1_000, 1_000, 0.5)


class Ended:
    """The part of a run that a table needs: where it is."""

    def __init__(self, folder: Path) -> None:
        self.places = RunFolder(folder)

    def mend(self) -> bool:
        return False


@pytest.fixture
def watch(tmp_path: Path) -> Lookout:
    writer = WordWriter(tmp_path / "lines", 2_000, 50, seed=1)
    found = Lookout(cast(LongRun, Ended(tmp_path)), writer)
    while writer.written < 500:
        time.sleep(0.01)
    writer.pause()
    with closing(sqlite3.connect(tmp_path / "out.db")) as database, database:
        database.execute("create table totals (word text primary key, total integer)")
        database.executemany("insert into totals values (?, ?)", writer.counts.items())
    yield found
    writer.go_on()
    writer.close()


def test_what_was_written_is_what_is_in_the_files(watch: Lookout, tmp_path: Path) -> None:
    words = [word for path in (tmp_path / "lines").iterdir() for word in path.read_text().split()]
    assert len(words) == watch.writer.written == sum(watch.writer.counts.values())
    assert shown_words(tmp_path / "out.db") == len(words) and watch.writer.age_of(len(words)) == 0
    assert watch.writer.age_of(0) > watch.writer.age_of(len(words) - 1) > 0


def test_a_count_that_is_wrong_is_found(watch: Lookout, tmp_path: Path) -> None:
    assert differences(tmp_path / "out.db", dict(watch.writer.counts)) == []
    with closing(sqlite3.connect(tmp_path / "out.db")) as database, database:  # the sum stays
        database.execute("update totals set total = total + 1 where word = 'w0'")
        database.execute("update totals set total = total - 1 where word = 'w1'")
    watch.compare(patience=5.0)
    assert len(watch.faults) == 2 and "w0" in watch.faults[0]


def test_a_word_that_is_lost_is_found(watch: Lookout, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "out.db")) as database, database:
        database.execute("update totals set total = total - 1 where word = 'w0'")
    watch.compare(patience=0.5)
    assert ["1 words are not shown" in fault for fault in watch.faults] == [True]


@pytest.mark.parametrize(
    ("name", "later"),
    [("memory", 300), ("files", 100), ("supervisor", 200), ("supervisor_files", 90), ("high", 2.5), ("behind", 30)],
)
def test_what_grows_is_not_good(watch: Lookout, name: str, later: float) -> None:
    watch.compared = 1
    watch.seen = [replace(CALM, seconds=float(second)) for second in range(100)]
    assert all(verdict.good for verdict in judge(watch))
    watch.seen[75:] = [replace(each, **{name: later}) for each in watch.seen[75:]]  # type: ignore[arg-type]
    assert [verdict.good for verdict in judge(watch)].count(False) == 1


def test_a_short_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Seconds are too few to judge what grows; that nothing is wrong can be told."""
    main(["--hours", "0.001", "--calm", "1", "--rate", "1000", "--out", str(tmp_path)])
    out, _ = capfd.readouterr()
    assert "good: Was any count wrong, or not shown in the end? nothing wrong" in out, out
    assert "<img" in (tmp_path / "report.html").read_text()
