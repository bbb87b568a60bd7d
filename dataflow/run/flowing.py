"""Flow control of one worker: what it has on its way, and who waits until that is less."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import trio

from dataflow.comm.flow import ON_ITS_WAY, Flow
from dataflow.comm.messages import AnyMessage, Consumed, Data, Pressure
from dataflow.comm.transport import Transport
from dataflow.run.pressures import PressureClock
from dataflow.run.signal import Waiters


class Flowing(ABC):
    """A worker as far as it weighs what it sends. (A part of `Pump`.)"""

    index: int
    transport: Transport | None
    flow: Flow

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.room_waiters = Waiters()
        self.pressures = PressureClock()

    @abstractmethod
    def wake(self) -> None:
        """Wakes the pump: there is something to do."""

    @abstractmethod
    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to another worker."""

    @abstractmethod
    def broadcast(self, message: AnyMessage) -> None:
        """Sends a message to every other worker."""

    async def room(self) -> None:
        """Waits while too much data is on its way between workers. Always a checkpoint."""
        await self.wait_until(lambda: self.flow.open)

    async def wait_until(self, open: Callable[[], bool]) -> None:
        """Waits until `open()`, which can only become true when pressure ends. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while not open():
            await self.room_waiters.wait()

    def send_data(self, to: int, data: Data) -> None:
        """Sends data to another worker, and counts its weight as on its way."""
        assert self.transport is not None
        self.transport.send(to, data)
        pressure = self.flow.sent(self.index, data.size, to)
        if pressure is not None:
            self.flow_changed(pressure)
        self.wake()  # only a turn flushes the transport, and main may have sent this

    def took(self, sender: int, size: int) -> None:
        """Operators here have taken data of another worker: acknowledges it, when enough has come together."""
        acknowledge = self.flow.taken(sender, size)
        if acknowledge:
            self.send(sender, Consumed(self.index, acknowledge))

    def kept(self, dataflow: int, size: int) -> None:
        """Counts data that a sink of a dataflow has taken to write; a negative size when it has written it."""
        self.flow_changed(self.flow.kept(self.index, dataflow, size), dataflow)

    def flow_changed(self, pressure: bool | None, why: int = ON_ITS_WAY) -> None:
        """Broadcasts that this worker is under pressure, or no longer is; then whoever waits for room looks again."""
        if pressure is not None:
            self.pressures.look(self.flow.pressing)
            self.broadcast(Pressure(self.index, pressure, why))
            self.wake()  # only a turn flushes the transport
            if not pressure:
                self.make_room()

    def make_room(self) -> None:
        """Wakes whoever waits for room: some pressure has ended."""
        self.pressures.look(self.flow.pressing)
        self.room_waiters.wake()
