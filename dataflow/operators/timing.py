"""Operators that change the times of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dataflow.builder import require_callable, unary_notify
from dataflow.capability import Capability, MessageCapability
from dataflow.channels.ports import OutputPort
from dataflow.notificator import Notificator
from dataflow.order import Time

if TYPE_CHECKING:
    from dataflow.stream import Stream


def delay(stream: Stream[Any], later: Callable[[Time, Any], Time], name: str = "delay") -> Stream[Any]:
    """Moves each record to the time `later(time, record)`, which must not be earlier than its own.

    Records are kept until their new time is complete at the input, and then sent in one batch per time.
    """
    require_callable(later, name, "function of a time and a record")
    waiting: dict[Time, list[Any]] = {}
    domain = stream.scope.domain
    less_equal = domain.less_equal

    def on_batch(message: MessageCapability, batch: Any, output: OutputPort, notificator: Notificator) -> None:
        time = message.time
        for record in batch:
            new = domain.check(later(time, record))
            if new not in waiting or not less_equal(time, new):  # the latter raises
                notificator.notify_at(message.delayed(new))
            waiting.setdefault(new, []).append(record)

    def on_notify(capability: Capability, output: OutputPort, notificator: Notificator) -> None:
        output.give(capability, waiting.pop(capability.time))

    return unary_notify(stream, name, on_batch, on_notify)
