"""From "four workers" to changes of the membership. On the leader; the other workers ask it.

To grow: workers are started, and listen; when all are connected, one change makes them members, and state moves to
them. To shrink: state moves away, a change takes the leavers out as of a time, and when they have nothing left another
one tells everybody to send them no more. One request after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from dataflow.build.hooks import StateMover
from dataflow.comm.messages import Membership
from dataflow.errors import DataflowError, ProtocolError
from dataflow.members.barrier import Turnover
from dataflow.members.following import CannotScale, require_scalable
from dataflow.members.invited import Address, GuestList, Inviter
from dataflow.members.plain import fields
from dataflow.members.requests import Placement, ScaleChange
from dataflow.run.signal import Signal

if TYPE_CHECKING:
    from dataflow.members.changing import Changing
    from dataflow.run.pump import Pump

_FAR = "workers of another host have joined, and one that is started here could not reach them: start one there"
_FIRST, _LONGEST = 0.001, 0.25  # seconds before a change that could not be made is tried again


class Launcher(Protocol):
    """Starts workers. Each says "linked" to the leader when it is connected with everybody."""

    def start(self, numbers: Sequence[int], peers: int) -> None:
        """Starts workers with these numbers, which nobody had before; there will be so many members."""

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members now: their failures are failures of the run."""

    def left(self, numbers: Sequence[int]) -> None:
        """They are no members any more, and end by themselves when they have nothing left."""

    def dismiss(self, numbers: Sequence[int]) -> None:
        """Ends workers that have not joined."""


@dataclass(eq=False)
class _Request:
    change: ScaleChange
    placement: Placement | None
    strategy: object
    within: int | None
    asked_at: float
    askers: list[tuple[int, int]]  # others who want to know: worker, and the number of its request
    guests: GuestList | None = None  # where workers listen that come from elsewhere

    @property
    def title(self) -> str:
        """What was asked for."""
        target = self.change.target
        if self.guests is not None and not self.guests.invited:
            return f"{self.guests.count} come from another host"
        return f"{target} wanted" if isinstance(target, int) else f"{', '.join(map(str, target))} shall leave"


class Scaling:
    """What the leader does about requests, in a task of its own."""

    def __init__(self, changes: Changing, pump: Pump) -> None:
        self._pump = pump
        self._waiting: deque[_Request] = deque()
        self._signal = Signal()
        self._running = False
        self._ready: set[int] = set()
        self._lost: dict[int, str] = {}  # workers that could not be started, and why
        self._idle: set[int] = set()
        self._next = 0
        self._invited: GuestList | None = None  # those who are waited for
        self._guests: set[int] = set()  # who came from elsewhere
        self._outcome: tuple[int, str | None] | None = None  # of the last change: its number, and why not
        self._numbers = 0  # of changes
        changes.on_change.append(self._signal.set)

    def ask(
        self,
        target: int | tuple[int, ...],
        placement: Placement | None = None,
        strategy: object = None,
        within: int | None = None,
        asker: tuple[int, int] | None = None,
    ) -> ScaleChange:
        """Asks for so many workers, or for some to leave. The same request, made again while it waits, is one."""
        for request in self._waiting:
            if request.change.target == target and not request.change.done:
                request.askers += [asker] if asker else []
                request.placement = placement or request.placement
                request.strategy = strategy if strategy is not None else request.strategy
                return request.change
        askers = [asker] if asker else []
        request = _Request(ScaleChange(target), placement, strategy, within, self._pump.clock.now(), askers)
        self._queue(request)
        return request.change

    def admit(self, at: Sequence[Address], number: int | None = None) -> tuple[GuestList, int]:
        """Workers of another host want to join, and will listen at these addresses; `number`: that of the first, if
        they were invited. Which list they are on, and from which place on. CannotScale if nobody waits for them."""
        if number is not None:
            guests = self._invited
            if guests is None or number not in guests.invited:
                raise CannotScale("nobody waits for these workers any more")
            place = guests.invited.index(number)
            guests.arrive(place, at)
            self._signal.set()
            return guests, place
        guests = GuestList(self._pump.changes, len(at))
        guests.arrive(0, at)
        self._queue(_Request(ScaleChange(()), None, None, None, self._pump.clock.now(), [], guests))
        return guests, 0

    def cannot_come(self, number: int, why: str) -> None:
        """Workers that were invited, of whom this is the first, do not come."""
        if self._invited is not None and number in self._invited.invited:
            self._invited.give_up(why)
        self._lost[number] = why
        self._signal.set()

    def _queue(self, request: _Request) -> None:
        if not self._pump.runs:
            self._tell(request, "failed", "the run has ended")
            return
        self._waiting.append(request)
        if not self._running:
            self._running = True
            self._pump.spawn(self._run, "scaling")

    # What is said to the leader

    def said(self, message: Membership) -> None:
        """Somebody says something that concerns the leader alone."""
        if message.about == "linked":
            self._pump.changes.say(message.sender, "prepare", self._pump.preparation.used())
        elif message.about == "ready":
            self._ready.add(message.sender)
        elif message.about == "idle":
            self._idle.add(message.sender)
        elif message.about == "fed":
            self._fed()
        elif message.about == "scale":
            target, within, number = fields(message.said, 3)
            wanted = tuple(target) if isinstance(target, list) else target
            self.ask(wanted, within=within, asker=(message.sender, number))
        else:
            raise ProtocolError(f"worker {message.sender} says {message.about!r}, which means nothing")
        self._signal.set()

    def _fed(self) -> None:
        """A worker that has joined got its first record."""
        if self._waiting and self._waiting[0].change.first_record is None:
            change, asked_at = self._waiting[0].change, self._waiting[0].asked_at
            change.first_record = self._pump.clock.now() - asked_at

    def paused(self, seconds: float) -> None:
        """All workers stood still for so long."""
        if self._waiting:
            change = self._waiting[0].change
            change.pause = max(seconds, change.pause or 0.0)

    def lost(self, worker: int, why: str) -> None:
        """A worker that was started has ended before it was connected."""
        self._lost[worker] = why
        self._signal.set()

    def concluded(self, proposal: Turnover, why_not: str | None) -> None:
        """A change was made; or not, for a reason, or ("") because it was not the moment."""
        self._outcome = (proposal.number, why_not)
        self._signal.set()

    # Carrying out

    async def _run(self) -> None:
        while self._waiting:
            request = self._waiting[0]
            roster, meter = self._pump.roster, self._pump.meter
            members = roster.members
            roster.settled = ()
            mark = meter.begin("membership", f"from {len(members)} workers: {request.title}")
            try:
                await self._carry_out(request)
                self._tell(request, "done")
                meter.end(mark, f"from {len(members)} workers to {len(roster.members)}")
            except CannotScale as error:
                self._tell(request, "failed", str(error))
                meter.end(mark, f"{request.title}: refused: {error}")
            roster.settled = roster.members
            self._waiting.popleft()
        self._running = False

    def _tell(self, request: _Request, state: str, error: str | None = None) -> None:
        change = request.change
        change.moved(state, error)
        if request.guests is not None and error is not None:
            request.guests.give_up(error)
        for worker, number in request.askers:
            figures = [change.progress, change.seconds, change.first_record, change.pause]
            said = [number, state, change.time, error, *figures]
            self._pump.changes.say(worker, "scaled", said)

    async def _carry_out(self, request: _Request) -> None:
        members, target = self._pump.roster.members, request.change.target
        for dataflow in self._pump.dataflows:
            require_scalable(dataflow)
        if request.guests is not None:
            await self._grow(request, self._new_numbers(request.guests.count), request.guests)
            return
        if isinstance(target, int) and target > len(members):
            joiners = self._new_numbers(target - len(members))
            if self._pump.inviter is not None:
                await self._invite(request, joiners, self._pump.inviter)
            elif not self._guests.isdisjoint(self._pump.roster.present):
                raise CannotScale(f"{_FAR}: python -m dataflow run ... --join HOST:PORT --secret FILE")
            elif self._pump.launcher is not None:
                await self._grow(request, joiners, self._pump.launcher)
            else:
                raise CannotScale("nobody can start workers here: only `execute` and `python -m dataflow run` can")
            return
        leavers = target if isinstance(target, tuple) else members[target:]
        leavers = tuple(worker for worker in leavers if worker in members)
        if self._pump.roster.leader in leavers:
            raise CannotScale(f"worker {self._pump.roster.leader} leads the others, and stays as long as the run does")
        if leavers:
            await self._shrink(request, leavers)

    def _new_numbers(self, count: int) -> tuple[int, ...]:
        """Of workers that join: nobody ever had them."""
        first = max(self._next, self._pump.roster.span)
        self._next = first + count
        return tuple(range(first, first + count))

    async def _invite(self, request: _Request, joiners: tuple[int, ...], inviter: Inviter) -> None:
        """Has workers come from elsewhere, and join when all of them are there."""
        guests = request.guests = GuestList(self._pump.changes, len(joiners), joiners, inviter)
        self._tell(request, "starting")
        self._invited = guests
        try:
            inviter.invite(joiners)
            await self._until(lambda: guests.complete or guests.error is not None)
            if guests.error is not None:
                raise CannotScale(guests.error)
            await self._grow(request, joiners, guests)
        finally:
            self._invited = None

    async def _grow(self, request: _Request, joiners: tuple[int, ...], launcher: Launcher) -> None:
        pump = self._pump
        self._tell(request, "starting")
        joined = False
        try:
            launcher.start(joiners, len(pump.roster.members) + len(joiners))
            await self._until(lambda: self._ready.issuperset(joiners) or not self._lost.keys().isdisjoint(joiners))
            for joiner in joiners:
                if joiner in self._lost:
                    raise CannotScale(f"worker {joiner} could not join: {self._lost[joiner]}")
            await self._change(request, join=joiners)
            joined = True
            if request.guests is not None:
                self._guests.update(joiners)
            launcher.joined(joiners)
        finally:
            if not joined:
                launcher.dismiss(joiners)
        request.change.seconds = pump.clock.now() - request.asked_at
        self._tell(request, "moving")
        await self._move(request, pump.roster.members)

    async def _shrink(self, request: _Request, leavers: tuple[int, ...]) -> None:
        pump = self._pump
        stay = [worker for worker in pump.roster.members if worker not in leavers]
        pump.roster.leaving |= set(leavers)
        pump.changes.tell_all("leaving", sorted(pump.roster.leaving))
        self._tell(request, "moving")
        try:
            while True:
                await self._move(request, stay)
                if await self._change(request, leave=leavers, once=True):
                    break
        except CannotScale:
            pump.roster.leaving -= set(leavers)
            pump.changes.tell_all("leaving", sorted(pump.roster.leaving))
            raise
        if pump.launcher is not None:
            pump.launcher.left(leavers)
        self._tell(request, "leaving")
        await self._until(lambda: self._idle.issuperset(leavers))
        for dataflow in pump.dataflows:
            if dataflow.keeper is not None:
                await dataflow.keeper.cover()
        await self._change(request, mute=leavers)
        await self._until(lambda: not set(leavers) & set(pump.roster.present))
        request.change.seconds = pump.clock.now() - request.asked_at

    async def _change(
        self,
        request: _Request,
        *,
        join: tuple[int, ...] = (),
        leave: tuple[int, ...] = (),
        mute: tuple[int, ...] = (),
        once: bool = False,
    ) -> bool:
        """Makes a change, when it can be made; with `once`, False if it cannot be now."""
        self._hush(True)
        try:
            if not await self._try_change(request, Turnover(0, join, leave, mute, request.within), once):
                return False
        finally:
            self._hush(False)
        if not mute:
            flows = self._pump.dataflows
            request.change.time = self._pump.changes.times.get(flows[0].number) if flows else None
        return True

    def _hush(self, hushed: bool) -> None:
        """No snapshot begins while a change waits for the last one to end."""
        for dataflow in self._pump.dataflows:
            if dataflow.keeper is not None:
                dataflow.keeper.hush(hushed)

    async def _try_change(self, request: _Request, wanted: Turnover, once: bool) -> bool:
        patience, clock = _FIRST, self._pump.clock
        while True:
            number, self._numbers = self._numbers, self._numbers + 1
            self._pump.changes.propose(replace(wanted, number=number))
            why_not = await self._outcome_of(number)
            if why_not is None:
                return True
            if why_not:
                raise CannotScale(why_not)
            await clock.sleep_until(clock.now() + patience)
            patience = min(2 * patience, _LONGEST)
            if once:
                return False

    async def _outcome_of(self, number: int) -> str | None:
        await self._until(lambda: self._outcome is not None and self._outcome[0] == number)
        assert self._outcome is not None
        return self._outcome[1]

    async def _move(self, request: _Request, workers: Sequence[int]) -> None:
        """Moves state to these workers, all operators side by side."""
        movers: list[StateMover] = []
        for dataflow in self._pump.dataflows:
            for operator in dataflow.hooks:
                if operator.mover is not None:
                    operator.mover.watch(self._signal.set)
                    operator.mover.begin(workers, request.placement, request.strategy)
                    movers.append(operator.mover)
            dataflow.on_end.append(self._signal.set)

        def moved() -> bool:
            done = sum(mover.step() for mover in movers) == len(movers)
            counts = [mover.progress for mover in movers]
            total = sum(all_of for _, all_of in counts)
            request.change.progress = sum(so_far for so_far, _ in counts) / total if total else 1.0
            return done or not self._pump.dataflows

        try:
            await self._until(moved)
        except DataflowError as error:
            raise CannotScale(str(error)) from error

    async def _until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            await self._signal.wait()
