"""Running a program: `execute(main, workers=N)`.

Several workers are several processes, unless they are asked to share one. Whatever goes wrong on one of them ends all
of them, and comes out as the exception that it was, with notes that say on which worker and in which operator.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import overload

import trio

from dataflow.asking.answers.known import AT_WORKER
from dataflow.asking.door import Door, opened
from dataflow.asking.messages import Question, Refused, decode_answer
from dataflow.asking.naming import suggest
from dataflow.asking.run import answer
from dataflow.comm.flow import DEFAULT_LIMIT
from dataflow.comm.messages import Membership
from dataflow.comm.transport import InProcess
from dataflow.compiled.telling import teller
from dataflow.errors import DataflowError
from dataflow.launch.signals import run_trio, sigterm_interrupts
from dataflow.recovery.again import live_again_and_again
from dataflow.recovery.policy import Recovery, as_recovery
from dataflow.recovery.resume import Resume
from dataflow.run.advice import require_trio
from dataflow.run.cells import point_at_cell
from dataflow.run.exceptions import unwrap
from dataflow.run.pump import WARN_AFTER, Pump
from dataflow.run.worker import A, R, Worker

Main = Callable[..., Awaitable[object]]  # what main takes and returns is its own affair


def execute(
    main: Callable[[Worker, *A], Awaitable[R]],
    *args: *A,
    workers: int = 1,
    in_process: bool = False,
    debug: bool = False,
    limit: int = DEFAULT_LIMIT,
    prefix: bool = False,
    warn_after: float | None = WARN_AFTER,
    recovery: str | os.PathLike[str] | Recovery | None = None,
    name: str | None = None,
) -> list[R]:
    """Runs `await main(worker, *args)` on each worker, and then until every dataflow is complete.

    Returns what each main returned, by worker. Several workers are processes of their own, to which main and what it
    uses are copied, and whose results must be plain data; `in_process` keeps them in this one. `limit`: so many bytes
    may be on their way from one worker to others before sources wait. `prefix`: printed lines say who printed them.
    `warn_after`: when somebody has waited so many seconds and nothing moves, a line on standard error says for what;
    never, if None. `debug`: checks orders of timestamps and frontiers as it goes (slow). `recovery`: where snapshots
    are kept (a folder, for example), or how (`Recovery`); the run is tried again when it fails, and the same call goes
    on from the last snapshot. `name`: by which other shells find and steer it (`python -m dataflow`); the program's.

    >>> async def main(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = scope.input()
    ...         stream.map(lambda n: n * n).inspect(lambda time, n: print(time, n))
    ...     numbers.send([1, 2, 3])
    >>> execute(main)
    0 1
    0 4
    0 9
    [None]
    """
    check_main(main, workers)
    check_warn_after(warn_after)
    refuse_inside_a_loop()
    teller.close()
    name = suggest() if name is None else name
    try:
        return _execute(main, args, workers, in_process, debug, limit, prefix, warn_after, recovery, name)
    except Exception as error:
        point_at_cell(error)
        raise


def _execute(
    main: Callable[..., Awaitable[R]],
    args: tuple[object, ...],
    workers: int,
    in_process: bool,
    debug: bool,
    limit: int,
    prefix: bool,
    warn_after: float | None,
    recovery: str | os.PathLike[str] | Recovery | None,
    name: str,
) -> list[R]:
    if workers > 1 and not in_process:
        from dataflow.launch.supervisor import Settings, run_processes  # it imports this module

        settings = Settings(debug, limit, prefix, warn_after=warn_after)
        policy = as_recovery(recovery)
        results = run_processes(main, args, range(workers), workers, settings, recovery=policy, name=name)
        return [results[worker] for worker in sorted(results)]
    with sigterm_interrupts():
        try:
            return run_trio(execute_async, main, args, workers, debug, limit, warn_after, recovery, name)
        except BaseExceptionGroup as group:
            error = unwrap(group)
        # Here, and not there: the group would be its context, and a notebook shows what has one without colours.
        raise error from error.__cause__


@overload
async def execute_async(
    main: Callable[[Worker], Awaitable[R]],
    args: tuple[()] = ...,
    workers: int = ...,
    debug: bool = ...,
    limit: int = ...,
    warn_after: float | None = ...,
    recovery: str | os.PathLike[str] | Recovery | None = ...,
    name: str | None = ...,
) -> list[R]: ...


@overload
async def execute_async(
    main: Callable[[Worker, *A], Awaitable[R]],
    args: tuple[*A],
    workers: int = ...,
    debug: bool = ...,
    limit: int = ...,
    warn_after: float | None = ...,
    recovery: str | os.PathLike[str] | Recovery | None = ...,
    name: str | None = ...,
) -> list[R]: ...


async def execute_async(
    main: Callable[..., Awaitable[R]],
    args: tuple[object, ...] = (),
    workers: int = 1,
    debug: bool = False,
    limit: int = DEFAULT_LIMIT,
    warn_after: float | None = WARN_AFTER,
    recovery: str | os.PathLike[str] | Recovery | None = None,
    name: str | None = None,
) -> list[R]:
    """`execute` for those who are in a trio loop already: workers share it. May raise exception groups."""
    check_main(main, workers)
    check_warn_after(warn_after)
    require_trio()

    everyone: list[Pump] = []  # of the life that is lived

    async def live(resume: Resume | None, pumps: list[Pump]) -> list[R]:
        pumps += [Pump(index, workers, debug, limit, warn_after, recovery=resume) for index in range(workers)]
        everyone[:] = pumps
        try:
            return await _run_pumps(pumps, main, args)
        finally:
            everyone.clear()

    policy = as_recovery(recovery)
    with opened(name, workers) as door:
        async with _served(door, everyone):
            return await live(None, []) if policy is None else await live_again_and_again(policy, workers, live)


@asynccontextmanager
async def _served(door: Door | None, pumps: Sequence[Pump]) -> AsyncIterator[None]:
    """Answers those who ask the run something, if it has a name."""

    async def ask_worker(worker: int, question: Question) -> object:
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
            pump = Pump(number, peers, first.debug, first.flow.limit, first.warn_after, joins=True)
            self._everyone.append(pump)
            self._start(pump)
            pump.changes.say(0, "linked")

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members."""

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


def refuse_inside_a_loop() -> None:
    """A trio loop inside a trio loop cannot be."""
    if trio.lowlevel.in_trio_run():
        raise DataflowError(
            "execute cannot be called from inside a trio loop: call it outside, "
            "or use `await dataflow.execute_async(...)`, whose workers share this loop"
        )


def check_main(main: Main, workers: int) -> None:
    """Refuses what could only fail later."""
    if type(workers) is not int or workers < 1:
        raise ValueError(f"workers must be a positive integer, not {workers!r}")
    call = getattr(main, "__call__", None)  # noqa: B004
    target = getattr(main, "func", main)  # functools.partial
    if not (inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(call)):
        raise TypeError(f"main must be `async def main(worker): ...`, not {main!r}")


def check_warn_after(seconds: float | None) -> None:
    """Refuses what is no time to wait."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"warn_after must be a positive number of seconds, or None, not {seconds!r}")
