"""Who says when a snapshot is taken: worker 0, once per interval and when somebody wants a savepoint, one at a time."""

from __future__ import annotations

import sys
from time import time as wall_clock

from dataflow.build.cuts import FOREVER
from dataflow.errors import DataflowError
from dataflow.operators.following import Follower
from dataflow.recovery.parts import AnnouncedCut, SnapshotOutcome
from dataflow.recovery.savepoints import Wishes
from dataflow.recovery.vault import Vault
from dataflow.run.clock import Clock
from dataflow.run.signal import Signal, Waiters
from dataflow.time.order import Time


class SnapshotsFail(DataflowError):
    """No snapshot could be taken for too long."""


class ChangeNotKept(DataflowError):
    """The snapshot at the time of a change of the membership could not be taken."""


class Announcer:
    """Announces cuts at the time at which the cut stream is. Tells of those that were given up."""

    def __init__(self, cuts: Follower[AnnouncedCut], clock: Clock, vault: Vault, wishes: Wishes) -> None:
        self._cuts = cuts
        self._clock = clock
        self._vault = vault
        self._wishes = wishes
        self._every = vault.policy.every
        self._give_up_after = vault.policy.give_up_after
        self._last: Time = vault.resume_at  # the last cut, or where the run began
        self._stored = vault.manifest is not None  # whether that is in the storage
        self.under_way = False  # whether a cut was announced and is not concluded
        self.last_stored: Time = -1  # the last cut of this life that is in the storage
        self._hushed = False  # whether a change of the membership is to come first
        self._change: Time | None = None  # a cut that must not be given up
        self._wanted: Time = -1  # somebody waits for a cut at or after this time
        self._waiters = Waiters()
        self._announced = 0.0  # when the last was
        self._last_good = clock.now()
        self._news = Signal()

    async def run(self) -> None:
        """Announces a cut each interval, as long as one can be announced."""
        due = self._clock.now()
        while not self._cuts.closed:
            due = max(due + self._every, self._clock.now())
            await self._clock.sleep_until(due)
            while self._must_wait():
                await self._news.wait()
                self._require_recent()
            if not self._cuts.closed:
                self._announce()

    async def run_savepoints(self) -> None:
        """Announces a cut when somebody wants a savepoint; if nothing was done since the last, that is the savepoint.
        When no cut can be announced any more, the final one follows, and is for all (`Wishes.keep`)."""
        while True:
            await self._wishes.news.wait()
            wanted = self._wishes.waiting or self._wanted > self.last_stored
            if not wanted or self.under_way or self._hushed:
                continue
            if not self._cuts.closed and self._cuts.time > self._last:
                self._announce()
            elif self._wishes.waiting and self._stored and (self._last == FOREVER or not self._cuts.closed):
                assert self._vault.manifest is not None
                await self._wishes.keep_last(self._vault.manifest)

    def _must_wait(self) -> bool:
        """Whether one is under way, or nothing has been done since the last."""
        if self._cuts.closed:
            return False
        return self._hushed or self.under_way or bool(self._cuts.time <= self._last)

    def hush(self, hushed: bool) -> None:
        """Whether no cut is to be announced."""
        self._hushed = hushed
        if not hushed:
            self.poke()

    async def stored(self, time: Time) -> Time | None:
        """Has a cut at or after a time taken soon, and waits until it is in the storage; which one it was. None if it
        is the one from which the run went on, or none can be taken any more but the final one."""
        if self._stored and self._last >= time and self.last_stored < time:
            return None
        self._wanted = max(self._wanted, time)
        self.poke()
        while self.last_stored < time and not self._cuts.closed:
            await self._waiters.wait()
        return None if self.last_stored < time else self.last_stored

    def poke(self) -> None:
        """Something has changed: perhaps a cut can be announced now."""
        self._waiters.wake()
        self._news.set()
        self._wishes.news.set()

    def announced_at(self, cut: Time) -> float | None:
        """When (wall clock) a cut was announced; None if another is the last."""
        return self._announced if self.under_way and cut == self._last else None

    def concluded(self, outcome: SnapshotOutcome) -> None:
        """A snapshot is durable, or was given up."""
        self.under_way = False
        self._last, self._stored = outcome.cut, outcome.number is not None
        if outcome.number is not None:
            self._last_good = self._clock.now()
            self.last_stored = outcome.cut
        elif outcome.cut == self._change:
            raise ChangeNotKept(
                f"the snapshot at time {outcome.cut}, at which workers have joined or left, could not be stored "
                f"({outcome.why}): what is before and after it must be kept apart, so all go back to the last snapshot"
            )
        else:
            print(
                f"dataflow: the snapshot at {_named(outcome.cut)} was given up ({outcome.why}); the stream goes on, "
                f"and the next is tried in {self._every:g} s",
                file=sys.stderr,
            )
            self._require_recent()
        self.poke()

    def announce_change(self, time: Time) -> None:
        """Announces the cut at a change of the membership. Where a key has one writer before and another after, no
        snapshot may have both: so if this one is given up, all go back to the last."""
        self._change = time
        self._announce(time)

    def _announce(self, time: Time | None = None) -> None:
        self._last = self._cuts.time if time is None else time
        self.under_way = True
        self._stored = False
        self._wishes.promise(self._last)
        self._announced = wall_clock()
        self._cuts.send([AnnouncedCut(self._last)], self._last)

    def _require_recent(self) -> None:
        age = self._clock.now() - self._last_good
        if not self.under_way and age > self._give_up_after:
            raise SnapshotsFail(
                f"no snapshot could be stored in {self._vault.title} for {age:.0f} seconds: nothing of that time could "
                "be recovered. Mend the storage, or allow more (give_up_after)"
            )


def _named(cut: Time) -> str:
    return "the end" if cut == FOREVER else f"time {cut}"
