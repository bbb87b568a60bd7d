"""Probes: how far a stream has come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataflow.errors import ConstructionError
from dataflow.run.signal import Signal
from dataflow.time.antichain import Antichain
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

import trio


class Probe:
    """Looks at the frontier of a stream: the times at which records may still appear on it, on any worker.

    A probe is not an operator and costs nothing while nobody waits.
    """

    def __init__(self, stream: Stream[object]) -> None:
        stream.require_usable("a probe")
        self._dataflow = stream.scope.dataflow
        self._domain = stream.scope.domain
        self.source = stream.source
        self._index = -1  # of that location, once built
        self._waiting: list[tuple[Time, Signal]] = []
        self._dataflow.watch(self.source, self._moved)

    @property
    def frontier(self) -> Antichain:
        """The times that may still appear; empty when the stream has ended."""
        here = self._location()
        return self._dataflow.tracker.frontier(here)

    def passed(self, time: Time) -> bool:
        """Whether `time` can no longer appear (nor anything before it)."""
        here = self._location()
        return not self._dataflow.tracker.could_see(here, self._domain.normal(time))

    @property
    def done(self) -> bool:
        """Whether nothing can appear any more."""
        return not len(self.frontier)

    async def wait_passed(self, time: Time) -> None:
        """Waits until `time` can no longer appear. A checkpoint; only if the time passes in the very moment of waiting,
        because of what this worker does then, others have their turn every 16th time, or each half millisecond."""
        time = self._domain.normal(time)
        dataflow = self._dataflow
        if dataflow.dropped:
            dataflow.require_alive()
        here = self._index if self._index >= 0 else self._location()
        could_see = dataflow.tracker.could_see
        if not could_see(here, time):
            await trio.lowlevel.checkpoint()
            return
        # What was just sent may be all that is missing, and the answer to it may be a moment away.
        if not dataflow.pump.outlasts(partial(could_see, here, time)):
            await dataflow.pump.breathe()
            return
        entry = (time, Signal())
        self._waiting.append(entry)
        meter = dataflow.pump.meter
        meter.await_begins()
        try:
            await entry[1].wait()
        finally:
            meter.await_ends()
            self._waiting.remove(entry)
        if not self.passed(time):
            self._dataflow.require_alive()

    async def wait_done(self) -> None:
        """Waits until nothing can appear any more."""
        while not self.done:
            await self.wait_passed(min(self.frontier))
        await trio.lowlevel.checkpoint()

    @property
    def awaited(self) -> list[Time]:
        """The times that somebody waits for."""
        return [time for time, _ in self._waiting]

    def _moved(self) -> None:
        if self._waiting:
            could_see, here = self._dataflow.tracker.could_see, self._location()
            for time, signal in self._waiting:
                if not could_see(here, time):
                    signal.set()

    def wake_all(self) -> None:
        """The dataflow has ended: nobody needs to wait any longer."""
        for _, signal in self._waiting:
            signal.set()

    def _location(self) -> int:
        if self._index < 0:
            if not self._dataflow.built:
                raise ConstructionError("a probe tells nothing before its dataflow is complete")
            self._index = self._dataflow.graph.index(self.source)
        return self._index

    def __repr__(self) -> str:
        operator = self._dataflow.operators[self.source.node]
        return f"<probe of output {self.source.port} of {operator.label}>"


def probe(stream: Stream[object]) -> Probe:
    """Something to ask, and to wait on, for how far the stream has come."""
    made = Probe(stream)
    stream.scope.dataflow.probes.append(made)
    return made
