"""From parts to a manifest, on worker 0; and the news of it, on every worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Never

from dataflow.build.builder import Context, unary
from dataflow.build.capability import Capability
from dataflow.build.cuts import Keeps
from dataflow.channels.pact import Audience, ToWorker
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.recovery.parts import SnapshotOutcome, SnapshotPart
from dataflow.run.signal import Signal
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

Conclude = Callable[[list[SnapshotPart]], Awaitable[SnapshotOutcome]]


def add_manifest(parts: Stream[SnapshotPart], conclude: Conclude) -> Stream[SnapshotOutcome]:
    """Calls `conclude` on worker 0 with all workers' parts of a cut, in the order of cuts. What became of each snapshot
    comes out."""
    return unary(
        parts,
        "manifest",
        lambda context: _Manifests(context, conclude).step,
        pact=ToWorker(0),
        frontier=True,
        keeps=Keeps.NOTHING,
    )


class _Manifests:
    """Gathers parts by cut, and makes one manifest after the other."""

    def __init__(self, context: Context, conclude: Conclude) -> None:
        self._context = context
        self._conclude = conclude
        self._parts: dict[Time, list[SnapshotPart]] = {}
        self._due = context.notificator()
        self._queue: deque[tuple[Capability, list[SnapshotPart]]] = deque()
        self._signal = Signal()
        context.spawn(self._run)

    def step(self, input: InputPort[SnapshotPart], output: OutputPort[SnapshotOutcome]) -> None:
        """A cut's parts are all there when none can come any more at its time."""
        for message, parts in input:
            self._due.notify_at(message.retain())
            self._parts.setdefault(message.time, []).extend(parts)
        for capability in self._due:
            self._queue.append((capability.clone(), self._parts.pop(capability.time)))
            self._signal.set()

    async def _run(self) -> None:
        while True:
            await self._signal.wait()
            while self._queue and not self._context.dropped:
                capability, parts = self._queue.popleft()
                outcome = await self._conclude(parts)
                self._context.outputs[0].give(capability, [outcome])
                capability.drop()


def add_commit(
    outcomes: Stream[SnapshotOutcome], conclude: Callable[[SnapshotOutcome], Awaitable[None]]
) -> Stream[Never]:
    """Calls `conclude` with each outcome on every worker, in order. The dataflow is complete only when that is done;
    what comes out, which is nothing, has passed a cut when all workers are done with it."""
    return unary(
        outcomes,
        "commit",
        lambda context: _Commits(context, conclude).step,
        pact=Audience(),
        keeps=Keeps.NOTHING,
    )


class _Commits:
    """A queue between the operator, which must not wait, and a task, which may."""

    def __init__(self, context: Context, conclude: Callable[[SnapshotOutcome], Awaitable[None]]) -> None:
        self._context = context
        self._conclude = conclude
        self._queue: deque[tuple[Capability, SnapshotOutcome]] = deque()
        self._signal = Signal()
        context.spawn(self._run)

    def step(self, input: InputPort[SnapshotOutcome], output: OutputPort[Never]) -> None:
        """Queues what has arrived, with the capability that keeps the dataflow alive."""
        for message, outcomes in input:
            for outcome in outcomes:
                self._queue.append((message.retain(), outcome))
                self._signal.set()

    async def _run(self) -> None:
        while True:
            await self._signal.wait()
            while self._queue and not self._context.dropped:
                capability, outcome = self._queue.popleft()
                await self._conclude(outcome)
                capability.drop()
