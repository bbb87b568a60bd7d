"""Showing on stderr that long work goes on: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Counts towards a total, and shows it at most so often that nobody is bothered.

    `lines`: write whole lines only, as worker processes must, whose supervisor passes on nothing else; they cannot know
    whether that one's stderr is a `terminal`, and must be told.
    """

    def __init__(
        self,
        what: str,
        total: int,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        width: int = 30,
        *,
        lines: bool = False,
        terminal: bool | None = None,
    ) -> None:
        self._what = what
        self._total = total
        self._stream = stream
        self._clock = clock
        self._width = width
        self._terminal = stream.isatty() if terminal is None else terminal
        self._lines = lines
        self._drawn = False
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
        if self._terminal and not self._lines:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self, seconds: float) -> None:
        share = self._done / self._total
        left = seconds / share - seconds
        if self._terminal:
            filled = round(share * self._width)
            bar = "█" * filled + "░" * (self._width - filled)
            text = f"{self._what} {bar} {share:4.0%}, {left:.0f} s left"
            up = "\x1b[A" if self._drawn else ""
            self._stream.write(f"{up}\x1b[K{text}\n" if self._lines else f"\r\x1b[K{text}")
            self._drawn = True
        else:
            self._stream.write(f"{self._what}: {share:.0%}, {left:.0f} s left\n")
        self._stream.flush()
