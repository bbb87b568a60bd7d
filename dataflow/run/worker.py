"""The worker as a program sees it: the few things that main does with the worker that it is given.

All the work is done by the worker's `Pump` (`dataflow.run.pump`). The engine, the transports, the simulation and
measurements talk to the pump; they find it with `pump_of`. Programs need not know that it exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from dataflow.run.explain import explain
from dataflow.run.limits import StateLimit
from dataflow.run.resumption import resumption_of

if TYPE_CHECKING:
    from dataflow.build.hooks import DecisionLoop
    from dataflow.build.scope import Scope
    from dataflow.members.requests import Members, Placement, ScaleChange
    from dataflow.run.pump import Pump
    from dataflow.time.timestamp import TimeType

A = TypeVarTuple("A")  # what main takes beside its worker
R = TypeVar("R")  # what main returns


class Worker:
    """One of `peers` workers that together run the same dataflows. `index` is its number among them."""

    __slots__ = ("__weakref__", "_pump", "index", "peers")

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self.index = pump.index
        self.peers = pump.peers

    def __repr__(self) -> str:
        return f"<worker {self.index} of {self.peers}>"

    def dataflow(self, name: str | None = None, time: TimeType = int) -> AbstractContextManager[Scope]:
        """Builds a dataflow: `with worker.dataflow() as scope: ...`. It starts when the block ends.

        `time` is the type of its timestamps: int, `Product(int, int)`, or a class of your own (see Timestamp).
        """
        return self._pump.build(name, time)

    def limit_state(self, most: int | str) -> None:
        """Sets a limit for the state that operators of this worker keep: bytes, "2GB", or "60%" of the memory that
        there is for this process. Beyond it the run ends with `StateTooLarge`, which names the operators, before the
        system kills the process. Looked at four times in a second."""
        self._pump.meter.state_limit = StateLimit(most)

    async def step(self) -> bool:
        """Does what there is to do now; whether there is more. A checkpoint."""
        return await self._pump.step()

    def drop_dataflow(self, scope: Scope) -> None:
        """Ends a dataflow on every worker, whatever it was doing. Whoever waits for it gets DataflowDropped."""
        scope.dataflow.drop()
        self._pump.wake()

    @property
    def resume_at(self) -> int:
        """The time from which main feeds its inputs: 0, or, where a run goes on from a snapshot, that snapshot's. Of
        several dataflows it is the first one's; `scope.resume_at` tells each one's. For a worker that has joined
        others, the time at which it did."""
        joined = self._pump.changes.resume_at
        return resumption_of(self._pump.recovery).time if joined is None else joined

    @property
    def saved(self) -> object:
        """What the main of this worker's number had saved when the snapshot was taken; None if nothing."""
        return self.saved_by_all.get(self.index)

    @property
    def saved_by_all(self) -> Mapping[int, object]:
        """The same, of all workers that there were then: there may have been more, or fewer."""
        return resumption_of(self._pump.recovery).saved

    def save(self, value: object) -> None:
        """Says what main needs to go on from where its inputs are now: `saved`, after a recovery. Save whenever you
        have advanced; a snapshot at a time has what was saved last at or before it. The value must be plain data."""
        for dataflow in self._pump.dataflows:
            if dataflow.keeper is not None:
                dataflow.keeper.main.save(value)

    def scale(
        self,
        workers: int,
        *,
        placement: Placement | None = None,
        strategy: object = None,
        within: int | None = None,
    ) -> ScaleChange:
        """Asks for so many workers, and returns at once: main must go on feeding its inputs. See docs/scaling.md.

        `placement`: a function from what is known of an operator (`Places`) to the worker of each shard; even, unless
        given. `strategy`: how state is moved. `within`: refuses a change that would take effect so much later than
        where the inputs are. The same number asked for on several workers is one request.
        """
        if type(workers) is not int or workers < 1:
            raise ValueError(f"workers must be a positive integer, not {workers!r}")
        return self._pump.changes.asking.scale(workers, placement, strategy, within)

    def drain(self, *workers: int) -> ScaleChange:
        """Asks for some workers to leave: their state moves to the others."""
        return self._pump.changes.asking.scale(tuple(workers), None, None, None)

    def members(self) -> AsyncIterator[Members]:
        """Who takes part: now, and after each change. `async for members in worker.members(): ...`"""
        return self._pump.changes.asking.members()

    def show_loop(self, loop: DecisionLoop) -> None:
        """Has a loop that steers this worker be seen by those who look at the run (docs/operating.md)."""
        self._pump.meter.loops.append(loop)

    async def room(self) -> None:
        """Waits while too much data is on its way between workers. Always a checkpoint."""
        await self._pump.room()

    def explain(self) -> str:
        """For a dataflow that seems stuck: what is outstanding, who holds it, and what waits for it."""
        return explain(self._pump)


def pump_of(worker: Worker) -> Pump:
    """The machinery behind a worker: for the engine's own parts and for measurements, not for programs."""
    return worker._pump
