"""Messages between workers that are simulated (`dataflow.testing`): who chooses decides what arrives next."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from dataflow.comm.messages import AnyMessage, Data, Membership

Turn = tuple[str, ...]
"""Something that could happen next, in words."""


class SimulatedNetwork:
    """Messages on their way, in lanes. Progress keeps its order between two workers; data does not."""

    def __init__(self) -> None:
        self._lanes: dict[Turn, tuple[int, deque[AnyMessage]]] = {}

    def send(self, to: int, message: AnyMessage) -> None:
        """Puts a message on its way."""
        kind = f"channel {message.channel}" if isinstance(message, Data) else "progress"
        label = ("deliver", f"from worker {message.sender}", f"to worker {to}", kind)
        if label not in self._lanes:
            self._lanes[label] = (to, deque())
        self._lanes[label][1].append(message)

    def broadcast(self, others: Sequence[int], message: AnyMessage) -> None:
        """Puts a message on its way to all others."""
        for to in others:
            self.send(to, message)

    def reaches(self, worker: int) -> bool:
        """Everybody who has started can be reached."""
        return True

    def part_from(self, worker: int) -> None:
        """It has left, and nobody minds."""

    def flush(self) -> bool:
        """Nothing is kept."""
        return False

    def collect(self) -> bool:
        """The scheduler delivers."""
        return False

    def linger(self) -> bool:
        """The scheduler delivers."""
        return False

    def stay_awake(self) -> None:
        """The scheduler wakes everybody."""

    def may_sleep(self, interest: int) -> bool:
        """The scheduler wakes everybody."""
        return True

    def concluded(self) -> None:
        """The scheduler wakes everybody."""

    def wake_watchers(self, moved: int) -> None:
        """The scheduler wakes everybody."""

    @property
    def messages(self) -> list[AnyMessage]:
        """All that are on their way."""
        return [message for _, lane in self._lanes.values() for message in lane]

    def waiting(self) -> list[Turn]:
        """The lanes on which something could arrive."""
        return [label for label, (_, lane) in self._lanes.items() if lane and not self._must_wait(label, lane[0])]

    def _must_wait(self, label: Turn, first: AnyMessage) -> bool:
        """Links keep their order, on which changes of the membership rely: they do not overtake data."""
        if not isinstance(first, Membership):
            return False
        ahead = self._lanes.items()
        return any(other[:3] == label[:3] and other[-1] != "progress" and bool(lane) for other, (_, lane) in ahead)

    def take(self, label: Turn, chance: random.Random) -> tuple[int, AnyMessage]:
        """The next message of a lane: the first, or any if it is a lane for data."""
        to, lane = self._lanes[label]
        if label[-1] != "progress":
            lane.rotate(-chance.randrange(len(lane)))
        return to, lane.popleft()
