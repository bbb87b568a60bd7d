"""Somebody waits, and nothing moves: a line on standard error that says for what, and who holds it.

A wait is suspicious if it is one that only this computation can end (a probe's, or for room), and for a while neither
what it waits for has come nearer nor the dataflow has had anything to do. It is not, if the outside may end it: a task
of an operator (a source, an asynchronous sink) holds the time that is waited for. A main that sleeps, or waits for the
outside itself, waits for nothing of ours. Where only other workers hold the time, they may be at work, and it takes
longer to become suspicious.

Each line makes the next one wait ten times as long, so that a program which is slow on purpose says little.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import trio

from dataflow.comm.flow import ON_ITS_WAY
from dataflow.progress.graph import Location, Source
from dataflow.run.explain import holders
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.operators.probe import Probe
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump

_LOOKS = 5  # in the time that makes a wait suspicious
_ELSEWHERE = 6  # so many times longer, if others hold what is waited for
_RARER = 10  # so many times later the next line may come

Key: TypeAlias = tuple[object, ...]
"""What is waited for, and how near it is: while this stays the same, nothing moves."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why a wait is suspicious."""

    text: str
    here: bool  # whether something on this worker holds what is waited for


class Watch:
    """Looks at one worker's waits now and then. A look costs O(probes); a suspicion, an explanation."""

    def __init__(self, pump: Pump, after: float) -> None:
        """`after` so many seconds in which nothing moves, a line."""
        self._pump = pump
        self._gap = after
        self._tick = after / _LOOKS
        self._waited: dict[Key, float] = {}

    async def run(self) -> None:
        """Looks for as long as the worker lives."""
        last = trio.current_time()
        while True:
            await trio.sleep(self._tick)
            now = trio.current_time()
            if now - last > 2 * self._tick:
                self._waited.clear()  # this worker was busy, or stopped, and so was whatever it waits for
            last = now
            self.look()

    def look(self) -> None:
        """One tick has passed since the last look."""
        waits = self._waits()
        self._waited = {key: self._waited.get(key, -self._tick) + self._tick for key in waits}
        for key, seconds in self._waited.items():
            if seconds // self._gap == (seconds - self._tick) // self._gap:
                continue  # a suspicion is not for every look
            suspicion = waits[key].suspicion()
            if suspicion is not None and seconds >= self._gap * (1 if suspicion.here else _ELSEWHERE):
                self._say(suspicion, seconds)
                return

    def _say(self, suspicion: Suspicion, seconds: float) -> None:
        self._gap *= _RARER
        print(
            f"worker {self._pump.index} of {self._pump.peers} has waited {seconds:g} seconds for {suspicion.text}. "
            "`print(worker.explain())` says more; if it is meant to be so, `execute(..., warn_after=None)` is silent.",
            file=sys.stderr,
            flush=True,
        )

    def _waits(self) -> dict[Key, _ProbeWait | _RoomWait]:
        waits: dict[Key, _ProbeWait | _RoomWait] = {}
        for dataflow in self._pump.dataflows:
            if dataflow.busy or not dataflow.built:
                continue
            for probe in dataflow.probes:
                for time in probe.awaited:
                    waits[id(probe), repr(time), repr(probe.frontier)] = _ProbeWait(dataflow, probe, time)
        if self._pump.room_waiters:
            flow = self._pump.flow
            waits["room", flow.on_its_way, *flow.pressing] = _RoomWait(self._pump)
        return waits


@dataclass(frozen=True, slots=True)
class _ProbeWait:
    """Somebody waits for a probe to pass a time."""

    dataflow: Dataflow
    probe: Probe
    time: Time

    def suspicion(self) -> Suspicion | None:
        """Who holds the time; None if the outside may let go of it."""
        held = list(holders(self.dataflow, self.probe, self.time))
        if not held or any(self._outside(location) for location, _ in held):
            return None
        here = [(location, time) for location, time in held if self._here(location, time)]
        names = [f"{self.dataflow.operators[location.node].label} at {time!r}" for location, time in here or held]
        more = f" and {len(names) - 3} others" if len(names) > 3 else ""
        where = "on this worker" if here else "on other workers"
        entries = any(not self.dataflow.operators[location.node].inputs for location, _ in here)
        advice = " (advance that input, or close it)" if entries else ""
        text = (
            f"{self.probe!r} of {self.dataflow.name!r} to pass {self.time!r}, and nothing moves: held by "
            f"{', '.join(names[:3])}{more} {where}{advice}"
        )
        return Suspicion(text, bool(here))

    def _outside(self, location: Location) -> bool:
        return isinstance(location, Source) and self.dataflow.operators[location.node].has_tasks

    def _here(self, location: Location, time: Time) -> bool:
        operator = self.dataflow.operators[location.node]
        if isinstance(location, Source):
            return time in operator.outputs[location.port].held
        return any(queued == time for queued, _ in operator.inputs[location.port].queue)


@dataclass(frozen=True, slots=True)
class _RoomWait:
    """Somebody waits for room to send."""

    pump: Pump

    def suspicion(self) -> Suspicion | None:
        """Whose data is on its way; None if sinks keep it, which write to the outside."""
        senders = sorted(sender for sender, why in self.pump.flow.pressing if why == ON_ITS_WAY)
        if not senders:
            return None
        names = ", ".join(f"worker {sender}" for sender in senders)
        queued = [operator for dataflow in self.pump.dataflows for operator in dataflow.operators if operator.queued]
        at = f"{queued[0].label} on this worker does not take it" if queued else "other workers do not take it"
        text = f"room to send, and nothing moves: too much data of {names} is on its way, and {at}"
        return Suspicion(text, bool(queued))
