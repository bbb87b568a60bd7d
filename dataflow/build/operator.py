"""An operator at run time: a name, ports, and a step that the worker calls when there is something to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.build.cuts import Keeps
from dataflow.channels.ports import InputPort, OutputPort

if TYPE_CHECKING:
    from dataflow.members.following import Follows
    from dataflow.run.dataflow import Dataflow

Step = Callable[[], None]


def _nothing() -> None:
    """The step of an operator that never has anything to do by itself, such as an input."""


class Operator:
    """One operator on one worker. `number` is its node's, so earlier operators run first in a sweep."""

    __slots__ = (
        "active",
        "changes_times",
        "combines",
        "dataflow",
        "follows",
        "has_tasks",
        "inputs",
        "instead",
        "is_idle",
        "keeps",
        "kept",
        "name",
        "number",
        "outputs",
        "owed",
        "routes",
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
        self.instead = ""  # if it cannot follow the membership, what could
        self.combines = True  # whether records of one time belong together in it, if it waits for times to be complete
        self.follows: Follows | None = None  # if it follows the membership, and does not keep nothing anyway
        self.changes_times = False  # whether records leave at other times of the root than those at which they came
        self.routes = False  # whether it sends records where they belong itself
        self.watches_frontier = False  # whether a change of an input frontier is a reason to run
        self.active = False
        self.is_idle = False  # whether its step is run because there is nothing else to do
        self.has_tasks = False  # which may wait for the outside: a source, an asynchronous sink
        self.kept = 0  # bytes that its tasks have taken and not dealt with
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
