"""Latency over time: a histogram for each window of the schedule."""

from __future__ import annotations

from typing import TypedDict

from megaphone.harness.histogram import Histogram, PlainHistogram
from megaphone.harness.schedule import SECOND, LoadSchedule

QUANTILES = (0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1)


class PlainTimeline(TypedDict):
    """A timeline as plain data."""

    window_ns: int
    bits: int
    windows: dict[str, PlainHistogram]  # by the number of the window: JSON has no other keys


class Timeline:
    """Latencies of records by when they were due, in windows of so many nanoseconds. Timelines of workers merge.

    >>> timeline = Timeline(window_ns=250_000_000)
    >>> timeline.at(3).record([1_000_000, 2_000_000])
    >>> timeline.rows([0.5, 1])
    [(0.75, [1003519, 2000000])]
    """

    def __init__(self, window_ns: int, bits: int = 7) -> None:
        if window_ns < 1:
            raise ValueError(f"a window must be positive, not {window_ns} ns")
        self.window_ns = window_ns
        self.bits = bits
        self.windows: dict[int, Histogram] = {}  # by the number of the window

    def at(self, window: int) -> Histogram:
        """The histogram of a window."""
        return self.windows.setdefault(window, Histogram(self.bits))

    def ranges(self, schedule: LoadSchedule) -> list[tuple[int, int, Histogram]]:
        """For each window its epochs, from one to before another, and its histogram: for `lateness.tally`."""
        epochs, rest = divmod(self.window_ns, schedule.epoch_ns)
        if rest or not epochs:
            raise ValueError(
                f"a window of {self.window_ns / SECOND} s is no multiple of the epoch, {schedule.epoch_ns / SECOND} s"
            )
        begins = range(0, schedule.epochs, epochs)
        return [(begin, min(begin + epochs, schedule.epochs), self.at(begin // epochs)) for begin in begins]

    def merge(self, other: Timeline) -> None:
        """Adds what another worker has measured."""
        if other.window_ns != self.window_ns:
            raise ValueError(f"timelines of {self.window_ns} and {other.window_ns} ns a window cannot be merged")
        for window, histogram in other.windows.items():
            self.at(window).merge(histogram)

    def rows(self, quantiles: tuple[float, ...] | list[float] = QUANTILES) -> list[tuple[float, list[int]]]:
        """(seconds at which the window begins, its quantiles in ns), in order; windows without records are left out."""
        return [
            (window * self.window_ns / SECOND, histogram.quantiles(quantiles))
            for window, histogram in sorted(self.windows.items())
            if len(histogram)
        ]

    def to_dict(self) -> PlainTimeline:
        """All of it as plain data."""
        windows = {str(window): histogram.to_dict() for window, histogram in self.windows.items()}
        return {"window_ns": self.window_ns, "bits": self.bits, "windows": windows}

    @classmethod
    def from_dict(cls, plain: PlainTimeline) -> Timeline:
        """The timeline that `to_dict` described."""
        timeline = cls(plain["window_ns"], plain["bits"])
        timeline.windows = {int(window): Histogram.from_dict(rest) for window, rest in plain["windows"].items()}
        return timeline
