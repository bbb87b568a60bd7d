"""Changes of the membership and snapshots: one or the other. docs/internals/membership.md, "Together with recovery"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dataflow.members.barrier import Turnover
from dataflow.members.decisions import NotYet
from dataflow.members.following import Follows, Handing
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.recovery.keeper import Keeper


class FollowingKeeper(Follows):
    """The keeper's part in a change: there is none while a cut is under way."""

    holds = True

    def __init__(self, keeper: Keeper, worker: int) -> None:
        self._keeper = keeper
        self._worker = worker

    def report(self, proposal: Turnover) -> object:
        """Whether this worker is done with the last cut."""
        return self._keeper.between_cuts

    def decide(self, proposal: Turnover, time: Time, reports: Mapping[int, object]) -> Handing:
        """Joiners get the number of the last manifest, after which their part files are named."""
        if not all(reports.values()):
            raise NotYet("a snapshot is under way")
        if self._keeper.only_the_end_follows:  # the leader has heard more since it reported
            raise NotYet("all inputs have ended, and the final snapshot follows")
        return Handing(dict.fromkeys(proposal.join, self._keeper.vault.number))

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        """A joiner begins between two cuts; a leaver that has nothing left takes part in no more."""
        if self._worker in proposal.join:
            if isinstance(handed, int):
                self._keeper.vault.number = handed
            else:  # the dataflow has ended
                self._keeper.let_go()
        if self._worker in proposal.mute:
            self._keeper.let_go()
        if self._worker == 0 and (proposal.join or proposal.leave):
            self._keeper.part_at(time)
