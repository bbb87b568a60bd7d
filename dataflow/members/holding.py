"""What is sent from outside of operators while a worker is stopped: by main on inputs, by sources, on control streams.

A batch is held back under a capability of its output, and sent when the worker goes on: by the membership that holds
then. So nobody routes a record while it is being decided who takes part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.channels.pact import Batch
from dataflow.channels.ports import OutputPort
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow


class Holding:
    """Stands in for the channels of an output."""

    most: Time = None

    def __init__(self, output: OutputPort) -> None:
        self.output = output
        self._held: list[tuple[Time, Batch]] = []
        self.channels = output.swap([self])

    def prepare(self, batch: Batch) -> Batch:
        """Checks what would be refused where it is sent."""
        for channel in self.channels:
            channel.check(batch)
        return batch

    def push(self, time: Time, batch: Batch) -> None:
        """Keeps a batch, and the right to send it."""
        self.output.count(time, +1)
        self._held.append((time, batch))

    def check(self, batch: Batch) -> None:
        """What `prepare` does."""

    def release(self) -> None:
        """Sends what was kept, as it is routed now, and gives up the rights."""
        for time, batch in self._held:
            self.output.send(time, batch)
            self.output.count(time, -1)
        self._held.clear()


def hold(dataflow: Dataflow) -> list[Holding]:
    """Holds back whatever is given on outputs that start with a capability: others send only when they are run."""
    held = []
    for number, node in enumerate(dataflow.graph.nodes):
        for port, starts in enumerate(node.initial):
            if starts:
                output = dataflow.operators[number].outputs[port]
                held.append(Holding(output))
    return held


def restore(held: list[Holding]) -> None:
    """Puts the channels back. What is given from now on is sent at once."""
    for each in held:
        if not each.output.dataflow.dropped:
            each.output.swap(each.channels)


def release(held: list[Holding]) -> None:
    """Sends what was held back."""
    for each in held:
        if not each.output.dataflow.dropped:
            each.release()
