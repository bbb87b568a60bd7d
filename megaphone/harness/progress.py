"""Showing on stderr that long work goes on: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO


class ProgressBar:
    """Counts towards a total, and shows it seldom enough to bother nobody and to slow nothing down.

    In a ``with`` block it ends with a line that says how long it took; `finish` takes the bar away and says nothing.

    `lines`: write whole lines only, as worker processes must, whose supervisor passes on nothing else; they cannot know
    whether that one's stderr is a `terminal`, and must be told. `redraw` and `remind` are the least seconds between two
    drawings of a bar and between two plain lines.
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
        redraw: float = 0.1,
        remind: float = 10.0,
    ) -> None:
        self.total = total
        self.done = 0
        self._what = what
        self._stream = stream
        self._clock = clock
        self._width = width
        self._terminal = stream.isatty() if terminal is None else terminal
        self._lines = lines
        self._drawn = False
        self._pause = redraw if self._terminal else remind
        self._started = self._shown = clock()

    def __enter__(self) -> Self:
        self._started = self._shown = self._clock()
        if self._terminal:
            self._show(0.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()
        self._write(f"{self._what}: {'stopped' if kind else 'done'} in {self._clock() - self._started:.1f} s\n")

    def advance(self, by: int = 1) -> None:
        """Counts what has been done since the last call."""
        self.done += by
        now = self._clock()
        if now - self._shown >= self._pause:
            self._shown = now
            self._show(now - self._started)

    def finish(self) -> None:
        """Takes the bar away. Others report what was done."""
        if self._terminal and not self._lines:
            self._write("\r\x1b[K")

    def fraction(self) -> float:
        """How much of the whole is done."""
        return min(1.0, self.done / self.total) if self.total else 1.0

    def _show(self, seconds: float) -> None:
        share = self.fraction()
        left = f", {seconds / share - seconds:.0f} s left" if share else ""
        if not self._terminal:
            self._write(f"{self._what}: {share:.0%}{left}\n")
            return
        filled = round(share * self._width)
        text = f"{self._what} {'█' * filled}{'░' * (self._width - filled)} {share:4.0%}{left}"
        up = "\x1b[A" if self._drawn else ""
        self._write(f"{up}\x1b[K{text}\n" if self._lines else f"\r\x1b[K{text}")
        self._drawn = True

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
