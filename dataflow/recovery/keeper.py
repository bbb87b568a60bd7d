"""The keeper: takes the snapshots of one dataflow, on one worker. docs/internals/recovery.md is the specification.

It is an operator that hears of cuts, collects the shares of the worker's participants, writes shards into part files
beside the stream, and sends what it has to worker 0, where the manifest is made (`committing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.cuts import FOREVER, Gate, Keeps, Participant, ShardedParticipant, Share, Unrecoverable
from dataflow.build.operator import Step
from dataflow.channels.pact import Audience
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.comm import codec
from dataflow.operators.following import Follower
from dataflow.operators.probe import Probe
from dataflow.progress.graph import Target
from dataflow.recovery.announcing import Announcer
from dataflow.recovery.between import FollowingKeeper
from dataflow.recovery.committing import add_commit, add_manifest
from dataflow.recovery.gates import Gates
from dataflow.recovery.main_values import SavedByMain
from dataflow.recovery.manifest import SavedFile, SavedOperator
from dataflow.recovery.pacing import WritingPace
from dataflow.recovery.parts import AnnouncedCut, SnapshotOutcome, SnapshotPart
from dataflow.recovery.restoring import Restoring
from dataflow.recovery.savepoints import Wish, Wishes
from dataflow.recovery.storage import StorageError
from dataflow.recovery.vault import Vault
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream
    from dataflow.recovery.resume import Resume


def make_keeper(scope: Scope, resume: Resume) -> None:
    """Makes the keeper of a dataflow, before anything else is built in it."""
    vault = Vault(resume, scope.dataflow.name, scope.worker, scope.peers)
    scope.dataflow.keeper = keeper = Keeper(scope, vault)
    if scope.dataflow.beginning is None:
        scope.dataflow.resume_at = keeper.resume_at
    keeper.main = SavedByMain(scope.dataflow)


_PART = 0.5  # of the interval: what copying and writing a snapshot may take
_PAUSE = 0.001  # seconds, in which records are applied while memory is made ready


class Keeper:
    """The snapshots of one dataflow on one worker: participants enrol, shares come in, parts go out."""

    main: SavedByMain
    _hold: Capability | None  # until the final cut is concluded

    def __init__(self, scope: Scope, vault: Vault) -> None:
        root = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
        if not isinstance(root, Integers):
            raise Unrecoverable(
                f"{scope.title} cannot be recovered: its times must be integers, and they are {scope.domain!r}"
            )
        self.vault = vault
        self.resume_at: Time = vault.resume_at
        self.participants: dict[str, Gate] = {}
        self._scope = scope
        self._gates = Gates(self.resume_at)
        self._wishes = Wishes(vault.storage)
        self._shares: dict[Time, dict[str, Share]] = {}  # by cut, of those that have given theirs
        self._heard: dict[Time, Capability] = {}  # by cut, the right to send the part
        self._written: dict[Time, dict[str, tuple[Share, object]]] = {}  # by cut and name, not known to be committed

    # For participants

    def enrol(self, participant: Participant, activate: Callable[[], None]) -> Gate:
        """Admits a participant; its gate is closed until it is resumed."""
        name = participant.name
        if name in self.participants:
            raise Unrecoverable(
                f"two operators are called {name!r}: with recovery each needs a name of its own (name=...), by which "
                "its state is found again"
            )
        gate = self.participants[name] = Gate(participant, self, activate, self.resume_at)
        self._gates.enrol(gate)
        return gate

    def gave(self, gate: Gate, share: Share) -> None:
        """A participant has given its share."""
        assert gate.cut is not None
        self._shares.setdefault(gate.cut, {})[gate.participant.name] = share
        self._write_if_complete(gate.cut)
        self._gates.give(gate)  # last: the participant may go on at once

    # For people

    def wish(self, name: str) -> Wish:
        """Somebody wants a snapshot as soon as there can be one, as a savepoint. For worker 0."""
        assert self.vault.worker == 0
        return self._wishes.add(name)

    # For the membership

    @property
    def between_cuts(self) -> bool:
        """Whether no cut is under way as far as this worker knows, and one could be announced."""
        if self._ended or self._heard or self._written or not (self._gates.resumed and self._gates.idle):
            return False
        return self.vault.worker != 0 or not (self._announcer.under_way or self._cuts.closed)

    @property
    def only_the_end_follows(self) -> bool:
        """Whether no cut can be announced any more but the final one. For worker 0."""
        return self._cuts.closed

    @property
    def owes_nothing(self) -> bool:
        """Whether no later cut could want something that only this worker has."""
        return all(gate.participant.owes_nothing for gate in self.participants.values())

    def hush(self, hushed: bool) -> None:
        """Whether no cut is to be announced. For worker 0."""
        self._announcer.hush(hushed)

    def part_at(self, time: Time) -> None:
        """Workers join or leave at a time: has a cut taken there, if somebody needs one. For worker 0."""
        operators = self._scope.dataflow.operators
        if any(operator.follows is not None and operator.follows.parts_at_change for operator in operators):
            self._announcer.announce_change(time)

    async def cover(self) -> None:
        """Has a cut taken, and waits until all that has been written so far is committed, on all workers. If none can
        be announced any more, the final one does that. For worker 0."""
        cut = None if self._cuts.closed else await self._announcer.stored(self._cuts.time)
        if cut is not None and cut != FOREVER:
            await self._committed.wait_passed(cut)

    def let_go(self) -> None:
        """This worker leaves: others wait for no parts of it."""
        self._muted = True
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    # Construction

    def build(self) -> None:
        """Adds its operators to the graph, when the program has added all of its own."""
        self._refuse_unknown()
        scope = self._scope
        self._cuts: Follower[AnnouncedCut] = Follower(scope, "cuts")
        builder = OperatorBuilder(scope, "snapshot")
        builder.add_input(self._cuts.stream, Audience())
        builder.add_output({}, initial=True, entry=False)
        parts: Stream[SnapshotPart]
        (parts,) = builder.build(self._start, keeps=Keeps.NOTHING)
        done = add_commit(add_manifest(parts, self._commit), self._conclude)
        if scope.worker == 0:
            self._committed = Probe(done)  # how far all workers have committed

    def begin(self) -> None:
        """The graph is complete: what is saved comes back, and cuts may be announced."""
        self._announcer = Announcer(self._cuts, self._context.clock, self.vault, self._wishes)
        self._restoring = Restoring(self.vault, self.participants, self._context.worker)
        self._restoring.begin()
        self._context.spawn(self._run)
        if self._scope.dataflow.beginning is not None:
            self._advance()  # others are on their way already

    def _refuse_unknown(self) -> None:
        unknown = [operator for operator in self._scope.dataflow.operators if operator.keeps is Keeps.UNKNOWN]
        if unknown:
            names = ", ".join(operator.label for operator in unknown)
            raise Unrecoverable(
                f"{self._scope.title} cannot be recovered, because of {names}: nobody has said what they keep from one "
                "time to the next. Use an operator whose state is kept (megaphone.unary, dataflow.state.native), a "
                "source with positions (dataflow.sources), a sink that commits (dataflow.sinks); or, if an operator "
                "of your own keeps nothing, say keeps=Keeps.NOTHING"
            )

    def _start(self, context: Context) -> Step:
        self._context = context
        self._input: InputPort[AnnouncedCut] = context.inputs[0]
        self._output: OutputPort[SnapshotPart] = context.outputs[0]
        self._hold = context.capability()
        self._ended = False  # whether no cut can be announced any more
        self._muted = False  # whether this worker has left, and takes part in no more cuts
        context.follow(FollowingKeeper(self, context.worker))
        port = self._input
        self._scope.dataflow.watch(Target(port.operator.number, port.number), self._advance)
        return self._step

    # Cuts

    def _step(self) -> None:
        """Hears of cuts. What can be announced at t is announced once, so a cut is final when it is heard."""
        for _, cuts in self._input:
            for cut in cuts:
                assert self._hold is not None
                self._heard[cut.time] = self._hold.delayed(cut.time)
                self._hold.downgrade(cut.time + 1)
                self._gates.announce(cut.time)
                self._write_if_complete(cut.time)

    def _advance(self) -> None:
        frontier = self._input.frontier
        if self._muted:
            return
        self._announcer.poke()
        if frontier:
            self._gates.advance(min(frontier))
        elif not self._ended:  # no cut will be announced: the final one follows
            self._ended = True
            self._try_final()
            self._gates.advance(None)
            self._write_if_complete(FOREVER)

    def _try_final(self) -> None:
        assert self._hold is not None
        self._heard[FOREVER] = self._hold.clone()
        self._hold.downgrade(self._hold.time + 1)  # for another try

    def _write_if_complete(self, cut: Time) -> None:
        shares = self._shares.get(cut, {})
        complete = len(shares) == len(self.participants) and self._gates.resumed
        if complete and cut in self._heard and not self._context.dropped:
            self._shares.pop(cut, None)
            capability = self._heard.pop(cut)
            self._context.spawn(lambda: self._write(cut, shares, capability))

    async def _write(self, cut: Time, shares: dict[str, Share], capability: Capability) -> None:
        """Writes what is frozen, and sends the part."""
        worker = self._context.worker
        written = self._written[cut] = {name: (share, None) for name, share in shares.items()}
        try:
            files = await self._save(shares, 0.0 if cut == FOREVER else _PART * self.vault.policy.every)
            for name, share in shares.items():
                if share.prepare is not None:
                    written[name] = (share, await share.prepare())
        except (StorageError, OSError) as error:  # the stream goes on: the snapshot is given up, and that is told
            part = SnapshotPart(worker, cut, failure=f"worker {worker}: {error}")
        else:
            plain = {name: codec.encode(share.plain) for name, share in shares.items()}
            tokens = {name: codec.encode(token) for name, (share, token) in written.items() if share.prepare}
            seen = max((share.seen for share in shares.values() if share.seen is not None), default=None)
            part = SnapshotPart(worker, cut, files, plain, tokens, seen)
        if not self._context.dropped:
            self._output.give(capability, [part])
            capability.drop()

    async def _save(self, shares: dict[str, Share], seconds: float) -> list[SavedFile]:
        """Copies and puts shards, a little in each turn, over so many seconds at most if there is much to do."""
        writer = self.vault.writer()
        size = sum(share.frozen.size for share in shares.values() if share.frozen is not None)
        pace = WritingPace(self._context.clock, size, seconds)
        for name, share in shares.items():
            while share.frozen is not None and (copied := share.frozen.pop(writer.place)) is not None:
                shard, pieces = copied
                await writer.add(name, shard, pieces)
                await pace.did(sum(piece.nbytes for piece in pieces))
        return await writer.finish()

    async def _commit(self, parts: list[SnapshotPart]) -> SnapshotOutcome:
        """Makes the manifest, on worker 0."""
        operators = {
            name: SavedOperator(dict(gate.participant.describe()), gate.participant.shards)
            for name, gate in self.participants.items()
            if isinstance(gate.participant, ShardedParticipant)
        }
        members, graph = self._scope.dataflow.pump.roster.members, self._scope.dataflow.graph.describe()
        outcome = await self.vault.conclude(parts, operators, "\n".join(graph), members)
        await self._wishes.keep(outcome, self.vault.manifest)
        return outcome

    async def _conclude(self, outcome: SnapshotOutcome) -> None:
        """The snapshot is durable, or will never be."""
        self.vault.learn(outcome)
        for name, (share, token) in self._written.pop(outcome.cut).items():
            participant = self.participants[name].participant
            if outcome.number is not None:
                await participant.commit(outcome.time, share.plain, token)
                participant.mark(outcome.stale.get(name, ()))
            elif share.frozen is not None:
                share.frozen.cancel()
                participant.mark([*share.frozen.shards, *share.frozen.empty])
        if self._context.worker == 0:
            self._mark(outcome)
            self._announcer.concluded(outcome)
            if self._wishes.promised(outcome.cut):
                self._context.spawn(lambda: self._grant(outcome))
        if outcome.cut == FOREVER:
            await self._conclude_final(outcome)
        else:
            await self._get_ready(lambda: True)  # this cut has been written, and the next waits for `conclude`
            self._gates.conclude(outcome.cut)

    def _mark(self, outcome: SnapshotOutcome) -> None:
        """For those who look: what has become of the snapshot."""
        dataflow = self._scope.dataflow
        kind = "snapshot" if outcome.number is not None else "snapshot abandoned"
        what = f"{dataflow.name}: {outcome.why or f'{outcome.number}, at {outcome.time!r}'}"
        dataflow.pump.meter.mark(kind, what, self._announcer.announced_at(outcome.cut))

    async def _grant(self, outcome: SnapshotOutcome) -> None:
        """Whoever waits for a savepoint learns of it when all workers' output before it is visible. After the final
        one nobody may be left to wait for."""
        if outcome.number is not None and outcome.cut != FOREVER:
            await self._committed.wait_passed(outcome.cut)
        self._wishes.concluded(outcome)

    async def _conclude_final(self, outcome: SnapshotOutcome) -> None:
        """The end of the run; or, if its last snapshot was abandoned, another try: what has not been committed would be
        lost."""
        assert self._hold is not None
        if outcome.number is not None:
            self._hold.drop()
            self._hold = None
            self._gates.conclude(FOREVER)
            return
        pause = min(1.0, max(0.1, self.vault.policy.every))
        await self._context.clock.sleep_until(self._context.clock.now() + pause)
        self._try_final()
        self._gates.repeat(FOREVER)
        self._write_if_complete(FOREVER)

    # Life

    async def _get_ready(self, may: Callable[[], bool]) -> None:
        """Has participants make memory ready for the next cut, a little at a time: the stream goes on meanwhile. Only
        while they `may`: what was copied for a cut under way is in that memory until it is written."""
        for gate in tuple(self.participants.values()):
            if may():
                for _ in gate.participant.get_ready():
                    await trio.sleep(_PAUSE)

    def _is_idle(self) -> bool:
        return self._gates.idle

    async def _run(self) -> None:
        if self._context.worker == 0:
            await self.vault.begin()
        await self._restoring.run()
        for gate in tuple(self.participants.values()):
            gate.participant.resume()
            self._gates.resume(gate)
        for cut in tuple(self._heard):
            self._write_if_complete(cut)
        await self._get_ready(self._is_idle)
        if self._context.worker == 0:
            self._context.spawn(self._announcer.run_savepoints)
            await self._announcer.run()
