"""Workers that come from elsewhere: hosts that join by themselves, and workers that were invited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from dataflow.members.following import CannotScale

if TYPE_CHECKING:
    from dataflow.members.changing import Changing

Address = tuple[str, int]


class Inviter(Protocol):
    """Brings workers from elsewhere, where nobody can start them here (docs/internals/guests.md)."""

    def invite(self, numbers: Sequence[int]) -> None:
        """Asks for workers with these numbers. They ask to join, or `Scaling.cannot_come` says why they do not."""

    def grown(self, numbers: Sequence[int]) -> None:
        """They are members now."""


class GuestList:
    """Workers that come from elsewhere, together: where each listens, and, when it is their turn, its number. (In the
    place of a launcher: they start by themselves, and everybody connects to them.)"""

    def __init__(self, changes: Changing, count: int, invited: Sequence[int] = (), inviter: Inviter | None = None):
        """`invited`: their numbers, if they were invited, and did not come by themselves."""
        self._changes = changes
        self._inviter = inviter
        self._at: dict[int, Address] = {}  # by place in the list
        self._numbers: Sequence[int] = ()
        self.count = count
        self.invited = invited
        self.numbered = trio.Event()
        self.error: str | None = None

    @property
    def complete(self) -> bool:
        """Whether all have said where they listen."""
        return len(self._at) == self.count

    def arrive(self, place: int, at: Sequence[Address]) -> None:
        """Some of them listen there. CannotScale if they are not expected."""
        places = range(place, place + len(at))
        if not set(places) <= set(range(self.count)) - self._at.keys() or self.error is not None:
            raise CannotScale("nobody waits for these workers any more")
        self._at.update(zip(places, at, strict=True))

    def start(self, numbers: Sequence[int], peers: int) -> None:
        """It is their turn."""
        self._numbers = numbers
        self.numbered.set()
        who = [[number, *self._at[place]] for place, number in enumerate(numbers)]
        self._changes.tell_all("meet", who)
        self._changes.meet(who)

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members now. Those who started them know by themselves how they fare."""
        if self._inviter is not None:
            self._inviter.grown(numbers)

    def left(self, numbers: Sequence[int]) -> None:
        """They are no members any more. Those who started them know that, too."""

    def dismiss(self, numbers: Sequence[int]) -> None:
        """They have not joined."""
        for number in numbers:
            if self._changes.reaches(number):
                self._changes.say(number, "dismissed")

    def give_up(self, error: str) -> None:
        """They cannot join."""
        self.error = error
        self.numbered.set()

    async def wait_numbered(self, place: int, count: int) -> tuple[int, list[tuple[int, str, int]]]:
        """The number of the worker at a place, when it is their turn; and where those listen that are not among so many
        from there on. CannotScale if they cannot join."""
        await self.numbered.wait()
        if not self._numbers:
            raise CannotScale(self.error or "the run has ended")
        mine = range(place, place + count)
        fellows = [(number, *self._at[at]) for at, number in enumerate(self._numbers) if at not in mine]
        return self._numbers[place], fellows
