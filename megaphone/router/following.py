"""F, where workers join and leave: what a joiner must know of configurations, and when a leaver has nothing left.

A joiner would start from the initial map, and lack what was said before and is still to take effect. While all stand
still, the leader has every update that was sent. It hands over all configurations that somebody may ask for, pending
updates, and those that wait at its control input; and with them the capabilities that F holds for their times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dataflow.lowlevel import Context
from dataflow.members.barrier import Turnover
from dataflow.members.decisions import Mint, NotYet
from dataflow.members.following import Follows, Handing
from dataflow.time.order import Time
from megaphone.control.updates import workers_of

if TYPE_CHECKING:
    from megaphone.router.routing import Router


class FollowingRouter(Follows):
    """F's part in a change."""

    def __init__(self, router: Router[Any], context: Context) -> None:
        self._router = router
        self._me = context.worker

    def decide(self, proposal: Turnover, time: Time, reports: Mapping[int, object]) -> Handing:
        """What joiners get. A worker that still has something, or will get it, cannot leave yet."""
        configurations, waiting = self._router.configurations, list(self._router.control.queue)
        if proposal.leave:
            sent = {worker for _, updates in waiting for update in list(updates) for worker in workers_of(update)}
            if configurations.names(proposal.leave) or sent & set(proposal.leave):
                raise NotYet("a leaver still has bins or keys, or is to get some")
        if not proposal.join:
            return Handing()
        plain = configurations.as_plain()
        handed = [plain, [[at, list(updates)] for at, updates in waiting]]
        node, state, control = self._router.state.operator.number, self._router.state.number, self._router.control
        handing = Handing(dict.fromkeys(proposal.join, handed))
        for joiner in proposal.join:
            for at in configurations.pending_times:
                handing.mints.append(Mint(joiner, node, state, at))
            for at, _ in waiting:
                handing.mints.append(Mint(joiner, node, control.number, at, target=True))
        return handing

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        """A joiner takes over; the others have room for its number."""
        self._router.resize()
        if proposal.join:
            self._router.plans.not_alone()
        if self._me in proposal.join and handed is not None:
            assert isinstance(handed, list | tuple)
            plain, waiting = handed
            pending = self._router.configurations.take_over(plain)
            self._router.take_over(pending, [(at, list(updates)) for at, updates in waiting])
