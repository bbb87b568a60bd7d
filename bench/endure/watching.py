"""What is seen of the run, every few seconds."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.endure.living import LongRun, kill
from bench.endure.writing import WordWriter
from dataflow.run.meters import BOUNDS
from dataflow.run.readings import WorkerReading


@dataclass(frozen=True, slots=True)
class Glance:
    """One look."""

    seconds: float  # since the beginning
    workers: int
    memory: float  # MiB, of the worker that has most
    files: int  # open, of the worker that has most
    supervisor: float  # MiB of memory
    supervisor_files: int
    median: float  # seconds from when a time's inputs are complete until it is complete everywhere; nan if none was
    high: float  # .99 of the same
    written: int  # words
    shown: int  # words that the table has counted
    behind: float  # seconds: for how long there has been a word that the table does not show


@dataclass(slots=True)
class Lookout:
    """Looks, and keeps what it saw. Faults are what must never happen."""

    run: LongRun
    writer: WordWriter
    began: float = field(default_factory=time.monotonic)
    seen: list[Glance] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    events: list[tuple[float, float, str, str]] = field(default_factory=list)  # from, to, trouble, what it said
    compared: int = 0
    _stood_still: float = 0.0
    looking: threading.Lock = field(default_factory=threading.Lock)  # whoever has it, looks or keeps others from it
    _counts: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """Seconds since the beginning, without those in which everything stood still."""
        return time.monotonic() - self.began

    def look(self) -> Glance:
        """Takes a look."""
        workers = self.run.readings()
        shown = shown_words(self.run.places.database)
        written = self.writer.written  # after what is shown, so that it cannot be less
        self._check(written, shown)
        median, high = self._latency(workers)
        seen = Glance(
            self.now,
            len(workers),
            max((reading.memory for reading in workers), default=0) / 2**20,
            max((descriptors(reading.pid) for reading in workers), default=0),
            resident(self.run.supervisor) / 2**20,
            descriptors(self.run.supervisor),
            median,
            high,
            written,
            shown,
            self.writer.age_of(shown),
        )
        self.seen.append(seen)
        return seen

    def _check(self, written: int, shown: int) -> None:
        if shown > written:
            self.faults.append(f"{self.now:.0f} s: the table has counted {shown:,} words of {written:,}")
        if self.seen and shown < self.seen[-1].shown:
            self.faults.append(
                f"{self.now:.0f} s: the table had counted {self.seen[-1].shown:,} words, and now {shown:,}"
            )

    def _latency(self, workers: Sequence[WorkerReading]) -> tuple[float, float]:
        """Of what was complete since the last look, on all workers together."""
        new = np.zeros(len(BOUNDS) + 1, "i8")
        for reading in workers:
            for each in reading.dataflows:
                counts = np.array(each.latency_counts, "i8")
                before = self._counts.get(reading.pid)
                if counts.size == new.size:
                    new += counts if before is None else counts - np.array(before, "i8")
                    self._counts[reading.pid] = each.latency_counts
        if new.sum() <= 0:
            return float("nan"), float("nan")
        bounds = np.array([*BOUNDS, BOUNDS[-1] * 2])
        places = np.searchsorted(np.cumsum(new), [0.5 * new.sum(), 0.99 * new.sum()])
        return float(bounds[places[0]]), float(bounds[places[1]])

    def compare(self, patience: float = 180.0, while_shown: Callable[[], None] | None = None) -> float:
        """Stops the writer until everything is shown, and compares every count. The seconds that it took.

        Nothing is owed while `while_shown` runs.
        """
        began = time.monotonic()
        self.writer.pause()
        while shown_words(self.run.places.database) != self.writer.written:
            if time.monotonic() - began > patience:
                missing = self.writer.written - shown_words(self.run.places.database)
                self.faults.append(f"{self.now:.0f} s: {missing:,} words are not shown {patience:.0f} s after the last")
                break
            self.run.mend()
            time.sleep(0.2)
        else:
            wrong = differences(self.run.places.database, dict(self.writer.counts))
            self.faults += [f"{self.now:.0f} s: {each}" for each in wrong[:10]]
            self.compared += 1
        took = time.monotonic() - began
        if while_shown is not None:
            while_shown()
        self.writer.go_on()
        return took

    def stand_still(self, wanted: Callable[[], bool]) -> float:
        """Shows and compares everything, and then has all processes stand still while it is wanted. The seconds."""
        self.compare(while_shown=lambda: self._stop_processes(wanted))
        return self._stood_still

    def _stop_processes(self, wanted: Callable[[], bool]) -> None:
        with self.looking:
            pids = [*(reading.pid for reading in self.run.readings()), self.run.supervisor]
            stopped = time.monotonic()
            for pid in pids:
                kill(pid, signal.SIGSTOP)
            while wanted():
                time.sleep(0.5)
            for pid in reversed(pids):
                kill(pid, signal.SIGCONT)
            self._stood_still = time.monotonic() - stopped
            self.began += self._stood_still

    def rates(self) -> list[float]:
        """Words shown per second, from each look to the next."""
        return [(b.shown - a.shown) / (b.seconds - a.seconds) for a, b in pairwise(self.seen)]


def shown_words(database: Path) -> int:
    """How many words the table has counted; 0 if there is none yet."""
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database, timeout=30.0)) as connection:
        try:
            (total,) = connection.execute("select coalesce(sum(total), 0) from totals").fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return 0
    return int(total)


def differences(database: Path, expected: dict[str, int]) -> list[str]:
    """Words whose counts are not what they must be."""
    with closing(sqlite3.connect(database, timeout=30.0)) as connection:
        found = dict(connection.execute("select word, total from totals").fetchall())
    words = sorted(word for word in {*found, *expected} if found.get(word) != expected.get(word))
    return [f"{word}: {found.get(word)} instead of {expected.get(word)}" for word in words]


def descriptors(pid: int) -> int:
    """How many files a process has open; 0 if it is gone."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def resident(pid: int) -> int:
    """A process's memory in bytes; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
