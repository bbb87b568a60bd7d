"""Where the events of a finite run come from, an epoch at a time: made as they are needed, or given.

An epoch is sent at a time that is not after any of its events, and times are multiples of the source's `grid`: what the
queries rely on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from nexmark.events.config import Config
from nexmark.events.generator import COLUMNS, Generator
from nexmark.events.kernels import Column

Needs: TypeAlias = Mapping[str, Sequence[str]]  # by kind, the columns that a query reads
Share: TypeAlias = Mapping[str, Mapping[str, Column]]  # by kind, columns

_LONGEST = 2.0**61  # nanoseconds of an epoch: what is rounded up to the next one still has less than 63 bits


class EventSource(Protocol):
    """Epochs of events."""

    events: int
    epochs: int
    grid: int  # nanoseconds

    def time(self, number: int) -> int:
        """The dataflow's time at which an epoch is sent."""

    def prepare(self, index: int, peers: int) -> None:
        """Called on each worker before the clock starts."""

    def share(self, number: int, index: int, peers: int) -> Share:
        """One worker's part of an epoch, in columns by kind."""


MAKING = ("read", "all", "ready")


class Generated:
    """Epochs of generated events: so many each, and whole groups of those that come out of order.

    `making` says what of it is part of the run: `"read"`, the columns that the query reads are made as it goes;
    `"all"`, so are all others, and left; `"ready"`, nothing is: each worker has its events when the clock starts.
    """

    def __init__(self, config: Config, needs: Needs, events: int, batch: int, making: str = "read") -> None:
        if making not in MAKING:
            raise ValueError(f"making is {making!r}; it is one of {', '.join(MAKING)}")
        self._needs = needs if making == "all" else None
        self._prepares = making == "ready"
        self._ready: list[Share] = []
        self.events = events
        self.size = -(-batch // config.group) * config.group
        self.epochs = -(-events // self.size)
        self.grid = max(1, int(min(self.size * config.delay, _LONGEST)))
        self._config = config
        self._generator = Generator(config, columns=with_plain(needs) if making == "all" else needs)

    def prepare(self, index: int, peers: int) -> None:
        """Makes this worker's events, if they are to be ready."""
        if self._prepares:
            self._ready = [self._made(number, index, peers) for number in range(self.epochs)]

    def time(self, number: int) -> int:
        """The grid's last time that is not after the first event."""
        first = self._config.base_time + int(number * self.size * self._config.delay)
        return first // self.grid * self.grid

    def share(self, number: int, index: int, peers: int) -> Share:
        """A contiguous part."""
        return self._ready[number] if self._ready else self._made(number, index, peers)

    def _made(self, number: int, index: int, peers: int) -> Share:
        first = number * self.size
        last = min(first + self.size, self.events)
        low, high = _part(first, last, index, peers)
        made = self._generator.events(range(low, high))
        needs = self._needs
        return made if needs is None else {kind: {name: made[kind][name] for name in needs[kind]} for kind in needs}


class Given:
    """Epochs of given events, by their dates: from each time of the grid to the next. Epochs without any are left out.

    The grid is such that an epoch has about `batch` events, if they are evenly spread.
    """

    def __init__(self, events: Share, needs: Needs, batch: int) -> None:
        self._tables = {kind: _by_date(events[kind]) for kind in needs}
        dates = {kind: table["date_time"] for kind, table in self._tables.items()}
        self.events = sum(map(len, dates.values()))
        ends = [int(date) for column in dates.values() if len(column) for date in (column[0], column[-1])]
        span = max(ends) - min(ends) + 1 if ends else 1
        self.grid = max(1, -(-span // max(1, -(-self.events // batch))))
        numbers = [np.unique(column // self.grid) for column in dates.values()]
        self._times = np.unique(np.concatenate(numbers)) * self.grid
        self.epochs = len(self._times)
        self._cuts = {
            kind: (np.searchsorted(column, self._times), np.searchsorted(column, self._times + self.grid))
            for kind, column in dates.items()
        }
        # Dates were for the epochs; queries get what they asked for.
        self._tables = {
            kind: {name: np.require(self._tables[kind][name], requirements=["C", "W"]) for name in needs[kind]}
            for kind in needs
        }  # writable: Arrow's arrays are not, and compiled code tells the two apart

    def prepare(self, index: int, peers: int) -> None:
        """They are there."""

    def time(self, number: int) -> int:
        """The grid's time at which an epoch begins."""
        return int(self._times[number])

    def share(self, number: int, index: int, peers: int) -> Share:
        """A contiguous part of each kind."""
        parts = {}
        for kind, table in self._tables.items():
            begins, ends = self._cuts[kind]
            low, high = _part(int(begins[number]), int(ends[number]), index, peers)
            parts[kind] = {name: column[low:high] for name, column in table.items()}
        return parts


def with_dates(needs: Needs) -> dict[str, list[str]]:
    """The columns that a query reads, and dates, which `Given` needs."""
    return {kind: list(dict.fromkeys((*names, "date_time"))) for kind, names in needs.items()}


def with_plain(needs: Needs) -> dict[str, list[str]]:
    """All plain columns of each kind, and whatever else a query reads: what an oracle is given."""
    return {kind: list(dict.fromkeys((*plain, *needs.get(kind, ())))) for kind, plain in COLUMNS.items()}


def _part(first: int, last: int, index: int, peers: int) -> tuple[int, int]:
    length = last - first
    return first + length * index // peers, first + length * (index + 1) // peers


def _by_date(table: Mapping[str, Column]) -> Mapping[str, Column]:
    dates = table["date_time"]
    if len(dates) < 2 or bool((dates[1:] >= dates[:-1]).all()):
        return table
    order = np.argsort(dates, kind="stable")
    return {name: column[order] for name, column in table.items()}
