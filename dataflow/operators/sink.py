"""Sinks: where records leave the dataflow, at once or after waiting for the outside."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from dataflow.build.builder import Context, unary
from dataflow.build.capability import Capability
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.comm.flow import weigh
from dataflow.errors import ConstructionError
from dataflow.run.signal import Signal
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

Write: TypeAlias = Callable[[Time, Columns], object] | Callable[[Time, list[Record]], object]
"""A user's function of a time and a batch, columns or rows as the stream has them; it may be a coroutine function."""


def sink(stream: Stream[object], write: Write, name: str = "sink") -> Stream[Never]:
    """Calls `write(time, batch)` for each batch; if it is a coroutine function, awaits it, one batch after the other.

    The stream that is returned carries no records. Its frontier says what has been written: a capability is kept for
    each batch until its write is done, so a probe behind a sink waits for the outside, and so does the end of the
    worker.
    """
    if not callable(write):
        raise ConstructionError(f"{name} needs a function of a time and a batch, not {write!r}")
    if inspect.iscoroutinefunction(write) or inspect.iscoroutinefunction(getattr(write, "__call__", None)):  # noqa: B004
        return unary(stream, name, lambda context: _AsyncSink(context, write).step)

    def step(input: InputPort, output: OutputPort) -> None:
        for message, batch in input:
            result = write(message.time, batch)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError(f"{name}: the function returned a coroutine: pass the `async def` function itself")

    def make(context: Context) -> Callable[[InputPort, OutputPort], None]:
        context.follow()  # what it writes stays where it was written
        return step

    return unary(stream, name, make)


class _AsyncSink:
    """A queue between the operator, which must not wait, and a task, which may. What is in it is weighed, and slows the
    sources down."""

    def __init__(self, context: Context, write: Write) -> None:
        self._write = write
        self._context = context
        self._queue: deque[tuple[Capability, Any, int]] = deque()
        self._signal = Signal()
        context.follow()
        context.spawn(self._run)

    def step(self, input: InputPort, output: OutputPort) -> None:
        """Queues what has arrived, each batch with the capability that keeps its time open."""
        for message, batch in input:
            size = weigh(batch)
            self._queue.append((message.retain(), batch, size))
            self._context.keep(size)
        if self._queue:
            self._signal.set()

    async def _run(self) -> None:
        self._context.enter_write()
        while True:
            await self._signal.wait()
            while self._queue and not self._context.dropped:
                capability, batch, size = self._queue.popleft()
                try:
                    writing = self._write(capability.time, batch)
                    assert inspect.isawaitable(writing)  # `sink` has seen that it is a coroutine function
                    await writing
                except Exception as error:
                    error.add_note(f"writing a batch at {capability.time!r}")
                    raise
                self._context.keep(-size)
                capability.drop()
