"""Sinks: where records leave the dataflow, at once or after waiting for the outside."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dataflow.builder import Context, unary
from dataflow.capability import Capability
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.errors import ConstructionError
from dataflow.order import Time
from dataflow.signal import Signal

if TYPE_CHECKING:
    from dataflow.stream import Stream


def sink(stream: Stream[Any], write: Callable[[Time, Any], Any], name: str = "sink") -> Stream[Any]:
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

    return unary(stream, name, lambda _: step)


_AHEAD = 8  # batches that an asynchronous sink takes before they are written


class _AsyncSink:
    """A queue between the operator, which must not wait, and a task, which may."""

    def __init__(self, context: Context, write: Callable[[Time, Any], Any]) -> None:
        self._write = write
        self._context = context
        self._queue: deque[tuple[Capability, Any]] = deque()
        self._signal = Signal()
        context.spawn(self._run)

    def step(self, input: InputPort, output: OutputPort) -> None:
        """Queues what has arrived, each batch with the capability that keeps its time open.

        Only a few: what is left with the input counts as not taken, and slows the sources down.
        """
        if len(self._queue) < _AHEAD:
            for message, batch in input:
                self._queue.append((message.retain(), batch))
                if len(self._queue) == _AHEAD:
                    break
        if self._queue:
            self._signal.set()

    async def _run(self) -> None:
        while True:
            await self._signal.wait()
            while self._queue and not self._context.dropped:
                capability, batch = self._queue.popleft()
                try:
                    await self._write(capability.time, batch)
                except Exception as error:
                    error.add_note(f"writing a batch at {capability.time!r}")
                    raise
                capability.drop()
                self._context.activate()
