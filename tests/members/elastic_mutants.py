"""Rules about sources, snapshots and the membership, broken on purpose, one at a time. Each must be caught."""

from __future__ import annotations

from typing import Any

from dataflow.members import reports
from dataflow.members.reading import Standing
from dataflow.operators import partitioned
from dataflow.operators.finding import Dealing
from dataflow.recovery.between import FollowingKeeper
from dataflow.recovery.keeper import Keeper
from tests.members.mutants import patched


def positions_forgotten() -> Any:
    """Heirs begin at the beginning."""
    return patched(Standing, "read", classmethod(lambda cls, plain: cls(plain[0], plain[1])))


def history_forgotten() -> Any:
    """Heirs know where a partition stands now, and not where it stood before a cut."""

    def read(cls: Any, plain: Any) -> Any:
        over, time, behind, history = plain
        return cls(over, time, history[-1][1] if history else behind, [])

    return patched(Standing, "read", classmethod(read))


def still_reads() -> Any:
    """Whoever read a partition goes on."""
    return patched(partitioned._Reading, "_part_with", lambda self, partition: None)


def sends_while_stopped() -> Any:
    """Sources go on while a change is decided."""

    async def may_send(self: Any) -> bool:
        await self._dataflow.room()
        return not self._context.dropped

    return patched(partitioned._Reading, "_may_send", may_send)


def heirs_too_early() -> Any:
    """Heirs send at times that are before those at which the partition was read."""
    return patched(partitioned._Reading, "_shift", lambda self, time: None)


def news_believed() -> Any:
    """The finder does not know that partitions have gone elsewhere."""
    deal = Dealing.deal

    def forgetful(self: Any, found: list[str], members: tuple[int, ...]) -> Any:
        self.readers = {}
        return deal(self, found, members)

    return patched(Dealing, "deal", forgetful)


def cut_ignored() -> Any:
    """A change is made while a cut is under way."""
    return patched(FollowingKeeper, "report", lambda self, proposal: True)


def rights_too_late() -> Any:
    """Joiners' keepers and sinks have no right to what is before the change."""
    return patched(reports, "_is_early", lambda dataflow, number, port: False)


def left_uncovered() -> Any:
    """A leaver goes before a snapshot has what it wrote."""

    async def cover(self: Any) -> None:
        return

    return patched(Keeper, "cover", cover)


def not_parted() -> Any:
    """Rows of a key, before and after a change, are in one snapshot."""
    return patched(Keeper, "part_at", lambda self, time: None)


MUTANTS = [
    positions_forgotten,
    history_forgotten,
    still_reads,
    sends_while_stopped,
    heirs_too_early,
    cut_ignored,
    rights_too_late,
    left_uncovered,
    not_parted,
]
