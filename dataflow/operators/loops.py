"""Nested scopes and loops.

A loop is a feedback operator, whose records come out later than they went in. In a nested scope "later" is counted in
rounds that nobody outside sees, so a loop inside one epoch of the outside can go round as often as it needs to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.crossings import SentAhead
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.pact import Batch
from dataflow.errors import ConstructionError, NoTimeFollows, ScopeMismatch
from dataflow.progress.graph import Target
from dataflow.progress.paths import enter as enter_path
from dataflow.progress.paths import leave as leave_path
from dataflow.time.order import Time, TimeSummary
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")
E = TypeVar("E")


def _pass_on(context: Context) -> Step:
    """The step of an operator that only moves batches: their times change under the summary of its connection.

    Where the summary gives no time, a batch has nowhere to go, and ends here: that is how a summary ends a loop.
    """
    (input,), (output,) = context.inputs, context.outputs

    def step() -> None:
        for message, batch in input:
            with contextlib.suppress(NoTimeFollows):
                output.give(message, batch)

    return step


def enter(stream: Stream[D], scope: Scope, name: str = "enter") -> Stream[D]:
    """Brings a stream into a nested scope, at the first time of its new level."""
    if scope.parent is not stream.scope:
        raise ScopeMismatch(f"{name}: {scope.title} is not directly inside {stream.scope.title}, where the stream is")
    scope.require_open(name)
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    builder.add_output({0: enter_path(stream.scope.levels, scope.levels[-1])}, scope=scope)
    (out,) = builder.build(_pass_on, keeps=Keeps.NOTHING)
    return out


def leave(stream: Stream[D], name: str = "leave") -> Stream[D]:
    """Brings a stream out of its nested scope."""
    scope = stream.scope
    if scope.parent is None:
        raise ScopeMismatch(f"{name}: the stream is in the root of {scope.title}, which nothing can leave")
    builder = OperatorBuilder(scope, name)
    builder.add_input(stream)
    builder.add_output({0: leave_path(scope.levels)}, scope=scope.parent)
    (out,) = builder.build(_pass_on, keeps=Keeps.NOTHING)
    return out


class LoopHandle:
    """The far end of a loop, to which one stream must be connected."""

    def __init__(self, scope: Scope, name: str, number: int) -> None:
        self._scope = scope
        self._name = name
        self._number = number
        scope.dataflow.unconnected[number] = f"{name} (#{number})"

    def connect(self, stream: Stream[object]) -> None:
        """Sends the stream's records round the loop."""
        if self._number not in self._scope.dataflow.unconnected:
            raise ConstructionError(f"{self._name} (#{self._number}) is connected already: concat the streams first")
        stream.require_usable(self._name)
        if stream.scope is not self._scope:
            raise ScopeMismatch(f"{self._name} is in {self._scope.title}, and the stream is in {stream.scope.title}")
        self._scope.dataflow.graph.add_edge(stream.source, Target(self._number, 0))
        del self._scope.dataflow.unconnected[self._number]


def feedback(scope: Scope, summary: TimeSummary, name: str) -> tuple[LoopHandle, Stream[Record]]:
    """The start of a loop: (handle, stream)."""
    builder = OperatorBuilder(scope, name)
    builder.add_open_input()
    if scope.parent is not None or not scope.dataflow.recovers:
        builder.add_output({0: summary})
        (out,) = builder.build(_pass_on, keeps=Keeps.NOTHING)
        scope.dataflow.operators[out.source.node].changes_times = scope.parent is None
    else:
        builder.add_output({0: summary}, initial=True, entry=False)
        make = partial(_pass_across_cuts, name=name, scope=scope)
        (out,) = builder.build(make, frontier=True, keeps=Keeps.SHARE)
    return LoopHandle(scope, name, out.source.node), out


def _pass_across_cuts(context: Context, name: str, scope: Scope) -> Step:
    return _PassAcrossCuts(context, name, scope).step


class _PassAcrossCuts:
    """The step of a loop at the root, where what goes round comes out at another time: with recovery it keeps what
    crosses a cut."""

    def __init__(self, context: Context, name: str, scope: Scope) -> None:
        (self._input,), (self._output,) = context.inputs, context.outputs
        context.follow(changes_times=True)
        self._start: Capability | None = context.capability()
        self._crossings: SentAhead[Batch] = SentAhead(
            name, scope.dataflow, self._now, self._send_again, self._drop_start
        )

    def step(self) -> None:
        """Passes batches on."""
        for message, batch in self._input:
            with contextlib.suppress(NoTimeFollows):
                self._crossings.sent(message.time, message.time_at(self._output), batch)
                self._output.give(message, batch)
        self._crossings.consider()

    def _now(self) -> Time | None:
        return min(self._input.frontier, default=None)

    def _send_again(self, at: Time, batch: Batch) -> None:
        assert self._start is not None
        self._output.give(self._start, batch, at)

    def _drop_start(self) -> None:
        if self._start is not None:
            self._start.release()  # on a worker that joins it may have been closed from the beginning
            self._start = None


def iterate(
    stream: Stream[D],
    body: Callable[[Stream[D]], Stream[E] | tuple[Stream[object], Stream[E]]],
    summary: TimeSummary = 1,
) -> Stream[E]:
    """Sends records round `body` until none are left.

    `body(inner)` gets the stream's records and those that come round, and returns two streams: what goes round again,
    and what leaves. If it returns one, its records do both. Other streams are brought in with `enter(inner.scope)`.

        def body(numbers):
            return numbers.filter(lambda n: n > 1).map(halve), numbers.filter(lambda n: n == 1)
    """
    with stream.scope.nested() as scope:
        loop, cycle = scope.feedback(summary)
        result = body(stream.enter(scope).concat(cycle))
        again, out = result if isinstance(result, tuple) and len(result) == 2 else (result, result)
        if not (hasattr(again, "connect_loop") and hasattr(out, "leave")):
            raise ConstructionError(f"the body of iterate must return one stream, or (again, out), not {result!r}")
        if again.scope is not scope or out.scope is not scope:
            raise ScopeMismatch("the body of iterate must return streams of its own scope: bring others in with enter")
        again.connect_loop(loop)
        left = out.leave()
    return left
