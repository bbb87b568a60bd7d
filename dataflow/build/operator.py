"""An operator at run time: a name, ports, and a step that the worker calls when there is something to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.build.cuts import Keeps
from dataflow.channels.ports import InputPort, OutputPort

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow

Step = Callable[[], None]


def _nothing() -> None:
    """The step of an operator that never has anything to do by itself, such as an input."""


class Operator:
    """One operator on one worker. `number` is its node's, so earlier operators run first in a sweep."""

    __slots__ = (
        "active",
        "dataflow",
        "has_tasks",
        "inputs",
        "keeps",
        "name",
        "number",
        "outputs",
        "owed",
        "step",
        "watches_frontier",
    )

    def __init__(self, dataflow: Dataflow, number: int, name: str) -> None:
        self.dataflow = dataflow
        self.number = number
        self.name = name
        self.inputs: list[InputPort] = []
        self.outputs: list[OutputPort] = []
        self.step: Step = _nothing
        self.keeps = Keeps.UNKNOWN  # from one time to the next
        self.watches_frontier = False  # whether a change of an input frontier is a reason to run
        self.active = False
        self.has_tasks = False  # which may wait for the outside: a source, an asynchronous sink
        self.owed: list[tuple[int, int]] = []  # (sender, weight) of data from others that waits to be acknowledged

    @property
    def label(self) -> str:
        """How errors and explanations call it: 'map (#3)'."""
        return f"{self.name} (#{self.number})"

    def activate(self) -> None:
        """Asks the worker to run the step soon. O(log active)."""
        if not self.active:
            self.active = True
            self.dataflow.schedule(self.number)

    @property
    def queued(self) -> int:
        """How many messages wait at its inputs."""
        return sum(len(port.queue) for port in self.inputs)
