"""A dataflow inside an operator: on one worker of its own, stepped by hand, time after time.

Whoever has it gives it the records of a time and gets what comes out at that time, before anything else happens. So
nothing in it may wait for the outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.comm.transport import InProcess
from dataflow.errors import ConstructionError, TimeError
from dataflow.run.pump import Pump

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.values import Record

Build = Callable[[Mapping[str, "Stream[Record]"]], "Stream[Record]"]


class Inside:
    """What a function builds of some streams, by name. Costs: as much as a dataflow on one worker, for each time."""

    def __init__(self, name: str, streams: Sequence[str], build: Build) -> None:
        self._name = name
        self._pump = Pump(0, 1, warn_after=None)
        self._pump.transport = InProcess([self._pump])
        self._out: list[tuple[int, Record]] = []
        with self._pump.build(name, int) as scope:
            made = {stream: scope.input(stream) for stream in streams}
            result = build({stream: made[stream][1] for stream in streams})
            if getattr(result, "scope", None) is not scope:
                raise ConstructionError(f"{name} returns a stream that it made of those it was given, not {result!r}")
            result.inspect(lambda time, record: self._out.append((time, record)))
        self._inputs = {stream: handle for stream, (handle, _) in made.items()}
        (dataflow,) = self._pump.dataflows
        for operator in dataflow.operators:
            if operator.has_tasks:
                raise ConstructionError(
                    f"{name}: {operator.label} waits for the outside, and this dataflow is inside an operator: put "
                    "sources, sinks and timers outside"
                )
        self._step()

    def _step(self) -> None:
        while self._pump.busy:
            self._pump.step_now()

    def at(self, time: int, arrivals: Mapping[str, Sequence[Record]]) -> list[Record]:
        """What comes out at a time, which is after those before, of what goes in."""
        for stream, handle in self._inputs.items():
            handle.advance_to(time)
            if arrivals.get(stream):
                handle.send([*arrivals[stream]])
        for handle in self._inputs.values():
            handle.advance_to(time + 1)
        self._step()
        out, self._out = self._out, []
        for other, record in out:
            if other != time:
                raise TimeError(
                    f"{self._name} gave {record!r} at {other}, and not at {time}, when its records arrived: results "
                    "come out at the time of a record"
                )
        return [record for _, record in out]
