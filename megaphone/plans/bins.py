"""A bin whose plan can change, as a store of rows sees it: times and records in, results out. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from dataflow.state.values import Key, Record, State, Value
from megaphone.plans.door import PlanView

Arrivals: TypeAlias = Mapping[str, list[Record]]
Entries: TypeAlias = dict[tuple[Key, ...], Value]
"""A bin as plain data, in entries that travel one by one."""


class Asked(NamedTuple):
    """A replan of a bin: as of a time, another plan."""

    time: int
    plan: str
    method: str
    share: bool = True
    background: bool = True
    order: str = "time"


class PlanBin(ABC):
    """A plan at work in a bin, and the replans that wait. `run` does everything at a time; times come in order."""

    def __init__(self) -> None:
        self.last = -1  # everything up to this time has been done
        self.queue: list[Asked] = []  # invariant: in the order of their times

    def note(self, asked: Asked) -> None:
        """Takes a replan, as of a time after `last`. It begins in `run` then, or when the one before is over."""
        assert asked.time > self.last, f"a plan as of {asked.time}, and everything up to {self.last} has been done"
        self.queue = sorted([*self.queue, asked])

    def run(self, time: int, arrivals: Arrivals) -> list[Record]:
        """Everything at a time, after `last`."""
        results = self._end(time)
        while self.queue and self.queue[0].time <= time and not self._migrates:
            self._replan(self.queue.pop(0), time)
        results += self._apply(time, arrivals)
        self.last = time
        return results

    def work(self, budget: int) -> None:
        """Does some background work, about as many pairs or records as the budget says. What waited for a migration
        that this ends begins: nothing after `last` has been done."""
        self._work(budget)
        while self.queue and self.queue[0].time <= self.last and not self._migrates:
            self._replan(self.queue.pop(0), self.last + 1)

    @property
    def wakes(self) -> int | None:
        """The least time after `last` at which something must be done, although nothing may arrive."""
        times = [asked.time for asked in self.queue if asked.time > self.last]
        own = self._wakes()
        return min(times if own is None else [*times, own], default=None)

    def _plans(self) -> tuple[str, ...]:
        return tuple(asked.plan for asked in self.queue)

    # What plans are

    @property
    @abstractmethod
    def _migrates(self) -> bool: ...

    @abstractmethod
    def _end(self, time: int) -> list[Record]:
        """Ends a migration that is over before anything at a time is done; results that it held back."""

    @abstractmethod
    def _replan(self, asked: Asked, time: int) -> None:
        """Begins a migration as of a time."""

    @abstractmethod
    def _apply(self, time: int, arrivals: Arrivals) -> list[Record]:
        """Applies what arrives at a time."""

    @abstractmethod
    def _wakes(self) -> int | None: ...

    @abstractmethod
    def _work(self, budget: int) -> None: ...

    @property
    @abstractmethod
    def can_work(self) -> bool:
        """Whether there is something to do in the background."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing in it but a plan."""

    @property
    @abstractmethod
    def plan(self) -> PlanView:
        """What is known of its plan."""

    # To travel, and to look at

    @abstractmethod
    def entries(self) -> Iterator[tuple[tuple[Key, ...], Value]]:
        """All of it as plain data."""

    @abstractmethod
    def weight(self) -> int:
        """About how many bytes that has when it travels. O(its edges)."""

    @abstractmethod
    def view(self) -> Mapping[Key, State]:
        """By key, what it has."""


class BinMaker(ABC):
    """Makes bins of one operator. `streams`: the names of its inputs. `first`: the plan with which all begin."""

    streams: tuple[str, ...]
    first: str

    @abstractmethod
    def new(self, number: int, plan: str) -> PlanBin:
        """A bin that has nothing in it but a plan."""

    @abstractmethod
    def arrived(self, number: int, entries: Entries) -> PlanBin:
        """A bin that has travelled. ValueError if the entries cannot be right."""

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """What its bins have in them: a store of another description cannot take them."""
