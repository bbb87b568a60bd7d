"""What a supervisor says to its workers: where they have several lives, begin and go back; and questions. Pure.

The end of the stream means that the worker is to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dataflow.comm import codec
from dataflow.launch.framing import frame


@dataclass(frozen=True, slots=True)
class Go:
    """Begin a life."""

    life: int
    resume: bytes  # see dataflow.recovery.resume


@dataclass(frozen=True, slots=True)
class Back:
    """The life is over; get ready for that one."""

    life: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer this; the number goes with the answer."""

    number: int
    question: bytes  # see dataflow.asking.messages


Order: TypeAlias = Go | Back | Ask


def encode_order(order: Order) -> bytes:
    """As it is sent."""
    if isinstance(order, Go):
        return frame(codec.encode(["go", order.life, order.resume]))
    if isinstance(order, Ask):
        return frame(codec.encode(["ask", order.number, order.question]))
    return frame(codec.encode(["back", order.life]))


def decode_order(message: bytes) -> Order:
    """What was said.

    >>> decode_order(encode_order(Back(2))[8:])
    Back(life=2)
    """
    kind, number, *rest = codec.decode(message)
    if kind == "ask":
        return Ask(number, *rest)
    return Go(number, *rest) if kind == "go" else Back(number)
