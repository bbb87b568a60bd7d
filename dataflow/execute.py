"""Running a program: `execute(main, workers=N)`.

Several workers are several processes, unless they are asked to share one. Whatever goes wrong on one of them ends all
of them, and comes out as the exception that it was, with notes that say on which worker and in which operator.

This module is imported with the package: what takes long to import is imported when something runs.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, overload

from dataflow.asking.naming import suggest
from dataflow.comm.flow import DEFAULT_LIMIT
from dataflow.compiled.telling import teller
from dataflow.errors import DataflowError
from dataflow.launch.descriptors import standard_numbers_taken
from dataflow.launch.spawning import spawning
from dataflow.run.defaults import WARN_AFTER
from dataflow.run.logs import begin_logging

if TYPE_CHECKING:
    from dataflow.asking.network import ControlAddress
    from dataflow.recovery.policy import Recovery
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
    log: str = "",
    control: ControlAddress | None = None,
) -> list[R]:
    """Runs `await main(worker, *args)` on each worker, and then until every dataflow is complete.

    Returns what each main returned, by worker. Several workers are processes of their own, to which main and what it
    uses are copied, and whose results must be plain data; `in_process` keeps them in this one. `limit`: so many bytes
    may be on their way from one worker to others before sources wait. `prefix`: printed lines say who printed them.
    `warn_after`: when somebody has waited so many seconds and nothing moves, a line on standard error says for what;
    never, if None. `debug`: checks orders of timestamps and frontiers as it goes (slow). `recovery`: where snapshots
    are kept (a folder, for example), or how (`Recovery`); the run is tried again when it fails, and the same call goes
    on from the last snapshot. `name`: by which other shells find and steer it (`python -m dataflow`); the program's.
    `log`: sets up `logging` in all processes, at a level: "info", or "info json" (docs/operating.md).
    `control`: where it is found and steered from other hosts, by those who know a secret.

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
    begin_logging(log)
    teller.close()
    name = suggest() if name is None else name
    try:
        return _execute(main, args, workers, in_process, debug, limit, prefix, warn_after, recovery, name, log, control)
    except Exception as error:
        from dataflow.run.cells import point_at_cell

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
    log: str,
    control: ControlAddress | None,
) -> list[R]:
    if workers == 1 or in_process:
        from dataflow.sharing import run_shared

        return run_shared(main, args, workers, debug, limit, warn_after, recovery, name, control)
    with standard_numbers_taken(), spawning() as spawned:  # which loads the engine while this process does
        from dataflow.launch.supervisor import Settings, run_processes
        from dataflow.recovery.policy import as_recovery

        settings = Settings(debug, limit, prefix, warn_after=warn_after, log=log)
        policy = as_recovery(recovery)
        results = run_processes(
            main, args, range(workers), workers, settings, recovery=policy, name=name, control=control, spawned=spawned
        )
        return [results[worker] for worker in sorted(results)]


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
    from dataflow.sharing import share

    return await share(main, args, workers, debug, limit, warn_after, recovery, name)


def refuse_inside_a_loop() -> None:
    """A trio loop inside a trio loop cannot be."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
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
