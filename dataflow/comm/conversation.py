"""What a peer may say next, given what it has said. Pure.

A link delivers messages once and in order, so a worker that follows the protocol greets its dataflows in the order of
their numbers, says nothing about a dataflow before it has greeted it, finishes once, and says goodbye once. Whoever
does otherwise is found out here, before anything is kept on its account: numbers of dataflows that do not exist would
otherwise take memory for each.

(`dataflow.testing` has no links. It lets data overtake, which a dataflow can deal with.)
"""

from __future__ import annotations

from dataflow.comm.flow import ON_ITS_WAY
from dataflow.comm.messages import (
    AnyMessage,
    BlocksReturned,
    Consumed,
    Data,
    Finished,
    Goodbye,
    Hello,
    Membership,
    Message,
    Pressure,
    Progress,
)
from dataflow.errors import ProtocolError


class Conversation:
    """The peer's half of a conversation, so far. O(1) for each message."""

    def __init__(self, peer: int, greeted: int = 0) -> None:
        """`greeted`: how many dataflows need no greeting, because this worker joins later."""
        self._peer = peer
        self._greeted = greeted  # dataflows
        self._finished = False
        self._ended = False  # whether it has said goodbye
        self.leaves = False  # whether it leaves before the others, and so need not finish

    def hear(self, message: AnyMessage) -> None:
        """Takes a message into account; ProtocolError if the peer may not say that now."""
        if isinstance(message, Progress | Data):  # nearly all are
            allowed = message.dataflow < self._greeted and not self._ended
        elif isinstance(message, Consumed | BlocksReturned | Membership):
            return  # at any time, also after a goodbye: they are about what we sent, or asked
        elif isinstance(message, Hello):
            allowed = message.dataflow == self._greeted and not self._finished
            self._greeted += 1
        elif isinstance(message, Finished):
            allowed = message.dataflows == self._greeted and not self._finished
            self._finished = True
        elif isinstance(message, Goodbye):
            allowed = (self._finished or self.leaves) and not self._ended
            self._ended = True
        elif isinstance(message, Pressure):
            allowed = ON_ITS_WAY <= message.dataflow < self._greeted
        else:
            allowed = message.dataflow < self._greeted
        if not allowed:
            raise ProtocolError(f"worker {self._peer} may not say this now: {_brief(message)}")


def _brief(message: AnyMessage) -> str:
    """The message without its content."""
    name = type(message).__name__
    if isinstance(message, Finished):
        return f"{name} with {message.dataflows} dataflows"
    return f"{name} of dataflow {message.dataflow}" if isinstance(message, Message | Pressure) else name
