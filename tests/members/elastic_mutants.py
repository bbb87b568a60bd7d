"""Rules about sources, snapshots and the membership, broken on purpose, one at a time. Each must be caught."""

from __future__ import annotations

from typing import Any

from dataflow.members import reports
from dataflow.members.reading import Standing
from dataflow.operators import reading
from dataflow.operators.positions import Positions
from dataflow.recovery.between import FollowingKeeper
from dataflow.recovery.keeper import Keeper
from tests.members.mutants import patched


def positions_forgotten() -> Any:
    """Heirs begin at the beginning."""
    return patched(Standing, "read", classmethod(lambda cls, plain: cls(plain[0], plain[1])))


def still_reads() -> Any:
    """Whoever read a partition goes on."""
    return patched(reading.Reading, "_part_with", lambda self, partition: None)


def sends_while_stopped() -> Any:
    """Sources go on while a change is decided."""

    async def may_send(self: Any) -> bool:
        await self._dataflow.room()
        return not self._context.dropped

    return patched(reading.Reading, "_may_send", may_send)


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


def history_forgotten() -> Any:
    """An heir knows where a partition is, and not where it was."""
    adopt = Positions.adopt

    def forgetful(self: Any, partition: str, behind: object, history: Any) -> None:
        known = list(history)
        adopt(self, partition, known[-1][1] if known else behind, [])

    return patched(Positions, "adopt", forgetful)


def heirs_behind() -> Any:
    """An heir goes on where it was itself: before what was sent of the partition."""
    return patched(reading.Reading, "_shift", lambda self, time: None)


MUTANTS = [  # and those two, which show where partitions are far apart: see `heirs`
    positions_forgotten,
    still_reads,
    sends_while_stopped,
    cut_ignored,
    rights_too_late,
    left_uncovered,
    not_parted,
]
