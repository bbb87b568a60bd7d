"""One life of a run on Spark: the job with those with whom it begins, a job for each time that workers come, and who is
a member. docs/internals/guests.md has the messages and what must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import trio

from dataflow.comm.codec import require_list, require_text
from dataflow.errors import DataflowError, ExecutorLost, NotAsGuest, WorkerFailed
from dataflow.recovery.restarts import one_line
from dataflow.spark.home import Home
from dataflow.spark.job import BarrierJob
from dataflow.spark.outcome import CONSEQUENCES, Handed, judge
from dataflow.spark.rooms import wait_for_slots

Outcome = tuple[dict[int, Handed], dict[int, str]]
"""What guests handed back, and how the others died, by worker."""

_SLOTS = 2.0  # seconds for a slot that has just become free, or an executor that has just been lost, to be counted


class LifeOver(WorkerFailed):
    """Guest 0 says that this life is over, and that others must be brought for the next."""


@dataclass(eq=False)
class RunningJob:
    """A job, and what came of it."""

    job: BarrierJob
    outcome: Outcome | Exception | None = None
    over: trio.Event = field(default_factory=trio.Event)

    async def run(self, order: bytes) -> None:
        """Runs it in a thread, whatever happens here: whoever wants it to end tells the guests, or Spark."""
        try:
            with trio.CancelScope(shield=True):
                self.outcome = await trio.to_thread.run_sync(self.job.run, order)
        except Exception as error:
            self.outcome = error
        finally:
            self.over.set()

    async def interrupt(self) -> None:
        """Has Spark end it."""
        await trio.to_thread.run_sync(self.job.interrupt)


@dataclass(eq=False)
class GuestLife:
    """What the driver does from the start of a run, or of another life of it, until all jobs have ended."""

    home: Home
    make_job: Callable[[range, bool], BarrierJob]  # for workers with these numbers; whether they join
    make_order: Callable[[tuple[str, int, int] | None], bytes]  # for those who join: where, and the first number
    count_slots: Callable[[], int | None]
    wait: float  # seconds for workers that are invited to be there
    grace: float
    recovers: bool
    members: set[int] = field(default_factory=set)
    handed: dict[int, Handed] = field(default_factory=dict)
    died: dict[int, str] = field(default_factory=dict)
    given_up: list[Exception] = field(default_factory=list)  # what Spark said of jobs with members
    _jobs: list[RunningJob] = field(default_factory=list)
    _ever: set[int] = field(default_factory=set)  # all who were members
    _over: trio.Event = field(default_factory=trio.Event)
    _again: LifeOver | None = None
    _scaled: bool = False
    _nursery: trio.Nursery = field(init=False)

    async def run(self, workers: int) -> list[object]:
        """What each main returned, by worker. Raises what ended it: LifeOver and ExecutorLost may be followed by
        another life, with as many workers as there are members."""
        founders = range(workers)
        self.members, self._ever = set(founders), set(founders)
        self.home.numbers, self.home.told = set(founders), self._told
        async with trio.open_nursery() as self._nursery:
            job = self._begin(founders, self.make_order(None))
            self._nursery.start_soon(self._watch_founders, job)
            self._nursery.start_soon(self._watch_guest_0)
            try:
                await self._over.wait()
            finally:
                with trio.CancelScope(shield=True):
                    await self._end_all()
            self._nursery.cancel_scope.cancel()
        return self._verdict()

    def _verdict(self) -> list[object]:
        for running in self._jobs:
            of_members = not self._ever.isdisjoint(running.job.workers)
            if isinstance(running.outcome, Exception):
                self.given_up += [running.outcome] if of_members else []
            elif running.outcome is not None and of_members:
                self.handed |= running.outcome[0]
                self.died |= running.outcome[1]
        if self._again is not None:  # all others were told to end, so what they say is a consequence
            raise next((each for each in self.given_up if isinstance(each, ExecutorLost)), self._again)
        return judge(self.handed, self.died, self.given_up)

    # Jobs

    def _begin(self, workers: range, order: bytes, joins: bool = False) -> RunningJob:
        running = RunningJob(self.make_job(workers, joins))
        self._jobs.append(running)
        self.home.numbers |= set(workers)
        self._nursery.start_soon(running.run, order)
        return running

    async def _watch_founders(self, founders: RunningJob) -> None:
        await founders.over.wait()
        self._over.set()

    async def _watch_guest_0(self) -> None:
        """One that was killed is started again by its task, and knows nothing of those who have joined or left."""
        while self.home.called[0] < 2 or not self._scaled:
            await self.home.wait_changed()
        self._begin_again("worker 0 was killed together with the guest that supervised it")

    async def _end_all(self) -> None:
        """Guests are told to end; then Spark is told to end them."""
        if self._all_over():
            return
        if self._over.is_set() and self._again is None:
            with trio.move_on_after(self.grace):  # if the founders have returned, so do the others
                await self._wait_over()
        await self.home.end()
        with trio.move_on_after(2 * self.grace):
            await self._wait_over()
        for running in self._jobs:
            if not running.over.is_set():
                await running.interrupt()
        await self._wait_over()

    def _all_over(self) -> bool:
        return all(running.over.is_set() for running in self._jobs)

    async def _wait_over(self) -> None:
        for running in self._jobs:
            await running.over.wait()

    # What guest 0 tells

    def _told(self, news: object) -> None:
        what, numbers, why, host, port = require_list(news, 5)
        workers = [number for number in require_list(numbers) if type(number) is int]
        if what == "invite" and type(port) is int and workers:
            self._scaled = True
            invited = range(workers[0], workers[0] + len(workers))
            self._nursery.start_soon(self._invite, invited, (require_text(host), port))
        elif what == "grown":
            self.members |= set(workers)
            self._ever |= set(workers)
        elif what == "left":
            self._scaled = True
            self.members -= set(workers)
        elif what == "again":
            self._begin_again(require_text(why))

    def _begin_again(self, why: str) -> None:
        if self.recovers and self._again is None and not self._over.is_set():
            self._again = LifeOver(why)
            self._over.set()

    async def _invite(self, workers: range, guest_0: tuple[str, int]) -> None:
        """Starts a job whose workers join; tells guest 0 if they do not."""
        wait = min(self.wait, _SLOTS)
        try:
            await wait_for_slots(self.count_slots, len(workers), wait, lambda: len(self.home.guests))
        except NotAsGuest as error:
            await self.home.cannot(workers[0], str(error))
            return
        running = self._begin(workers, self.make_order((*guest_0, workers[0])), joins=True)
        with trio.move_on_after(self.wait) as waiting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_then_cancel, running.over.wait, nursery)
                nursery.start_soon(_then_cancel, partial(self.home.wait_called, workers), nursery)
        if waiting.cancelled_caught:
            await running.interrupt()
            late = f"Spark has not started them within {self.wait:g} seconds: other jobs may have taken the slots"
            await self.home.cannot(workers[0], late)
            return
        await running.over.wait()
        if self._ever.isdisjoint(workers):
            await self.home.cannot(workers[0], _why_not(running))
        elif isinstance(running.outcome, ExecutorLost) and not self.members.isdisjoint(workers):
            self._over.set()  # nobody knows better why these cannot be reached any more


async def _then_cancel(wait: Callable[[], object], nursery: trio.Nursery) -> None:
    await wait()  # type: ignore[misc]
    nursery.cancel_scope.cancel()


def _why_not(running: RunningJob) -> str:
    """Why workers that were invited have not joined."""
    outcome = running.outcome
    try:
        if isinstance(outcome, Exception):
            raise outcome
        assert outcome is not None
        judge(*outcome)
    except (DataflowError, *CONSEQUENCES) as error:
        return str(error)
    except Exception as error:
        return one_line(error)
    return "they ended before they had joined"
