"""Operators that change the times of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder, require_callable, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.crossings import Waiting
from dataflow.build.cuts import Keeps, Unrecoverable
from dataflow.build.notificator import Notificator
from dataflow.build.operator import Step
from dataflow.channels.pact import Batch
from dataflow.channels.ports import OutputPort
from dataflow.columns import Columns
from dataflow.time.order import Time
from dataflow.time.timestamp import Domain
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

D = TypeVar("D")


def delay(stream: Stream[D], later: Callable[[Time, D], Time], name: str = "delay") -> Stream[D]:
    """Moves each record to the time `later(time, record)`, which must not be earlier than its own.

    Records are kept until their new time is complete at the input, and then sent in one batch per time. Columns stay
    columns: `record` is a row of them, as a tuple.
    """
    require_callable(later, name, "function of a time and a record")
    dataflow, domain = stream.scope.dataflow, stream.scope.domain
    if not domain.total:
        return _delay_partial(stream, later, name)
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    builder.add_output(initial=dataflow.recovers and stream.scope.parent is None, entry=False)

    def make(context: Context) -> Step:
        (input,), (output,) = context.inputs, context.outputs
        waiting: Waiting[Batch] = Waiting(context, name, dataflow)
        context.follow(changes_times=stream.scope.parent is None)

        def step() -> None:
            for message, batch in input:
                for new, part in _by_new_time(batch, message.time, later, domain):
                    waiting.add(message, new, part, message.time)
            for capability, parts in waiting.due():
                rows = [record for part in parts if not isinstance(part, Columns) for record in part]
                output.give(capability, rows)
                tables = [part for part in parts if isinstance(part, Columns)]
                if tables:
                    output.give(capability, Columns.concat(tables))

        return step

    (out,) = builder.build(make, frontier=True, keeps=Keeps.SHARE)
    return out


def _by_new_time(
    batch: Batch, time: Time, later: Callable[[Time, D], Time], domain: Domain
) -> Iterator[tuple[Time, Batch]]:
    """The parts of a batch that move to the same time."""
    records: list[Record] = list(batch)
    numbers: dict[Time, list[int]] = {}
    for number, record in enumerate(records):
        numbers.setdefault(domain.check(later(time, record)), []).append(number)
    for new, some in numbers.items():
        yield new, batch.take(np.array(some)) if isinstance(batch, Columns) else [records[number] for number in some]


def _delay_partial(stream: Stream[D], later: Callable[[Time, D], Time], name: str) -> Stream[D]:
    """The same where times are only partially ordered."""
    waiting: dict[Time, list[Batch]] = {}
    domain = stream.scope.domain
    nested = stream.scope.parent is not None and stream.scope.dataflow.recovers

    def on_batch(message: MessageCapability, batch: Batch, output: OutputPort, notificator: Notificator) -> None:
        for new, part in _by_new_time(batch, message.time, later, domain):
            if nested and new[0] != message.time[0]:
                raise Unrecoverable(
                    f"{name} in a nested scope delays a record from {message.time!r} to {new!r}, out of its time in "
                    "the root: that cannot be recovered. Delay it outside of the nested scope"
                )
            if new not in waiting or not domain.less_equal(message.time, new):  # the latter raises
                notificator.notify_at(message.delayed(new))
            waiting.setdefault(new, []).append(part)

    def on_notify(capability: Capability, output: OutputPort, notificator: Notificator) -> None:
        for part in waiting.pop(capability.time):
            output.give(capability, part)

    return unary_notify(stream, name, on_batch, on_notify, keeps=Keeps.NOTHING if nested else Keeps.UNKNOWN)
