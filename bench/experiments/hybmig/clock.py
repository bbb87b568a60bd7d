"""A virtual clock: one server that does so many predicate evaluations a second, first come, first served.

What waits, waits; a record's results come evenly while it is processed. While nothing waits, there is time for work in
the background.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.experiments.hybmig.counting import Contents
from bench.experiments.hybmig.methods import Method, Steady
from bench.experiments.hybmig.setting import Arrival, Setting

Amounts = NDArray[np.float64]


@dataclass
class Course:
    """What is seen second by second, from `begin` on, and in all."""

    begin: int
    results: Amounts
    evaluations: Amounts
    tuples: Amounts  # at the end of each second: in states, or waiting
    total: float = 0.0  # evaluations for all that arrives after the start
    peak: int = 0  # tuples in states after any record from the start on
    silence: float = 0.0  # seconds at the start in which nothing is processed
    duration: float = math.inf  # of the migration, until the old plan is gone; infinite if that is not reached
    delays: list[float] = field(default_factory=list)  # of records from the start on

    @property
    def seconds(self) -> Amounts:
        """The times of the entries."""
        return np.arange(self.begin, self.begin + self.results.size, dtype=float)

    def spread(self, into: Amounts, begin: float, end: float, amount: float) -> None:
        """Something that happens evenly from one time to another."""
        first, last = math.floor(begin), math.floor(end)
        for second in range(max(first, self.begin), min(last, self.begin + into.size - 1) + 1):
            share = (min(end, second + 1) - max(begin, second)) / (end - begin) if end > begin else 1.0
            into[second - self.begin] += share * amount


class Server:
    """Does the work of a method at a rate."""

    def __init__(self, setting: Setting, capacity: float) -> None:
        self._capacity = capacity  # evaluations per second; may be infinite
        self._free = -setting.lead
        begin, size = -int(setting.lead), int(setting.lead) + math.ceil(setting.until)
        self._seen = Course(begin, np.zeros(size), np.zeros(size), np.zeros(size))
        self._sizes: list[tuple[float, float]] = []  # when, and how many tuples there were from then on
        self._ends: list[float] = []  # of records

    def serve(self, process: Steady, arrival: Arrival, counts: bool = False) -> None:
        """Processes a record, when it is its turn. `counts`: the migration has started."""
        self._free = max(self._free, arrival.time)
        was_open = not process.is_over()
        done = process.arrive(arrival)
        if counts and was_open and process.is_over():
            self._seen.duration = self._free
        self._do(done.evaluations, done.results + done.released)
        self._ends.append(self._free)
        tuples = process.tuples
        self._sizes.append((self._free, tuples))
        if counts:
            self._seen.total += done.evaluations
            self._seen.peak = max(self._seen.peak, tuples)
            self._seen.delays.append(self._free - arrival.time)

    def begin(self, process: Steady) -> None:
        """The migration starts. What must be done before anything else grows states evenly."""
        self._free = max(self._free, 0.0)
        begin, low = self._free, process.tuples
        work = process.start(0.0)
        self._do(work, 0)
        self._seen.total += work
        self._seen.silence = self._free - begin
        if process.is_over():
            self._seen.duration = self._free
        for second in range(math.ceil(begin), math.ceil(self._free)):
            grown = (second - begin) / (self._free - begin) * (process.tuples - low)
            self._sizes.append((float(second), low + grown))

    def spare(self, process: Steady, until: float) -> None:
        """Nothing waits until then: there is time for work in the background."""
        if process.is_over() or until <= self._free:
            return
        begin = self._free
        spent = process.background((until - begin) * self._capacity, begin)
        self._do(spent, 0)
        self._seen.total += spent
        if process.is_over():
            self._seen.duration = self._free

    def _do(self, evaluations: float, results: float) -> None:
        begin, self._free = self._free, self._free + evaluations / self._capacity
        self._seen.spread(self._seen.evaluations, begin, self._free, evaluations)
        self._seen.spread(self._seen.results, begin, self._free, results)

    def finish(self, arrivals: Sequence[Arrival]) -> Course:
        """Fills in the tuples by second: those in states, and those that wait."""
        times, sizes = np.array(self._sizes).T
        came, went = np.array([arrival.time for arrival in arrivals]), np.array(self._ends)
        at = self._seen.seconds + 1
        last = np.searchsorted(times, at, side="right") - 1
        waiting = np.searchsorted(came, at, side="right") - np.searchsorted(went, at, side="right")
        self._seen.tuples[:] = sizes[np.maximum(last, 0)] + waiting
        return self._seen


def run(setting: Setting, method: Method, capacity: float = math.inf) -> Course:
    """A migration in a setting, at a capacity: it starts at zero, once what came before is done."""
    process, server = method(setting.old, Contents(setting.names, setting.window)), Server(setting, capacity)
    arrivals = setting.arrivals()
    shown = [arrival for arrival in arrivals if arrival.time >= -setting.lead]
    for arrival in arrivals[: len(arrivals) - len(shown)]:
        process.arrive(arrival)
    before = sum(arrival.time < 0 for arrival in shown)
    for arrival in shown[:before]:
        server.serve(process, arrival)
    server.begin(process)
    for arrival in shown[before:]:
        server.spare(process, arrival.time)
        server.serve(process, arrival, counts=True)
    return server.finish(shown)
