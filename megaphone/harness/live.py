"""A live view of a run in a terminal: rate, latency, frontier, and where the bins are.

`view` is a pure function from what is known to lines of text. `Live` draws them over the last ones on a terminal; in a
file or a pipe it writes a plain line now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from megaphone.harness.tables import duration, number


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment, as one worker sees it."""

    seconds: float  # since the start
    duration: float  # of the whole schedule
    offered: float  # records/s, all workers
    completed: float  # records/s, all workers, over the last second
    latencies_ms: tuple[float, ...]  # .5, .99 and 1 quantiles of the last second; empty if nothing was complete
    frontier: int  # the dataflow's time
    behind: float  # seconds from the schedule to what is complete
    outstanding: int  # epochs sent and not complete
    under_way: str | None = None  # the episode
    bins: tuple[int, ...] = ()  # by worker, how many


def view(now: Snapshot, width: int = 80) -> list[str]:
    """The lines to draw, none longer than `width`.

    >>> for line in view(Snapshot(3, 12, 1e6, 998e3, (1.25, 4.5, 20.75), 3001, 0.002, 2, "fluid", (6, 2)), 60):
    ...     print(line)
    time      ▕██████▌                   ▏ 3.0 of 12.0 s
    rate      998,000 of 1,000,000 records/s
    latency   .5: 1.25 ms   .99: 4.5 ms   max: 20.8 ms
    frontier  3,001   2 ms behind, 2 epochs outstanding
    migration fluid
    worker 0  ▕███████████████████▌      ▏ 6 bins
    worker 1  ▕██████▌                   ▏ 2 bins
    """
    wide = max(8, min(40, width - 34))
    shown = min(now.seconds, now.duration)
    lines = [
        f"time      {bar(now.seconds / now.duration, wide)} {shown:.1f} of {now.duration:.1f} s",
        f"rate      {number(now.completed)} of {number(now.offered)} records/s",
        f"latency   {_latencies(now)}",
        f"frontier  {now.frontier:,}   {_behind(now)}",
        f"migration {now.under_way or '-'}",
    ]
    total = sum(now.bins) or 1
    for worker, bins in enumerate(now.bins):
        lines.append(f"{f'worker {worker}':<9} {bar(bins / total, wide)} {bins:,} bins")
    return [line[:width] for line in lines]


def line(now: Snapshot) -> str:
    """The same in one line, for a log.

    >>> line(Snapshot(3, 12, 1e6, 998e3, (1.25, 4.5, 20.75), 3001, 0.002, 2, "fluid", (6, 2)))
    '3.0 s: 998,000 records/s, latency .5: 1.25 ms   .99: 4.5 ms   max: 20.8 ms, 2 ms behind, fluid, bins 6 2'
    """
    parts = [f"{now.seconds:.1f} s: {number(now.completed)} records/s", f"latency {_latencies(now)}"]
    parts += [f"{duration(now.behind)} behind", now.under_way or ""]
    parts += [f"bins {' '.join(map(str, now.bins))}" if now.bins else ""]
    return ", ".join(part for part in parts if part)


def bar(fraction: float, width: int) -> str:
    """A bar that is so full, to an eighth of a character.

    >>> bar(0.3, 10)
    '▕███       ▏'
    """
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    full = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return f"▕{full:<{width}}▏"


def _latencies(now: Snapshot) -> str:
    if not now.latencies_ms:
        return "nothing was complete in the last second"
    names = (".5", ".99", "max")
    return "   ".join(f"{name}: {value:.3g} ms" for name, value in zip(names, now.latencies_ms, strict=True))


def _behind(now: Snapshot) -> str:
    epochs = "1 epoch" if now.outstanding == 1 else f"{now.outstanding:,} epochs"
    return f"{duration(now.behind)} behind, {epochs} outstanding"


class Live:
    """Draws snapshots to a stream: hand it to the driver as `watch`. One worker of them is enough.

    `bins()` says how many bins each worker has. `terminal`: whether to draw in place; worker processes write to a pipe
    and cannot know, so ask `sys.stderr.isatty()` before `dataflow.execute`. `remind`: seconds between plain lines.
    """

    def __init__(
        self,
        stream: TextIO,
        bins: Callable[[], Sequence[int]] | None = None,
        *,
        terminal: bool | None = None,
        width: int = 80,
        remind: float = 5.0,
    ) -> None:
        self._stream = stream
        self._bins = bins
        self._terminal = stream.isatty() if terminal is None else terminal
        self._width = width
        self._remind = remind
        self._drawn = 0  # lines
        self._last = 0.0

    def __call__(self, now: Snapshot) -> None:
        """Shows it."""
        if self._bins is not None:
            now = replace(now, bins=tuple(self._bins()))
        if self._terminal:
            self._draw(view(now, self._width))
        elif now.seconds - self._last >= self._remind:
            self._last = now.seconds
            self._write(line(now) + "\n")

    def _draw(self, lines: list[str]) -> None:
        # Whole lines only, so that a supervisor that passes on whole lines does not tear them.
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self._drawn = len(lines)
        self._write(up + "".join(f"\x1b[K{text}\n" for text in lines))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
