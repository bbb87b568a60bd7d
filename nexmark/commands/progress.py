"""Showing on stderr that long work goes on: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Counts towards a total, and shows it at most so often that nobody is bothered."""

    def __init__(
        self, what: str, total: int, stream: TextIO, clock: Callable[[], float] = time.monotonic, width: int = 30
    ) -> None:
        self._what = what
        self._total = total
        self._stream = stream
        self._clock = clock
        self._width = width
        self._terminal = stream.isatty()
        self._pause = 0.1 if self._terminal else 10.0  # seconds between two showings
        self._done = 0
        self._started = self._shown = clock()

    def advance(self, by: int) -> None:
        self._done += by
        now = self._clock()
        if now - self._shown >= self._pause:
            self._shown = now
            self._show(now - self._started)

    def finish(self) -> None:
        """Take the bar away: what was done is for the command to say."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self, seconds: float) -> None:
        share = self._done / self._total
        left = seconds / share - seconds
        if self._terminal:
            filled = round(share * self._width)
            bar = "█" * filled + "░" * (self._width - filled)
            self._stream.write(f"\r\x1b[K{self._what} {bar} {share:4.0%}, {left:.0f} s left")
        else:
            self._stream.write(f"{self._what}: {share:.0%}, {left:.0f} s left\n")
        self._stream.flush()
