"""Workers that share one process and one trio loop: what `execute` runs unless they are processes of their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from dataflow.asking.answers.known import AT_WORKER
from dataflow.asking.door import Door, opened
from dataflow.asking.messages import Question, Refused, decode_answer
from dataflow.asking.network import ControlAddress
from dataflow.asking.run import answer
from dataflow.comm.messages import Membership
from dataflow.comm.transport import InProcess
from dataflow.launch.signals import run_trio, sigterm_interrupts
from dataflow.recovery.again import live_again_and_again
from dataflow.recovery.policy import Recovery, as_recovery
from dataflow.recovery.resume import Resume
from dataflow.run.advice import require_trio
from dataflow.run.exceptions import unwrap
from dataflow.run.pump import Pump
from dataflow.run.worker import R


def run_shared(
    main: Callable[..., Awaitable[R]],
    args: tuple[object, ...],
    workers: int,
    debug: bool,
    limit: int,
    warn_after: float | None,
    recovery: str | os.PathLike[str] | Recovery | None,
    name: str | None,
    control: ControlAddress | None = None,
) -> list[R]:
    """Runs workers in a loop that starts here."""
    with sigterm_interrupts():
        try:
            return run_trio(share, main, args, workers, debug, limit, warn_after, recovery, name, control)
        except BaseExceptionGroup as group:
            error = unwrap(group)
        # Here, and not there: the group would be its context, and a notebook shows what has one without colours.
        raise error from error.__cause__


async def share(
    main: Callable[..., Awaitable[R]],
    args: tuple[object, ...],
    workers: int,
    debug: bool,
    limit: int,
    warn_after: float | None,
    recovery: str | os.PathLike[str] | Recovery | None,
    name: str | None,
    control: ControlAddress | None = None,
) -> list[R]:
    """Runs workers in the loop that runs here."""
    require_trio()
    lived: list[list[Pump]] = []  # the workers of the life that is lived; those that join are added there

    async def live(resume: Resume | None, pumps: list[Pump]) -> list[R]:
        pumps += [Pump(index, workers, debug, limit, warn_after, recovery=resume) for index in range(workers)]
        lived[:] = [pumps]
        try:
            return await _run_pumps(pumps, main, args)
        finally:
            lived.clear()

    policy = as_recovery(recovery)
    with opened(name, workers, control) as door:
        async with _served(door, lambda: lived[0] if lived else []):
            return await live(None, []) if policy is None else await live_again_and_again(policy, workers, live)


@asynccontextmanager
async def _served(door: Door | None, workers: Callable[[], Sequence[Pump]]) -> AsyncIterator[None]:
    """Answers those who ask the run something, if it has a name."""

    async def ask_worker(worker: int, question: Question) -> object:
        pumps = workers()
        if worker >= len(pumps):
            raise Refused("the run is just beginning, or goes on from a snapshot: ask again")
        return decode_answer(await answer(question, pumps[worker], AT_WORKER))

    if door is None:
        yield
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.serve, ask_worker)
        yield
        nursery.cancel_scope.cancel()


class _Loop:
    """Starts workers that join in the loop that they share (`dataflow.members.scaling.Launcher`)."""

    def __init__(self, everyone: list[Pump], start: Callable[[Pump], None]) -> None:
        self._everyone = everyone
        self._start = start

    def start(self, numbers: Sequence[int], peers: int) -> None:
        """Starts workers, which are connected at once."""
        first = self._everyone[0]
        for number in numbers:
            assert number == len(self._everyone), "numbers are never used twice"
            resume = None if first.recovery is None else first.recovery.for_joiner()
            settings = (first.debug, first.flow.limit, first.warn_after)
            pump = Pump(number, peers, *settings, recovery=resume, joins=True)
            self._everyone.append(pump)
            self._start(pump)
            pump.changes.say(0, "linked")

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members."""

    def left(self, numbers: Sequence[int]) -> None:
        """They are none any more."""

    def dismiss(self, numbers: Sequence[int]) -> None:
        """Ends workers that have not joined."""
        for number in numbers:
            self._everyone[number].post(Membership(0, "dismissed"))


async def _run_pumps(everyone: list[Pump], main: Callable[..., Awaitable[R]], args: tuple[object, ...]) -> list[R]:
    results: dict[int, R] = {}
    transport = InProcess(everyone)

    async def run(pump: Pump) -> None:
        async with pump.running() as nursery:
            nursery.start_soon(pump.run, name=f"worker {pump.index}")
            results[pump.index] = await pump.run_main(main, *args)

    async with trio.open_nursery() as nursery:

        def start(pump: Pump) -> None:
            pump.transport, pump.launcher = transport, launcher
            nursery.start_soon(run, pump, name=f"main of worker {pump.index}")

        launcher = _Loop(everyone, start)
        for pump in tuple(everyone):
            start(pump)
    return [results[pump.index] for pump in everyone]
