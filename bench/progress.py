"""Showing on stderr that a run goes on: a bar on a terminal, a few plain lines anywhere else."""

import io
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO


class Display:
    """Where progress is shown. Without a stream it is shown nowhere, which is what tests and libraries want.

    ``redraw`` and ``remind`` are the least seconds between two drawings of a bar and between two plain lines, so a run
    of a million ticks costs a million clock reads and no more output than a short one.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        redraw: float = 0.1,
        remind: float = 10.0,
    ) -> None:
        self._stream = stream or io.StringIO()
        self._clock = clock
        self._redraw = redraw
        self._remind = remind

    def progress(self, label: str, total: int) -> "Progress":
        if self._stream.isatty():
            return Bar(self._stream, self._clock, self._redraw, label, total)
        return Lines(self._stream, self._clock, self._remind, label, total)


class Progress(ABC):
    """Counts towards a total inside a ``with`` block; a subclass shows it, at most every ``pause`` seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float], pause: float, label: str, total: int) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self._stream = stream
        self._clock = clock
        self._pause = pause
        self._started = self._shown = clock()

    def advance(self, by: int = 1) -> None:
        self.done += by
        now = self._clock()
        if now - self._shown >= self._pause:
            self._shown = now
            self.show()

    def __enter__(self) -> Self:
        self._started = self._shown = self._clock()
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end("stopped" if kind else "done")

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def show(self) -> None: ...

    @abstractmethod
    def end(self, how: str) -> None: ...

    def seconds(self) -> float:
        return self._clock() - self._started

    def fraction(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 1.0

    def write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Bar(Progress):
    """A line on a terminal that is drawn over itself, and is left behind short when it is done."""

    width = 30

    def begin(self) -> None:
        self.show()

    def show(self) -> None:
        filled = round(self.fraction() * self.width)
        bar = "█" * filled + "░" * (self.width - filled)
        self._draw(f"{self.label} {bar} {self.fraction():4.0%} {self.seconds():.0f} s")

    def end(self, how: str) -> None:
        self._draw(f"{self.label}: {how} in {self.seconds():.1f} s")
        self.write("\n")

    def _draw(self, text: str) -> None:
        self.write(f"\r\x1b[K{text}")


class Lines(Progress):
    """One line at the end, and before that one only when the last is long ago: what a log file wants."""

    def begin(self) -> None:
        pass

    def show(self) -> None:
        self.write(f"{self.label}: {self.fraction():.0%} after {self.seconds():.0f} s\n")

    def end(self, how: str) -> None:
        self.write(f"{self.label}: {how} in {self.seconds():.1f} s\n")
