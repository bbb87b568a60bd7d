"""Operators that change the times of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dataflow.build.builder import require_callable, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.notificator import Notificator
from dataflow.channels.pact import Batch
from dataflow.channels.ports import OutputPort
from dataflow.columns import Columns
from dataflow.time.order import Time
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
    waiting: dict[Time, tuple[list[Record], list[Columns]]] = {}  # by new time, rows and columns
    domain = stream.scope.domain
    less_equal = domain.less_equal

    def on_batch(message: MessageCapability, batch: Batch, output: OutputPort, notificator: Notificator) -> None:
        time = message.time
        columns = batch if isinstance(batch, Columns) else None
        numbers: dict[Time, list[int]] = {}  # of the rows of columns, by new time
        for number, record in enumerate(batch):
            new = domain.check(later(time, record))
            if new not in waiting or not less_equal(time, new):  # the latter raises
                notificator.notify_at(message.delayed(new))
            rows, _ = waiting.setdefault(new, ([], []))
            if columns is not None:
                numbers.setdefault(new, []).append(number)
            else:
                rows.append(record)
        if columns is not None:
            for new, some in numbers.items():
                waiting[new][1].append(columns.take(np.array(some)))

    def on_notify(capability: Capability, output: OutputPort, notificator: Notificator) -> None:
        rows, tables = waiting.pop(capability.time)
        output.give(capability, rows)
        if tables:
            output.give(capability, Columns.concat(tables))

    return unary_notify(stream, name, on_batch, on_notify)
