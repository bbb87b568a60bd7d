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
from dataflow.run.signal import Signal
from dataflow.time.order import Time


class SnapshotsFail(DataflowError):
    """No snapshot could be taken for too long."""


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
        self._under_way = False
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
            if not self._wishes.waiting or self._under_way:
                continue
            if not self._cuts.closed and self._cuts.time > self._last:
                self._announce()
            elif self._stored and (self._last == FOREVER or not self._cuts.closed):
                assert self._vault.manifest is not None
                await self._wishes.keep_last(self._vault.manifest)

    def _must_wait(self) -> bool:
        """Whether one is under way, or nothing has been done since the last."""
        return not self._cuts.closed and (self._under_way or bool(self._cuts.time <= self._last))

    def poke(self) -> None:
        """Something has changed: perhaps a cut can be announced now."""
        self._news.set()
        self._wishes.news.set()

    def announced_at(self, cut: Time) -> float | None:
        """When (wall clock) a cut was announced; None if another is the last."""
        return self._announced if self._under_way and cut == self._last else None

    def concluded(self, outcome: SnapshotOutcome) -> None:
        """A snapshot is durable, or was given up."""
        self._under_way = False
        self._last, self._stored = outcome.cut, outcome.number is not None
        if outcome.number is not None:
            self._last_good = self._clock.now()
        else:
            print(
                f"dataflow: the snapshot at {_named(outcome.cut)} was given up ({outcome.why}); the stream goes on, "
                f"and the next is tried in {self._every:g} s",
                file=sys.stderr,
            )
            self._require_recent()
        self.poke()

    def _announce(self) -> None:
        self._last = self._cuts.time
        self._under_way = True
        self._stored = False
        self._wishes.promise(self._last)
        self._announced = wall_clock()
        self._cuts.send([AnnouncedCut(self._last)])

    def _require_recent(self) -> None:
        age = self._clock.now() - self._last_good
        if not self._under_way and age > self._give_up_after:
            raise SnapshotsFail(
                f"no snapshot could be stored in {self._vault.title} for {age:.0f} seconds: nothing of that time could "
                "be recovered. Mend the storage, or allow more (give_up_after)"
            )


def _named(cut: Time) -> str:
    return "the end" if cut == FOREVER else f"time {cut}"
