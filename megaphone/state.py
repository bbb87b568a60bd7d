"""S: holds bins and applies records to them in the order of time (section 3.4).

S has an input for the records of each input of F, and one for migrating state. It installs a bin when all of it has
arrived. It applies the records of a time, those that arrived and those that were put off until then, once neither input
can deliver that time any more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedDict

from dataflow.lowlevel import Capability, Context, InputPort, MessageCapability, OutputPort
from dataflow.order import Time
from megaphone.portions import Arriving, Piece, Place
from megaphone.returning import Returning
from megaphone.routing import Shared
from megaphone.statistics import Reporter
from megaphone.tally import HeavyRows

_NAMED = 8  # keys that an error names

Apply = Callable[[Time, list[list[Any]], Any, "Postponer"], Iterable[Any]]
"""(time, records by input, the state of their bin, postponer): what comes out."""


class Postponer:
    """Puts records of the current bin off until a later time (the extended notificator of section 4.3.2)."""

    __slots__ = ("_hosted", "now", "place")

    def __init__(self, hosted: Host) -> None:
        self._hosted = hosted
        self.place: Place = 0
        self.now: Time = None

    def notify_at(self, time: Time, record: Any, port: int = 0) -> None:
        """Presents `record` to the fold again, at a later time."""
        if not time > self.now:
            raise ValueError(f"a record can be put off until later than {self.now!r}, not until {time!r}")
        self._hosted.put_off(self.place, time, (port, record))


class Host:
    """The step of S."""

    def __init__(
        self, context: Context, shared: Shared, keys: Sequence[Any], apply: Apply, bins: int, interval: float | None
    ) -> None:
        ports = len(keys)
        self._keys = keys  # of records, by input: for errors
        self._records: NDArray[np.int64] = np.zeros(bins, np.int64)  # that have come and been applied, by bin
        self._apart = 0  # records of the time at hand whose keys live apart
        self._heavy = None if interval is None else HeavyRows(keys)
        self._reporter = Reporter(context, context.outputs[1], bins, interval, self._counted, self._told)
        self._bins = shared.bins
        self._apply = apply
        self._ports = ports
        self._inputs: Sequence[InputPort] = context.inputs[:ports]
        self._arrivals: InputPort = context.inputs[ports]
        self._returning: Returning[tuple[int, Arriving]] = Returning(self._arrivals)  # keys that go back
        self._watched = list(context.inputs)  # a time is complete when none of these can deliver it
        self._output: OutputPort = context.outputs[0]
        self._waiting: SortedDict[Time, tuple[Capability, dict[Place, list[list[Any]]]]] = SortedDict()  # by place then
        self._hold: Capability | None = None  # invariant: at the least pending time, if anything is pending
        self._now: Capability | None = None  # while records are applied: the capability of their time
        self._postponer = Postponer(self)
        shared.state_changed = context.activate

    def step(self) -> None:
        """State first, then what is complete, in the order of time."""
        self._install_arrivals()
        self._install_returning()
        self._gather_records()
        self._hold_least_pending()
        self._apply_complete_times()
        self._reporter.end()

    def _install_arrivals(self) -> None:
        for message, pieces in self._arrivals:
            for piece in itertools.starmap(Piece, pieces):
                returned = self._bins.arrive(piece)
                if returned is not None:
                    assert piece.home is not None
                    self._returning.add(message, (piece.home, returned))
            self._take_over(message)

    def _install_returning(self) -> None:
        for capability, keys in self._returning.due():
            for number, returned in keys:
                self._bins.install_key(number, returned)
            self._take_over(capability)

    def _take_over(self, capability: Capability | MessageCapability) -> None:
        """Holds the right to send at the least pending time."""
        least = self._bins.least_pending
        if least is not None and (self._hold is None or least < self._hold.time):
            later = capability.delayed(least)
            if self._hold is not None:
                self._hold.drop()
            self._hold = later

    def _gather_records(self) -> None:
        for port, input in enumerate(self._inputs):
            for message, batch in input:
                self._reporter.saw(message)
                if message.time not in self._waiting:
                    self._waiting[message.time] = (message.retain(), {})
                groups = self._waiting[message.time][1]
                if self._heavy is not None:
                    self._heavy.watch(port, batch)
                for place, record in batch:
                    if place not in groups:
                        groups[place] = [[] for _ in range(self._ports)]
                    groups[place][port].append(record)

    def _hold_least_pending(self) -> None:
        """F may have taken bins with pending records: what nobody waits for here is let go."""
        least = self._bins.least_pending
        if self._hold is not None and least is None:
            self._hold.drop()
            self._hold = None
        elif self._hold is not None and least != self._hold.time:
            self._hold.downgrade(least)

    def _apply_complete_times(self) -> None:
        while (time := self._next_time()) is not None:
            if any(port.could_see(time) for port in self._watched):
                return
            self._apply_time(time)

    def _next_time(self) -> Time | None:
        least = self._bins.least_pending
        if not self._waiting:
            return least
        first = self._waiting.peekitem(0)[0]
        return first if least is None or first < least else least

    def _apply_time(self, time: Time) -> None:
        groups = self._take_groups(time)
        self._postponer.now = time
        results: list[Any] = []
        began = perf_counter_ns()
        for place, records in groups.items():
            self._postponer.place = place
            try:
                results.extend(self._apply(time, records, self._bins.state(place), self._postponer))
            except Exception as error:
                where = f"in bin {place}" if isinstance(place, int) else f"for the key {place[0]!r}, which is pinned,"
                error.add_note(f"{where} at {time!r}{self._among(records)}")
                raise
        self._reporter.spent(perf_counter_ns() - began, self._apart)
        assert self._now is not None
        self._output.give(self._now, results)
        self._reporter.report(time if type(time) is int else None)
        self._hold_least_pending()
        self._now.drop()
        self._now = None

    def _among(self, records: list[list[Any]]) -> str:
        """The keys of records, of which one is to blame for an error."""
        try:
            keys = dict.fromkeys(key(record) for key, part in zip(self._keys, records, strict=True) for record in part)
        except Exception:  # a record that was put off may be anything; the error that is being told matters more
            return ""
        names = [repr(key) for key in itertools.islice(keys, _NAMED)] + ["..."] * (len(keys) > _NAMED)
        return f", among records of {', '.join(names)}"

    def _take_groups(self, time: Time) -> dict[Place, list[list[Any]]]:
        """The records of a time by place, arrived and put off; and the right to send at that time."""
        if time in self._waiting:
            self._now, groups = self._waiting.pop(time)
        else:
            assert self._hold is not None
            self._now, groups = self._hold.clone(), {}
        self._count(groups)
        for place, records in self._bins.due(time).items():
            if place not in groups:
                groups[place] = [[] for _ in range(self._ports)]
            for port, record in records:
                groups[place][port].append(record)
        return groups

    def _count(self, groups: dict[Place, list[list[Any]]]) -> None:
        """Counts the records that have come, for statistics."""
        self._apart = 0
        for place, records in groups.items():
            if isinstance(place, int):
                self._records[place] += sum(map(len, records))
            else:
                self._apart += sum(map(len, records))

    def _counted(self) -> tuple[NDArray[np.int64], Callable[[int, int], NDArray[np.int64]]]:
        sizes = self._bins.sizes(len(self._records))
        return self._records, lambda first, end: sizes[first:end]

    def _told(self) -> tuple[Any, ...]:
        return () if self._heavy is None else self._heavy.take()

    def put_off(self, place: Place, time: Time, record: tuple[int, Any]) -> None:
        """Keeps a record until a later time, and the right to send then."""
        self._bins.put_off(place, time, (record,))
        assert self._now is not None
        self._take_over(self._now)
