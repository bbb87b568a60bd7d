"""Running a program: `execute(main, workers=N)`.

All workers live in one trio loop of one process. Whatever goes wrong on one of them ends all of them, and comes out
as the exception that it was, with notes that say on which worker and in which operator.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from dataflow.comm.transport import InProcess
from dataflow.errors import DataflowError
from dataflow.worker import Worker

Main = Callable[..., Awaitable[Any]]


def execute(main: Main, *args: Any, workers: int = 1, debug: bool = False) -> list[Any]:
    """Runs `await main(worker, *args)` on each worker, and then until every dataflow is complete.

    Returns what each main returned, by worker. `debug` checks timestamps' orders and frontiers as it goes (slow).

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
    try:
        return trio.run(execute_async, main, args, workers, debug)
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def execute_async(main: Main, args: tuple[Any, ...] = (), workers: int = 1, debug: bool = False) -> list[Any]:
    """`execute` for those who are in a trio loop already. May raise exception groups."""
    check_main(main, workers)
    everyone = [Worker(index, workers, debug) for index in range(workers)]
    results: list[Any] = [None] * workers
    transport = InProcess(everyone)

    async def run(worker: Worker) -> None:
        worker.transport = transport
        async with worker.running() as nursery:
            nursery.start_soon(worker.pump, name=f"worker {worker.index}")
            results[worker.index] = await worker.run_main(main, *args)

    async with trio.open_nursery() as nursery:
        for worker in everyone:
            nursery.start_soon(run, worker, name=f"main of worker {worker.index}")
    return results


def check_main(main: Main, workers: int) -> None:
    """Refuses what could only fail later."""
    if workers < 1:
        raise ValueError(f"workers must be a positive integer, not {workers!r}")
    call = getattr(main, "__call__", None)  # noqa: B004
    target = getattr(main, "func", main)  # functools.partial
    if not (inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(call)):
        raise TypeError(f"main must be `async def main(worker): ...`, not {main!r}")


def unwrap(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception that a person wants to see, out of the groups that nurseries make of it.

    A program's own exception comes before the engine's complaints about the consequences. Others become notes.
    """
    leaves = list(_leaves(group))
    first = next((leaf for leaf in leaves if not isinstance(leaf, DataflowError)), leaves[0])
    for other in leaves:
        if other is not first:
            first.add_note(f"at the same time: {type(other).__name__}: {other}")
    return first


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
