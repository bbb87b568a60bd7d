"""The protocol of one change of the membership: stop, decide, install. Pure: messages in, instructions out.

The leader says `Stop`. Everybody finishes the step at hand, tells all its progress, and answers `Stopped` with a
report; links keep their order, so when the leader has all answers it has heard all that was said before, and its counts
are the truth. It decides, says `Install` (or `Abort`: everything is as before), and all go on. docs/internals/
membership.md has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dataflow.errors import ProtocolError
from dataflow.members.plain import fields


@dataclass(frozen=True, slots=True)
class Turnover:
    """What shall change. `mute`: leavers that have nothing left, and need to hear of nothing more but progress."""

    number: int
    join: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()
    mute: tuple[int, ...] = ()
    within: int | None = None  # how far after the inputs' times it may take effect; None: any

    def plain(self) -> list[object]:
        """For the wire."""
        return [self.number, list(self.join), list(self.leave), list(self.mute), self.within]

    @classmethod
    def read(cls, plain: object) -> Turnover:
        """What `plain` gave; ProtocolError if it did not."""
        try:
            number, join, leave, mute, within = fields(plain, 5)
            return cls(_number(number), _numbers(join), _numbers(leave), _numbers(mute), within)
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"a proposal that is none: {error}") from None


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} where a number belongs")
    return value


def _numbers(values: object) -> tuple[int, ...]:
    if not isinstance(values, list | tuple):
        raise ValueError(f"{values!r} where numbers belong")
    return tuple(map(_number, values))


@dataclass(frozen=True, slots=True)
class Pause:
    """Finish the step at hand, tell all progress, and run nothing until told."""

    proposal: Turnover


@dataclass(frozen=True, slots=True)
class Say:
    """Send something to a worker."""

    to: int
    what: str
    proposal: Turnover


@dataclass(frozen=True, slots=True)
class Decide:
    """The leader has all reports, by worker, and has heard everything that was said before them."""

    proposal: Turnover
    reports: Mapping[int, object]


@dataclass(frozen=True, slots=True)
class GoOn:
    """Go on; `installed` tells whether anything has changed."""

    proposal: Turnover
    installed: bool


Instruction: TypeAlias = Pause | Say | Decide | GoOn


@dataclass
class Barrier:
    """One worker's part in changes, of which there is one at a time."""

    me: int
    leader: int
    proposal: Turnover | None = None  # while stopped
    last: int = -1  # the number of the last change that was concluded here
    _asked: tuple[int, ...] = ()  # by the leader, who must answer
    _reports: dict[int, object] = field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        """Whether this worker runs nothing."""
        return self.proposal is not None

    def propose(self, proposal: Turnover, present: Sequence[int], report: object = None) -> list[Instruction]:
        """The leader begins a change. `present`: all that there are, joiners excepted."""
        assert self.me == self.leader and self.proposal is None, "one change at a time, by the leader"
        self.proposal, self._asked, self._reports = proposal, tuple(present), {}
        others = [worker for worker in present if worker != self.me]
        return [Pause(proposal), *(Say(worker, "stop", proposal) for worker in others)]

    def heard_stop(self, proposal: Turnover, sender: int) -> list[Instruction]:
        """The leader stops everybody."""
        if sender != self.leader or self.proposal is not None or proposal.number <= self.last:
            raise ProtocolError(f"worker {sender} says stop for change {proposal.number}, out of turn")
        self.proposal = proposal
        return [Pause(proposal)]

    def heard_stopped(self, number: int, sender: int, report: object) -> list[Instruction]:
        """A worker (the leader itself, too) has stopped."""
        if self.proposal is None or number != self.proposal.number or sender not in self._asked:
            raise ProtocolError(f"worker {sender} says that it has stopped for change {number}, out of turn")
        if sender in self._reports:
            raise ProtocolError(f"worker {sender} says twice that it has stopped for change {number}")
        self._reports[sender] = report
        if len(self._reports) < len(self._asked):
            return []
        return [Decide(self.proposal, dict(self._reports))]

    def forget(self, worker: int) -> list[Instruction]:
        """A worker has left: nobody waits for its answer."""
        if worker not in self._asked or worker in self._reports or self.proposal is None:
            return []
        self._asked = tuple(other for other in self._asked if other != worker)
        return [Decide(self.proposal, dict(self._reports))] if len(self._reports) == len(self._asked) else []

    def conclude(self, number: int, sender: int, installed: bool) -> list[Instruction]:
        """The leader has decided: all go on."""
        if sender != self.leader or self.proposal is None or number != self.proposal.number:
            raise ProtocolError(f"worker {sender} concludes change {number}, out of turn")
        proposal, self.proposal, self.last = self.proposal, None, number
        return [GoOn(proposal, installed)]
