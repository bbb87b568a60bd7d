"""The operator behind a sink object: keeps batches until their times are complete, writes them in the order of times,
and takes part in snapshots."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Never, TypeVar

import trio
from sortedcontainers import SortedDict

from dataflow.build.builder import Context, OperatorBuilder, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import FOREVER, Keeps, Participant, Share
from dataflow.build.notificator import Notificator
from dataflow.channels.pact import Batch
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.comm.flow import weigh
from dataflow.errors import ConstructionError
from dataflow.members.barrier import Turnover
from dataflow.members.following import Follows
from dataflow.operators.sinks import Away, Place, Sink, SinkUnavailable, Writer, join_batches
from dataflow.progress.graph import Source
from dataflow.run.clock import Clock
from dataflow.run.signal import Signal
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")
R = TypeVar("R")

_AGAIN = 1.0  # seconds until what the outside has not taken is tried again


def committed(stream: Stream[object], sink: Sink, name: str) -> Stream[Never]:
    """Has a sink write the records of a stream. The stream that is returned carries none; its frontier says what has
    been written (without recovery and without a pause between commits: what has been committed)."""
    scope = stream.scope
    domain = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
    if scope.parent is not None or not isinstance(domain, Integers):
        raise ConstructionError(f"{name}, a sink that commits, must be in the root of a dataflow of integer times")
    route = sink.route()
    if route is not None:  # also with one worker: others may join
        stream = _in_order(stream, f"{name}: in order")
    builder = OperatorBuilder(scope, name)
    builder.add_input(stream, route)
    builder.add_output(initial=True, entry=False)
    (out,) = builder.build(
        lambda context: _Committing(scope, context, sink, name).step, frontier=True, keeps=Keeps.SHARE
    )
    _write_one_by_one(out)
    return out


def _write_one_by_one(stream: Stream[D]) -> Stream[D]:
    """What makes this stream waits for times to be complete, and puts no records together."""
    stream.scope.dataflow.operators[stream.source.node].combines = False
    return stream


def _in_order(stream: Stream[object], name: str) -> Stream[object]:
    """All of a time in one batch, so that what one worker gave for one key arrives in the order in which it was given:
    on the way, one batch may overtake another."""
    waiting: dict[Time, list[Batch]] = {}

    def on_batch(message: MessageCapability, batch: Batch, _: OutputPort, notificator: Notificator) -> None:
        if message.time not in waiting:
            notificator.notify_at(message.retain())
        waiting.setdefault(message.time, []).append(batch)

    def on_notify(capability: Capability, output: OutputPort, _: Notificator) -> None:
        for batch in join_batches(waiting.pop(capability.time)):
            output.give(capability, batch)

    return _write_one_by_one(unary_notify(stream, name, on_batch, on_notify, keeps=Keeps.NOTHING))


class _Committing(Participant):
    """A queue by time between the operator, which must not wait, and a task, which may.

    `_hold`, a capability, is at the least time that is not done with.
    """

    def __init__(self, scope: Scope, context: Context, sink: Sink, name: str) -> None:
        self.name = name
        self._sink = sink
        self._context = context
        self._dataflow = scope.dataflow
        keeper = scope.dataflow.keeper
        self._place = Place(name, scope.worker, 0 if keeper is None else keeper.vault.incarnation, _away(scope))
        self._input: InputPort = context.inputs[0]
        self._hold: Capability = context.capability()
        self._waiting: SortedDict[Time, list[tuple[Batch, int]]] = SortedDict()
        self._weighed: Time = 0  # what waits before this is weighed
        self._opened: Writer | None = None
        self._turn = trio.Lock()  # a writer does one thing at a time
        self._signal = Signal()
        self._resumed = trio.Event()
        self._restored: list[object] = []  # tokens of the snapshot from which the run goes on
        self._next: Time = 0  # after all that was written
        self._uncommitted: Time | None = None  # the first written time that was not committed; without recovery only
        self._commit_at = 0.0  # without recovery: when the next commit is due
        self._alarm = False  # whether somebody will wake us to commit
        patience = 0.0 if keeper is None else keeper.vault.policy.give_up_after
        self._writing, self._insisting = (_Unavailable(context.clock, patience) for _ in range(2))
        self._gate = scope.dataflow.enrol(self, context.activate)
        if self._gate is None:
            self._resumed.set()
        self._change: Time | None = None  # rows of a key were written elsewhere before this time
        context.follow(_FollowingSink(self, scope.worker, routed=sink.route() is not None))
        context.spawn(self._run)

    # As an operator

    @property
    def idle(self) -> bool:
        """Whether all that came is written and, without recovery, committed."""
        return not self._waiting and (self._gate is not None or self._uncommitted is None)

    def let_go(self) -> None:
        """This worker leaves: nothing will come any more."""
        self._hold.release()

    def change_at(self, time: Time) -> None:
        """From a time on rows of a key may come to another worker than before. (With recovery there is a cut there.)"""
        if self._gate is None:
            if self._change is None:
                output = self._context.outputs[0]
                self._dataflow.watch(Source(output.operator.number, output.number), self._signal.set)
            self._change = time
            self._signal.set()

    def _waits_for_others(self, time: Time) -> bool:
        """Whether other workers may still have to commit rows of before a change. Their capabilities tell."""
        if self._change is None or time < self._change:
            return False
        return any(at < self._change for at in self._dataflow.tracker.frontier(self._context.outputs[0].index))

    def step(self) -> None:
        """Queues what has arrived by time. The task does the rest."""
        for message, batch in self._input:
            self._waiting.setdefault(message.time, []).append((batch, weigh(batch)))
        self._weigh_writable()
        self._signal.set()

    def _weigh_writable(self) -> None:
        """What could be written is weighed, and slows sources down. What waits for its time to be complete, or for the
        gate, does not: a source that waits for room, and without which neither happens, would wait for ever."""
        for time in self._waiting.irange(self._weighed):
            if self._input.could_see(time) or not (self._gate is None or time < self._gate.limit):
                return
            self._context.keep(sum(size for _, size in self._waiting[time]))
            self._weighed = time + 1

    # As a participant of snapshots

    def restore(self, shares: Mapping[int, object]) -> None:
        """A share is the token of what had been prepared."""
        self._restored = [token for token in shares.values() if token is not None]

    def resume(self) -> None:
        self._resumed.set()

    async def commit(self, time: Time, plain: object, token: object) -> None:
        if token is not None:
            await self._insist(lambda: self._writer.commit(token))

    async def _insist(self, effect: Callable[[], Awaitable[None]]) -> None:
        """Has an effect that must come before anything else does, also if the outside does not answer for a while."""
        while True:
            async with self._turn:
                await trio.lowlevel.checkpoint_if_cancelled()  # else it would open again what the task has closed
                try:
                    await effect()
                except SinkUnavailable as error:
                    self._insisting.bear(error)
                else:
                    self._insisting.over()
                    return
            await self._context.clock.sleep_until(self._insisting.again_at)

    # The task

    async def _run(self) -> None:
        self._context.enter_write()
        try:
            await self._dataflow.started.wait()
            if not self._dataflow.built:
                return
            await self._resumed.wait()
            if self._gate is not None and self._place.worker == 0:
                await self._insist(lambda: self._writer.recover(self._restored))
            while True:
                await self._signal.wait()
                while not self._context.dropped and (await self._write_next() or await self._give_share()):
                    pass
                if not self._context.dropped:
                    await self._commit_alone()
                    self._advance()
        finally:
            with trio.CancelScope(shield=True):  # a commit may be under way in a thread, which cannot be cancelled
                async with self._turn:
                    if self._opened is not None:
                        self._opened.close()

    @property
    def _writer(self) -> Writer:
        if self._opened is None:
            self._opened = self._sink.open(self._place)
        return self._opened

    async def _write_next(self) -> bool:
        """Writes the least time, if it is complete and the gate lets it pass."""
        if not self._waiting:
            return False
        self._weigh_writable()
        time = self._waiting.peekitem(0)[0]
        if self._input.could_see(time) or not (self._gate is None or self._gate.opens(time)):
            return False
        if self._waits_for_others(time):
            return False
        if self._writing.error is not None and self._context.clock.now() < self._writing.again_at:
            return False
        if not await self._write(time, self._waiting[time]):
            return False
        del self._waiting[time]
        self._next = time + 1
        if self._uncommitted is None:
            self._uncommitted = time
            self._commit_at = self._context.clock.now() + self._sink.every
        self._advance()
        return True

    async def _write(self, time: Time, batches: list[tuple[Batch, int]]) -> bool:
        """Writes the batches of a time, one by one; False if the outside does not take the next one now."""
        try:
            async with self._turn:
                while batches:
                    await self._writer.write(time, batches[0][0])
                    self._context.keep(-batches.pop(0)[1])
        except SinkUnavailable as error:
            if self._gate is None:  # nothing could be done again
                raise
            self._writing.bear(error)
            self._context.activate_after(_AGAIN)
            return False
        except Exception as error:
            error.add_note(f"writing a batch at {time!r}")
            raise
        self._writing.over()
        return True

    def _advance(self) -> None:
        """Moves the capability to the least time that is not done with, or drops it."""
        if not self._hold.live:
            return
        open_times = self._open_times()
        if self._gate is None and self._uncommitted is not None:
            if self._sink.every == 0.0 or self._change is not None:
                open_times.append(self._uncommitted)
            elif not open_times:
                return  # the last commit is still to come
        if not open_times:
            self._hold.drop()
        elif min(open_times) > self._hold.time:
            self._hold.downgrade(min(open_times))

    async def _give_share(self) -> bool:
        """Prepares what is before the cut, if all of it is here. Nothing later is written meanwhile: the gate is still
        closed. What is here and cannot be written gives the snapshot up."""
        gate = self._gate
        if gate is None or gate.cut is None:
            return False
        share = Share(seen=self._next - 1 if self._next else None)
        if not self._complete_before(gate.cut):
            if self._writing.error is None:
                return False
            share.prepare = _failed(self._writing.error)
            gate.give(share)
            return True
        try:
            async with self._turn:
                token = await self._writer.prepare(self._next if gate.cut == FOREVER else gate.cut)
            share.plain = token
            share.prepare = _prepared(token)
        except OSError as error:  # told with the snapshot, which is given up
            share.prepare = _failed(error)
        gate.give(share)
        return True

    def _complete_before(self, cut: Time) -> bool:
        return all(time >= cut for time in self._open_times())

    def _open_times(self) -> list[Time]:
        """Of the times that may still come, and of those that wait, the least."""
        return [*self._input.frontier, *([self._waiting.peekitem(0)[0]] if self._waiting else [])]

    # Without recovery

    async def _commit_alone(self) -> None:
        """Commits what was written, if the last commit was long enough ago, or nothing will come any more."""
        if self._gate is not None or self._uncommitted is None:
            return
        now = self._context.clock.now()
        soon = self._change is not None and self._uncommitted < self._change  # others wait for it
        if now < self._commit_at and not soon and not (self._input.done and not self._waiting):
            if not self._alarm:
                self._alarm = True
                self._context.activate_after(self._commit_at - now)
            return
        async with self._turn:
            token = await self._writer.prepare(self._next)
            if token is not None:
                await self._writer.commit(token)
        self._uncommitted = None
        self._alarm = False


class _FollowingSink(Follows):
    """A sink's part in a change: what a worker has written stays there, and it leaves when that is done."""

    holds = True

    def __init__(self, sink: _Committing, worker: int, *, routed: bool) -> None:
        """`routed`: rows of a key come to one worker."""
        self._sink = sink
        self._worker = worker
        self.parts_at_change = routed

    @property
    def idle(self) -> bool:
        return self._sink.idle

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        if self._worker in proposal.mute:
            self._sink.let_go()
        elif self.parts_at_change and (proposal.join or proposal.leave):
            self._sink.change_at(time)


class _Unavailable:
    """How long the outside has not answered."""

    def __init__(self, clock: Clock, patience: float) -> None:
        self.error: SinkUnavailable | None = None
        self.again_at = 0.0
        self._clock = clock
        self._patience = patience
        self._since = 0.0

    def bear(self, error: SinkUnavailable) -> None:
        """It does not answer: that is told, and raised when it has been so for too long."""
        now = self._clock.now()
        if self.error is None:
            self._since = now
            print(f"dataflow: {error}; this is tried again every {_AGAIN:g} s", file=sys.stderr)
        elif now - self._since > self._patience:
            error.add_note(f"it was tried for {now - self._since:.0f} s (give_up_after)")
            raise error
        self.error, self.again_at = error, now + _AGAIN

    def over(self) -> None:
        """It has answered."""
        self.error = None


def _prepared(token: object) -> Callable[[], Awaitable[object]]:
    async def prepare() -> object:
        return token

    return prepare


def _failed(error: OSError) -> Callable[[], Awaitable[object]]:
    async def prepare() -> object:
        raise error

    return prepare


def _away(scope: Scope) -> Away:
    """How writers do what blocks: in a thread, except where a simulation chooses every turn."""
    simulated = scope.dataflow.pump.grant is not None

    async def away(function: Callable[[], R]) -> R:
        if simulated:
            return function()
        return await trio.to_thread.run_sync(function)

    return away
