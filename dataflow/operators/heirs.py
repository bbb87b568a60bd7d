"""Partitions of a source go to other workers, when workers join and leave. docs/internals/membership.md says how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dataflow.channels.ports import OutputPort
from dataflow.members.barrier import Turnover
from dataflow.members.decisions import Mint
from dataflow.members.following import CannotScale, Follows, Handing
from dataflow.members.plain import fields
from dataflow.members.reading import Standing, dealt_anew
from dataflow.operators.finding import Dealing
from dataflow.time.order import Time


class PartitionReader(Protocol):
    """What reads the partitions of one worker."""

    name: str

    def standings(self) -> dict[str, Standing]:
        """By partition of this worker, where it stands."""

    @property
    def at(self) -> Time | None:
        """Where its capability is; None if it has none."""

    @property
    def restored(self) -> Mapping[str, object]:
        """Where the run went on from, by partition."""

    def take_over(
        self, readers: dict[str, int], may_read: list[int], gained: dict[str, Standing], time: Time, minted: Time | None
    ) -> None:
        """Others read now what they read. `time`: nothing of what is gained is sent before, if the engine gives the
        times. `minted`: a capability that everybody has counted for this worker."""

    def take_restored(self, restored: Mapping[str, object]) -> None:
        """A joiner learns where the run went on from."""

    def leave(self) -> None:
        """This worker reads nothing more."""


class FollowingReader(Follows):
    """A source's part in a change."""

    def __init__(
        self, reader: PartitionReader, dealing: Dealing, output: OutputPort, *, timed: bool, moves: bool
    ) -> None:
        """`timed`: whether the source names its times. `moves`: whether another worker can go on with a partition."""
        self._reader = reader
        self._dealing = dealing
        self._output = output
        self._dataflow = output.dataflow
        self._me = output.dataflow.pump.index
        self._timed = timed
        self._moves = moves
        self.early = timed  # before partitions are dealt out, a joiner may get any of them

    def report(self, proposal: Turnover) -> object:
        """Where this worker's partitions stand. Nothing is sent until the change is decided, so that stays true."""
        if not (proposal.join or proposal.leave):
            return None
        standings = {partition: standing.plain() for partition, standing in self._reader.standings().items()}
        return [self._reader.at, standings]

    def decide(self, proposal: Turnover, time: Time, reports: Mapping[int, object]) -> Handing:
        """Deals partitions out anew, with what their heirs must know, and mints the rights that those need."""
        if not (proposal.join or proposal.leave):
            return Handing()
        roster = self._dataflow.pump.roster
        members = sorted({*roster.members, *proposal.join} - set(proposal.leave))
        at: dict[int, Time | None] = {}
        standings: dict[str, Standing] = {}
        for worker, report in reports.items():
            if report is not None:
                at[worker], known = fields(report, 2)
                standings.update({partition: Standing.read(plain) for partition, plain in known.items()})
        readers = dict(self._dealing.readers)
        for partition in readers:  # the news of some is still on its way
            fresh = Standing(behind=self._reader.restored.get(partition))
            standings.setdefault(partition, fresh)
        anew = self._deal_anew(proposal, readers, standings, members)
        gained: dict[int, dict[str, Standing]] = {}
        for partition, heir in anew.items():
            if heir != readers[partition]:
                gained.setdefault(heir, {})[partition] = standings[partition]
        over = {partition for partition, standing in standings.items() if standing.over}
        return self._hand(proposal, time, anew, gained, over, {p: at.get(readers[p]) for p in readers}, at)

    def _deal_anew(
        self, proposal: Turnover, readers: dict[str, int], standings: Mapping[str, Standing], members: list[int]
    ) -> dict[str, int]:
        over = {partition for partition, standing in standings.items() if standing.over}
        if self._moves:
            return dealt_anew(readers, over, members, self._dataflow.pump.roster.leader)
        stuck = [p for p, reader in readers.items() if reader in proposal.leave and p not in over]
        if stuck:
            worker = readers[stuck[0]]
            raise CannotScale(
                f"worker {worker} cannot leave: it reads partition {stuck[0]!r} of {self._reader.name}, with which no "
                "other worker can go on. Have others leave, or end the run with a savepoint"
            )
        return dealt_anew(readers, readers, members, self._dataflow.pump.roster.leader)

    def _hand(
        self,
        proposal: Turnover,
        time: Time,
        anew: dict[str, int],
        gained: Mapping[int, Mapping[str, Standing]],
        over: set[str],
        owned_at: Mapping[str, Time | None],
        at: Mapping[int, Time | None],
    ) -> Handing:
        handing = Handing()
        roster = self._dataflow.pump.roster
        node, port = self._output.operator.number, self._output.number
        reading = sorted({heir for p, heir in anew.items() if p not in over})
        may_read = reading if self._timed else []
        for worker in sorted({*roster.present, *proposal.join}):
            mine = gained.get(worker, {})
            right = None
            times = [self._start(standing, owned_at[p]) for p, standing in mine.items() if not standing.over]
            if times and self._timed:
                right = min(times)
            elif times and worker not in proposal.join and at.get(worker) is None:
                right = time
            if right is not None:
                handing.mints.append(Mint(worker, node, port, right))
            known = {partition: standing.plain() for partition, standing in mine.items()}
            restored = dict(self._reader.restored) if worker in proposal.join else {}
            handing.handed[worker] = [anew, may_read, known, right, restored]
        return handing

    @staticmethod
    def _start(standing: Standing, owned_at: Time | None) -> Time:
        """Where a partition goes on, if the source names its times: its reader has a capability there, or before."""
        start = owned_at if standing.time is None else standing.time
        assert start is not None, "whoever has a partition that is not at its end has a capability"
        return start

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        """The change is made."""
        if handed is None:
            return
        anew, may_read, known, right, restored = fields(handed, 5)
        if self._me in proposal.join:
            self._reader.take_restored(restored)
        if self._me == self._dataflow.pump.roster.leader:
            self._dealing.readers = dict(anew)
            self._dealing.may_read = list(may_read)
        gained = {partition: Standing.read(plain) for partition, plain in known.items()}
        self._reader.take_over(dict(anew), list(may_read), gained, time, right)
        if self._me in proposal.leave:
            self._reader.leave()
