"""One worker's part in changes of the membership: carries out what the protocol (`barrier`) says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dataflow.comm.conversation import Conversation
from dataflow.comm.messages import AnyMessage, Membership
from dataflow.errors import DataflowError, ProtocolError
from dataflow.members.asking import Asking
from dataflow.members.barrier import Barrier, Decide, GoOn, Instruction, Pause, Say, Turnover
from dataflow.members.decisions import NotYet, Ruling, Welcome
from dataflow.members.following import CannotScale
from dataflow.members.holding import Holding, hold, release, restore
from dataflow.members.joining import route_by_time
from dataflow.members.leaving import Leaving
from dataflow.members.plain import fields
from dataflow.members.reports import Report, changes_of, decide, hand_out, next_batch, report_in, report_of
from dataflow.members.scaling import Scaling
from dataflow.run.signal import Signal, Waiters

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


class Meeting(Protocol):
    """Connects with workers that listen elsewhere."""

    async def meet(self, index: int, peer: int, address: tuple[str, int]) -> None:
        """Adds a link to a worker. DataflowError if it cannot be reached."""


class Changing:
    """What a worker has to do with changes: as a member, as the leader, as a joiner or a leaver."""

    def __init__(self, pump: Pump, joins: bool) -> None:
        self._pump = pump
        self.barrier = Barrier(pump.index, pump.roster.leader)
        self.stopped = False  # whether nothing is run; asked often, so that it is a field
        self.listening = joins  # whether it has not been told yet where it joins
        self.joined = Signal()  # set when it has
        self.resume_at: int | None = None  # where a joiner's main begins
        self.leaving = Leaving(pump)
        self.on_change: list[Callable[[], None]] = []  # called when the membership has changed
        self.times: dict[int, int] = {}  # by dataflow, the time of the last change
        self._kept: list[AnyMessage] = []  # by a joiner that listens
        self.unheard: list[AnyMessage] = []  # what came over links before a joiner knew what its peers may say
        self._held: list[Holding] = []
        self._unlinked: Membership | None = None  # a stop that waits for the links to joiners
        self._dismissed = False
        self._decided = Waiters()
        self.joined_at: float | None = None  # when a joiner was told, by its clock
        self._stopped_at = 0.0
        self._fed = False  # whether the leader knows that this worker, which has joined, gets records
        self.asking = Asking(self, pump)
        self.scaling = Scaling(self, pump) if pump.index == pump.roster.leader else None

    @property
    def left(self) -> bool:
        """Whether this worker is leaving, or has left: it builds nothing more."""
        return self.leaving.asked

    async def wait_joined(self) -> bool:
        """Waits until a joiner is told where it joins; False if it is not needed after all. Others need not wait."""
        if self.listening:
            await self.joined.wait()
        return not self._dismissed

    async def wait_decided(self) -> None:
        """Waits while a change is being decided: for sources, which must stay where they say that they are."""
        while self.stopped:
            await self._decided.wait()

    def propose(self, proposal: Turnover) -> None:
        """The leader begins a change."""
        self._do(self.barrier.propose(proposal, self._pump.roster.present))

    def say(self, to: int, about: str, said: object = None) -> None:
        """Says something to a worker; to itself, at once."""
        message = Membership(self._pump.index, about, said)
        if to == self._pump.index:
            self.heard(message)
        else:
            self._pump.send(to, message)
            self._pump.wake()

    def tell_all(self, about: str, said: object = None) -> None:
        """Says something to everybody."""
        self._pump.broadcast(Membership(self._pump.index, about, said))
        self._pump.wake()

    def heard(self, message: Membership) -> None:
        """Takes what another worker says."""
        about, sender, said = message.about, message.sender, message.said
        roster = self._pump.roster
        if about == "stop":
            self._stop(message)
        elif about == "stopped":
            number, report = fields(said, 2)
            self._do(self.barrier.heard_stopped(number, sender, report))
        elif about == "install":
            number, decisions = fields(said, 2)
            self._install({each: Ruling.read(plain) for each, plain in decisions})
            self._do(self.barrier.conclude(number, sender, installed=True))
        elif about == "abort":
            assert isinstance(said, int)
            self._do(self.barrier.conclude(said, sender, installed=False))
        elif about == "joined":
            self._join(message)
        elif about == "meet":
            self.meet(said)
        elif about == "prepare":
            self._prepare(said)
        elif about == "leaving":
            roster.leaving = set(said)  # type: ignore[call-overload]
        elif about == "muted":
            self.leaving.muted_by.add(sender)
            self.leaving.look()
        elif about == "gone":
            self._gone(sender)
        elif about == "scaled":
            self.asking.heard(said)
        elif about == "dismissed":
            self._dismissed = True
            self.joined.set()
        elif self.scaling is not None:
            self.scaling.said(message)
        else:
            raise ProtocolError(f"worker {sender} says {about!r}, which is not for this worker")

    # The protocol

    def linked(self) -> None:
        """There is a link to a worker that joins."""
        if self._unlinked is not None:
            message, self._unlinked = self._unlinked, None
            if message.about == "joined":
                self._join(message)
            else:
                self._stop(message)

    def _stop(self, message: Membership) -> None:
        if self.leaving.gone:
            return  # it has said so, and that is on its way
        proposal = Turnover.read(message.said)
        assert self._pump.transport is not None
        if all(self._pump.transport.reaches(joiner) for joiner in proposal.join):
            self._do(self.barrier.heard_stop(proposal, message.sender))
        else:
            self._unlinked = message

    def _do(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Pause):
                self._pause(instruction.proposal)
            elif isinstance(instruction, Say):
                self.say(instruction.to, instruction.what, instruction.proposal.plain())
            elif isinstance(instruction, Decide):
                self._decide(instruction.proposal, {worker: report_in(r) for worker, r in instruction.reports.items()})
            elif isinstance(instruction, GoOn):
                self._resume(instruction)

    def _pause(self, proposal: Turnover) -> None:
        """Tells all progress, holds back whatever comes from outside of operators, and reports."""
        for dataflow in self._pump.dataflows:
            dataflow.flush()
        report = report_of(self._pump, proposal)
        self.stopped, self._stopped_at = True, self._pump.clock.now()
        self._held = [held for dataflow in self._pump.dataflows for held in hold(dataflow)]
        self.say(self.barrier.leader, "stopped", [proposal.number, report])

    def _decide(self, proposal: Turnover, reports: Mapping[int, Report]) -> None:
        """The leader has heard everything that was said: its counts are the truth."""
        for dataflow in self._pump.dataflows:
            dataflow.settle()
        self._pump.retire()
        try:
            decisions = decide(self._pump, proposal, reports)
        except (NotYet, CannotScale) as error:
            self.tell_all("abort", proposal.number)
            self._do(self.barrier.conclude(proposal.number, self._pump.index, installed=False))
            if self.scaling is not None:
                self.scaling.concluded(proposal, "" if isinstance(error, NotYet) else str(error))
            return
        self.tell_all("install", [proposal.number, [[number, d.plain()] for number, d in decisions.items()]])
        self._install(decisions)
        for joiner in proposal.join:
            self._pump.send(joiner, Membership(self._pump.index, "joined", self._welcome(decisions, reports)))
        self._do(self.barrier.conclude(proposal.number, self._pump.index, installed=True))
        if self.scaling is not None:
            self.scaling.concluded(proposal, None)

    def _install(self, decisions: Mapping[int, Ruling]) -> None:
        """Everybody makes the same change, between two steps."""
        proposal = self.barrier.proposal
        assert proposal is not None, "nobody is told to install what it was not asked about"
        pump, roster = self._pump, self._pump.roster
        members = sorted({*roster.members, *proposal.join} - set(proposal.leave))
        restore(self._held)
        if proposal.join or proposal.leave:
            roster.change(members, proposal.join)
        roster.mute(proposal.mute)
        for joiner in proposal.join:
            pump.conversations.setdefault(joiner, Conversation(joiner))
            pump.tell_joiner(joiner)
        for leaver in proposal.leave:
            pump.conversations[leaver].leaves = True
            pump.leaves(leaver)
        pump.flow.resize(len(roster.present))
        for dataflow in pump.dataflows:
            decision = decisions.get(dataflow.number)
            if decision is None:
                continue
            if proposal.join or proposal.leave:
                dataflow.history.change(decision.time, members)
                self.times[dataflow.number] = decision.time
            route_by_time(dataflow)
            dataflow.hear(changes_of(dataflow, decision))
            dataflow.settle()
            hand_out(dataflow, proposal, decision)

    def _resume(self, resume: GoOn) -> None:
        """Operators take what they are handed; then everything goes on."""
        if not resume.installed:
            restore(self._held)
        self.stopped = False
        if self.scaling is not None:
            self.scaling.paused(self._pump.clock.now() - self._stopped_at)
        held, self._held = self._held, []
        release(held)
        self._decided.wake()
        proposal, me = resume.proposal, self._pump.index
        if resume.installed:
            for leaver in proposal.mute:
                if leaver != me:
                    self.say(leaver, "muted")
            if me in proposal.leave:
                self.leaving.begin()
            for notify in tuple(self.on_change):
                notify()
        for dataflow in self._pump.dataflows:
            dataflow.stir()
        self._pump.wake()
        self._pump.retire()

    # Those who come and go

    def fed(self) -> None:
        """This worker, which has joined, gets records: the leader is told once."""
        if not self._fed:
            self._fed = True
            self.say(self.barrier.leader, "fed")

    def lost(self, peer: int, why: str) -> bool:
        """The connection to a peer has ended; whether that does no harm: it has left, or has not joined."""
        harmless = peer not in self._pump.roster.present
        if harmless and self.scaling is not None:
            self.scaling.lost(peer, why)
        return harmless

    def keep_back(self, message: AnyMessage) -> bool:
        """Keeps a message for a joiner that has not been told yet where it joins; whether it was one to keep."""
        if isinstance(message, Membership) and message.about in ("joined", "dismissed", "prepare"):
            return False
        self._kept.append(message)
        return True

    def _welcome(self, decisions: Mapping[int, Ruling], reports: Mapping[int, Report]) -> object:
        """What a joiner is told: who is there, and where each dataflow is."""
        roster, beginnings, before = self._pump.roster, [], sorted(reports)
        for number in range(self._pump.built):
            dataflow = next((each for each in self._pump.dataflows if each.number == number), None)
            if dataflow is None or number not in decisions:
                empty = Welcome("", (), [], dict.fromkeys(before, 0), [list(roster.members), []], Ruling(0))
                beginnings.append(empty.plain())
                continue
            counts = list(dataflow.tracker.pointstamps().items())
            sequences = {worker: next_batch(report, number) for worker, report in reports.items()}
            description, memberships = dataflow.graph.describe(), dataflow.history.as_plain()
            decision = decisions[number]
            beginning = Welcome(dataflow.name, description, counts, sequences, memberships, decision)
            beginnings.append(beginning.plain())
        start = next((decisions[d.number].time for d in self._pump.dataflows if d.number in decisions), 0)
        who = [list(roster.members), list(roster.present), list(before), sorted(roster.leaving), sorted(roster.muted)]
        return [who, start, beginnings, self.barrier.last + 1]

    def reaches(self, worker: int) -> bool:
        """Whether there is a link to a worker."""
        return self._pump.transport is not None and self._pump.transport.reaches(worker)

    def meet(self, who: object) -> None:
        """Connects with workers of another host that join: by number, where each listens."""
        pump = self._pump
        if pump.meeting is None:
            raise ProtocolError("workers come from elsewhere, and this one knows nothing of other hosts")
        for each in who:  # type: ignore[attr-defined]
            number, host, port = fields(each, 3)
            pump.spawn(partial(self._meet, pump.meeting, number, (host, port)), f"meeting worker {number}")

    async def _meet(self, meeting: Meeting, number: int, address: tuple[str, int]) -> None:
        try:
            await meeting.meet(self._pump.index, number, address)
        except DataflowError as error:
            if self.scaling is not None:
                self.scaling.lost(number, str(error))  # the others need not say so: nobody joins without the leader

    def _prepare(self, code: object) -> None:
        """A joiner loads what it will need, and says so: nobody waits for that yet."""

        async def prepare() -> None:
            await self._pump.preparation.load(code)
            self.say(self.barrier.leader, "ready")

        self._pump.spawn(prepare, "preparing")

    def _join(self, message: Membership) -> None:
        """A joiner is told where it joins."""
        pump: Pump = self._pump
        who, start, beginnings, number = fields(message.said, 4)
        members, present, before, leaving, muted = who
        assert pump.transport is not None
        if not all(pump.transport.reaches(other) for other in present if other != pump.index):
            self._unlinked = message  # the link to somebody who joins as well is on its way
            return
        self.resume_at = start
        self.joined_at = pump.clock.now()
        pump.roster.change(members, present)
        pump.roster.leaving = set(leaving)
        pump.roster.mute(muted)
        pump.flow.resize(len(present))
        pump.conversations = {peer: Conversation(peer, len(beginnings) if peer in before else 0) for peer in present}
        pump.beginnings = {number: Welcome.read(plain) for number, plain in enumerate(beginnings)}
        self.barrier.last = number
        self.listening = False
        self.joined.set()
        for heard in self.unheard:
            if heard is not message:
                pump.conversations[heard.sender].hear(heard)
        self.unheard.clear()
        kept, self._kept = self._kept, []
        for each in kept:
            pump.deliver(each)

    def _gone(self, worker: int) -> None:
        """A leaver has left."""
        self._pump.roster.gone(worker)
        self._pump.forget(worker)
        assert self._pump.transport is not None
        self._pump.transport.part_from(worker)
        self._pump.wake()
        self._do(self.barrier.forget(worker))
        for notify in tuple(self.on_change):
            notify()
