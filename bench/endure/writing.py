"""Writes lines at a rate, and knows what the counts of their words must be."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from pathlib import Path
from random import Random

_WORDS_OF_A_LINE = 10
_TICK = 0.05  # seconds
_LINES_OF_A_FILE = 200_000


class WordWriter:
    """A thread that appends lines to files of a folder. `rate` is in words per second and may be set at any time.

    A few words are frequent, as in texts: the n-th has a share of about 1 / n.
    """

    def __init__(self, folder: Path, rate: float, words: int, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rate = rate
        self._folder, self._chance = folder, Random(seed)
        self._names = [f"w{number}" for number in range(words)]
        self._shares = list(accumulate(1 / (number + 1) for number in range(words)))
        self.counts: Counter[str] = Counter()
        self._history: list[tuple[int, float]] = [(0, time.monotonic())]  # so many words had been written by then
        self._over = threading.Event()
        self._pause = threading.Event()
        self._paused = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()

    @property
    def written(self) -> int:
        """How many words."""
        return self._history[-1][0]

    def age_of(self, words: int) -> float:
        """For how many seconds there have been more words than these: how far behind a reader is who has seen them."""
        history = self._history[:]
        place = bisect_left(history, (words + 1, 0.0))
        return 0.0 if place == len(history) else time.monotonic() - history[place][1]

    def pause(self) -> None:
        """Writes nothing more until `go_on`; when this returns, everything is in its file."""
        self._pause.set()
        self._paused.wait()

    def go_on(self) -> None:
        """Writes again."""
        self._pause.clear()

    def close(self) -> None:
        """Ends for good."""
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        lines, number, owed = 0, 0, 0.0
        while not self._over.wait(_TICK):
            if self._pause.is_set():
                self._paused.set()
                continue
            self._paused.clear()
            owed += self.rate * _TICK
            due = int(owed / _WORDS_OF_A_LINE)
            owed -= due * _WORDS_OF_A_LINE
            text = [self._chance.choices(self._names, cum_weights=self._shares, k=_WORDS_OF_A_LINE) for _ in range(due)]
            for line in text:
                self.counts.update(line)
            self._history.append(
                (self.written + due * _WORDS_OF_A_LINE, time.monotonic())
            )  # before anybody can read it
            with (self._folder / f"{number:05d}.txt").open("a") as file:
                file.writelines(" ".join(line) + "\n" for line in text)
            lines += due
            if lines >= _LINES_OF_A_FILE:
                lines, number = 0, number + 1
