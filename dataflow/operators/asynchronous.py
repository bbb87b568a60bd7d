"""Asynchronous functions in the middle of a dataflow: `map_async` and `map_async_batches`.

An operator must not wait, so tasks do: at most `concurrency` calls are under way, and what waits is weighed and slows
the sources down. Each batch keeps a capability until all of its records are done, so a time is complete when
its answers are there, and `explain` names the operator that others wait for. Nothing is kept from one time to the next:
after a crash what was under way comes again, and is asked again.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.cuts import Keeps
from dataflow.build.stream import Stream
from dataflow.channels.blame import name_record
from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.comm.flow import weigh
from dataflow.errors import ConstructionError
from dataflow.operators.failing import CheckedStream, Errors, count_failures, require_errors, text_of
from dataflow.operators.inputs import to_batch
from dataflow.time.durations import Duration, seconds
from dataflow.values import Record, Value

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort, OutputPort

D = TypeVar("D")


@dataclass(frozen=True)
class Retry:
    """A call that fails is tried `times` more, after waiting: `wait`, then `factor` times as long each time."""

    times: int
    wait: float | Duration = 0.1
    factor: float = 2.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        if type(self.times) is not int or self.times < 0 or seconds(self.wait) < 0 or self.factor < 1:
            raise ConstructionError(
                f"a retry is so many times (0 or more), after a wait that is not negative and does not shrink: {self}"
            )


@dataclass(frozen=True)
class Calls:
    """How a function is to be called."""

    name: str
    function: Callable[[Value], Awaitable[Value]]
    concurrency: int
    ordered: bool
    timeout: float | None
    retry: Retry
    keeps_errors: bool
    size: int | None  # of the batches that the function takes; None: it takes records


def map_async(
    stream: Stream[D],
    function: Callable[[Value], Awaitable[Value]],
    *,
    concurrency: int,
    ordered: bool,
    timeout: float | Duration | None,
    retry: int | Retry,
    errors: Errors,
    size: int | None,
    name: str,
) -> CheckedStream[Value]:
    """See `Stream.map_async` and `Stream.map_async_batches`."""
    calls = _checked(name, function, concurrency, ordered, timeout, retry, errors, size)
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    builder.add_output()
    builder.add_output()
    answers, failed = builder.build(lambda context: _Asking(context, calls).step, keeps=Keeps.NOTHING)
    return CheckedStream(answers, failed)


def _checked(
    name: str,
    function: Callable[[Value], Awaitable[Value]],
    concurrency: int,
    ordered: bool,
    timeout: float | Duration | None,
    retry: int | Retry,
    errors: str,
    size: int | None,
) -> Calls:
    if not callable(function):
        raise ConstructionError(f"{name} needs an asynchronous function, not {function!r}")
    if inspect.isfunction(function) and not inspect.iscoroutinefunction(function) and function.__name__ != "<lambda>":
        raise ConstructionError(f"{name} needs an `async def` function, and {function.__name__} is none: use map")
    for what, number in (("concurrency", concurrency), ("size", size)):
        if number is not None and (type(number) is not int or number < 1):
            raise ConstructionError(f"{name}: {what} is at least 1, not {number!r}")
    require_errors(errors, name)
    try:
        limit = None if timeout is None else seconds(timeout)
    except (TypeError, ValueError) as error:
        raise ConstructionError(f"{name}: timeout={timeout!r}: {error}") from None
    if limit is not None and not limit > 0:
        raise ConstructionError(f"{name}: a timeout is above zero, not {timeout!r}")
    again = retry if isinstance(retry, Retry) else Retry(retry)
    return Calls(name, function, concurrency, ordered, limit, again, errors == "stream", size)


class _Message:
    """A batch that came: its capabilities, until all of its calls are done."""

    def __init__(self, capabilities: list[Capability], left: int, weight: int) -> None:
        self.capabilities = capabilities
        self.left = left
        self.weight = weight


@dataclass
class _Call:
    """One call: a record, or a part of a batch."""

    message: _Message
    argument: Value
    answer: Batch = field(default_factory=list)
    failed: list[tuple[Record, str]] = field(default_factory=list)
    done: bool = False


class _Asking:
    """The operator on one worker."""

    def __init__(self, context: Context, calls: Calls) -> None:
        self._context = context
        self._calls = calls
        self._input: InputPort = context.inputs[0]
        self._answers: OutputPort = context.outputs[0]
        self._errors: OutputPort = context.outputs[1]
        count_failures(self._errors)
        self._waiting: deque[_Call] = deque()
        self._open: deque[_Call] = deque()  # if ordered: calls whose answers were not sent, in their order
        self._asking = 0  # tasks

    def step(self) -> None:
        """Queues what has arrived, and starts as many tasks as there is work for."""
        for message, batch in self._input:
            arguments = self._arguments(batch)
            weight = weigh(batch)
            held = _Message([message.retain(0), message.retain(1)], len(arguments), weight)
            self._context.keep(weight)
            calls = [_Call(held, argument) for argument in arguments]
            self._waiting.extend(calls)
            if self._calls.ordered:
                self._open.extend(calls)
        for _ in range(min(self._calls.concurrency - self._asking, len(self._waiting))):
            self._asking += 1
            self._context.spawn(self._ask)

    def _arguments(self, batch: Batch) -> list[Value]:
        size = self._calls.size
        if size is None:
            return list(batch)
        if isinstance(batch, Columns):
            return [batch.slice(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        rows = list(batch)
        return [rows[at : at + size] for at in range(0, len(rows), size)]

    async def _ask(self) -> None:
        """A task: one call after the other, as long as any wait."""
        while self._waiting and not self._context.dropped:
            call = self._waiting.popleft()
            try:
                answer = await self._tried(call.argument)
                call.answer = [answer] if self._calls.size is None else to_batch(answer)
            except Exception as error:
                if not self._calls.keeps_errors:
                    name_record(error, call.argument, time=call.message.capabilities[0].time)
                    raise
                call.failed = [(call.argument, text_of(error))]
            call.done = True
            self._send(call)
        self._asking -= 1

    async def _tried(self, argument: Value) -> Value:
        retry, attempt = self._calls.retry, 0
        while True:
            try:
                return await self._once(argument)
            except retry.on as error:
                if attempt >= retry.times:
                    if attempt:
                        error.add_note(f"{self._calls.name}: tried {attempt + 1} times")
                    raise
            wait = seconds(retry.wait) * retry.factor**attempt
            attempt += 1
            await self._context.clock.sleep_until(self._context.clock.now() + wait)

    async def _once(self, argument: Value) -> Value:
        asked = self._calls.function(argument)
        if not inspect.isawaitable(asked):
            raise TypeError(f"{self._calls.name}: the function returned {asked!r}, which cannot be awaited: use map")
        if self._calls.timeout is None:
            return await asked
        with trio.move_on_after(self._calls.timeout):
            return await asked
        raise TimeoutError(f"{self._calls.name}: no answer within {self._calls.timeout:g} s")

    # What comes out

    def _send(self, call: _Call) -> None:
        if not self._calls.ordered:
            self._give(call)
            return
        while self._open and self._open[0].done:
            self._give(self._open.popleft())

    def _give(self, call: _Call) -> None:
        if self._context.dropped:
            return
        message = call.message
        self._answers.give(message.capabilities[0], call.answer)
        self._errors.give(message.capabilities[1], call.failed)
        message.left -= 1
        if not message.left:
            self._context.keep(-message.weight)
            for capability in message.capabilities:
                capability.drop()
