"""`dataflow.spark.execute`: a program's workers on the executors of a Spark session.

The driver ships the packages and main, gives each job a secret of its own, prints what workers print, and raises what
they raise. With `recovery` a worker that fails is replaced by its guest (docs/internals/restart.md). An executor that
is lost ends the job for all, since Spark ends a barrier stage as a whole; then the driver starts another job, which
goes on from the last snapshot.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import trio

from dataflow.comm.flow import DEFAULT_LIMIT
from dataflow.errors import ExecutorLost
from dataflow.execute import check_main, check_warn_after, refuse_inside_a_loop
from dataflow.launch.printer import Printer
from dataflow.launch.process import Settings
from dataflow.launch.signals import run_trio, signals_noted
from dataflow.launch.supervisor import watch_signals
from dataflow.recovery.policy import Recovery, as_recovery
from dataflow.recovery.restarts import Enough, Restarts, explain_decision
from dataflow.recovery.resume import require_visible
from dataflow.run.defaults import WARN_AFTER
from dataflow.run.exceptions import unwrap
from dataflow.run.worker import A, R, Worker
from dataflow.spark.home import Home
from dataflow.spark.job import BarrierJob
from dataflow.spark.order import GuestOrder, pack_main
from dataflow.spark.outcome import Handed, judge
from dataflow.spark.phone import ERR, OUT
from dataflow.spark.rooms import (
    active_session,
    count_slots,
    driver_address,
    refuse_dynamic_allocation,
    require_pyspark,
    spark_ignores_ctrl_c,
    wait_for_slots,
)
from dataflow.spark.shipping import Packages, pack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Outcome = tuple[dict[int, Handed], dict[int, str]]  # what guests handed back, and how the others died
PORTS = (20_000, 32_000)  # below those that systems give to outgoing connections


def execute(
    main: Callable[[Worker, *A], Awaitable[R]],
    *args: *A,
    workers: int,
    session: SparkSession | None = None,
    packages: Iterable[str] = (),
    debug: bool = False,
    limit: int = DEFAULT_LIMIT,
    prefix: bool = False,
    warn_after: float | None = WARN_AFTER,
    recovery: str | os.PathLike[str] | Recovery | None = None,
    wait: float = 60.0,
    ports: tuple[int, int] = PORTS,
) -> list[R]:
    """`dataflow.execute` with the workers on the executors of a Spark session, one for each slot.

    Returns what each main returned, by worker. `session`: the active one, unless you say. Main, what it uses and the
    modules of yours that are imported here go to the executors; `packages` names further ones. `wait`: seconds for
    executors to be there, and for workers to find each other. `ports`: from which to which workers may listen on the
    executors' hosts. With `recovery`, which all executors must be able to reach, workers that fail are replaced, and a
    lost executor means another job that goes on from the last snapshot. All else is as for `dataflow.execute`.
    """
    check_main(main, workers)
    check_warn_after(warn_after)
    refuse_inside_a_loop()
    require_pyspark()
    policy = as_recovery(recovery)
    if policy is not None:
        require_visible(policy)
    _check_ports(ports)
    session = session if session is not None else active_session()
    refuse_dynamic_allocation(session)
    settings = Settings(debug, limit, prefix, warn_after=warn_after, terminal=False)
    run = _Run(session, workers, pack(packages), pack_main(main, args), settings, policy, wait, ports)
    with spark_ignores_ctrl_c(), signals_noted() as signals:
        failure: BaseException | None = None
        results: list[object] = []
        try:
            results = run_trio(watch_signals, run.live_again_and_again, signals)
        except BaseException as error:
            failure = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
        for printer in run.printers.values():
            printer.finish()
        failure = signals.meaning() or failure
    if failure is not None:
        raise failure from failure.__cause__
    return cast(list[R], results)


def _check_ports(ports: tuple[int, int]) -> None:
    low, high = ports
    if not 1024 <= low < high - 1 or high > 65535:
        raise ValueError(f"ports= is a range such as (20000, 32000), not {ports!r}")


@dataclass
class _Run:
    session: SparkSession
    workers: int
    packages: Packages
    parcel: bytes
    settings: Settings
    recovery: Recovery | None
    wait: float
    ports: tuple[int, int]

    def __post_init__(self) -> None:
        self.printers = {OUT: Printer(sys.stdout), ERR: Printer(sys.stderr)}

    async def live_again_and_again(self) -> list[object]:
        """Runs jobs until one of them ends by itself: a lost executor is not the end if there are snapshots."""
        most, window = (self.recovery.restarts, self.recovery.window) if self.recovery is not None else (0, 1.0)
        restarts = Restarts(most, window)
        async with trio.open_nursery() as nursery:
            for printer in self.printers.values():
                nursery.start_soon(printer.watch)
            results: list[object] | None = None
            while results is None:
                try:
                    results = await self._live()
                except ExecutorLost as error:
                    decision = restarts.decide(error, time.monotonic())
                    if isinstance(decision, Enough):
                        if self.recovery is not None:
                            error.add_note(decision.why)
                        else:
                            error.add_note("with recovery= the run would go on from its last snapshot")
                        raise
                    line = f"{explain_decision(error, decision)}, as another job from the last snapshot"
                    self.printers[ERR].put(f"dataflow: {line}\n")
            nursery.cancel_scope.cancel()
        return results

    async def _live(self) -> list[object]:
        await wait_for_slots(partial(count_slots, self.session), self.workers, self.wait)
        again = self.recovery.restarts if self.recovery is not None else 0
        tag = f"dataflow-{secrets.token_hex(6)}"
        job = BarrierJob(self.session, self.workers, self.packages, self.ports, again, tag)
        secret = secrets.token_bytes(32)  # a new one: nobody of an earlier job can have a part in this
        home = Home(secret, self.workers, self.printers)
        host = driver_address(self.session)
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(home.open(host)) if host is not None else None
            order = GuestOrder(
                secret, address, list(sys.argv), self.parcel, self.settings, self.recovery, self.wait
            ).encode()
            outcome = await _run_job(job, order, home, self.settings.grace)
        if isinstance(outcome, Exception):  # not raised before: nurseries make groups of exceptions
            raise outcome
        handed, died = outcome
        self._print_unsent(handed)
        return judge(handed, died)

    def _print_unsent(self, handed: dict[int, Handed]) -> None:
        """Lines of guests that could not reach this process, or not any more."""
        for of in handed.values():
            for stream, text in of.unsent.items():
                self.printers[stream.encode()].put(text.decode("utf-8", "backslashreplace"))


async def _run_job(job: BarrierJob, order: bytes, home: Home, grace: float) -> _Outcome | Exception:
    """Runs a job in a thread; returns what came of it. If it is interrupted, guests are told to end, and then Spark is
    told to end them."""
    done = trio.Event()
    outcome: list[_Outcome | Exception] = []

    async def run() -> None:
        try:
            with trio.CancelScope(shield=True):
                outcome.append(await trio.to_thread.run_sync(job.run, order))
        except Exception as error:
            outcome.append(error)
        finally:
            done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await done.wait()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await home.end()
                with trio.move_on_after(2 * grace):
                    await done.wait()
                if not done.is_set():
                    await trio.to_thread.run_sync(job.interrupt)
            raise
    return outcome[0]
