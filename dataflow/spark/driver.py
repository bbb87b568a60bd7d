"""`dataflow.spark.execute`: a program's workers on the executors of a Spark session.

The driver ships the packages and main, makes a secret, prints what workers print, and raises what they raise. `life`
has the jobs of the run. With `recovery` a worker that fails is replaced by its guest (docs/internals/restart.md). An
executor that is lost ends the life of all, since Spark ends a barrier stage as a whole; then the driver starts another
job, which goes on from the last snapshot.
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
from dataflow.spark.life import GuestLife, LifeOver
from dataflow.spark.order import GuestOrder, pack_main
from dataflow.spark.outcome import Handed
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
        """Runs jobs until all is done: a lost executor, and any failure after workers came or left, is not the end if
        there are snapshots."""
        most, window = (self.recovery.restarts, self.recovery.window) if self.recovery is not None else (0, 1.0)
        restarts = Restarts(most, window)
        async with trio.open_nursery() as nursery:
            for printer in self.printers.values():
                nursery.start_soon(printer.watch)
            results: list[object] | None = None
            while results is None:
                outcome = await self._live()
                results = outcome if isinstance(outcome, list) else None
                if isinstance(outcome, Exception):
                    self._decide(outcome, restarts)
            nursery.cancel_scope.cancel()
        return results

    def _decide(self, error: Exception, restarts: Restarts) -> None:
        """Raises the error if that is the end."""
        if not isinstance(error, ExecutorLost | LifeOver):
            raise error
        decision = restarts.decide(error, time.monotonic())
        if isinstance(decision, Enough):
            without = "with recovery= the run would go on from its last snapshot"
            error.add_note(decision.why if self.recovery is not None else without)
            raise error
        line = f"{explain_decision(error, decision)}, as another job with {self.workers} workers from the last snapshot"
        self.printers[ERR].put(f"dataflow: {line}\n")

    async def _live(self) -> list[object] | Exception:
        """The results; or what ended this life. (Not raised: nurseries make groups of exceptions.)"""
        count = partial(count_slots, self.session)
        await wait_for_slots(count, self.workers, self.wait)
        secret = secrets.token_bytes(32)  # a new one: nobody of an earlier life can have a part in this
        home = Home(secret, set(), self.printers)
        host = driver_address(self.session)
        outcome: list[object] | Exception
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(home.open(host)) if host is not None else None
            make_order = partial(self._order, secret, address)
            recovers = self.recovery is not None
            life = GuestLife(home, self._job, make_order, count, self.wait, self.settings.grace, recovers)
            try:
                outcome = await life.run(self.workers)
            except Exception as error:
                outcome = error
        self._print_unsent(life.handed)
        if isinstance(outcome, Exception):
            fewer = int(self.recovery is not None and not self.recovery.replace and isinstance(outcome, ExecutorLost))
            self.workers = max(1, len(life.members) - fewer)
        return outcome

    def _job(self, workers: range, joins: bool) -> BarrierJob:
        again = 0 if self.recovery is None or joins else self.recovery.restarts
        return BarrierJob(self.session, workers, self.packages, self.ports, again, f"dataflow-{secrets.token_hex(6)}")

    def _order(
        self, secret: bytes, home: tuple[str, int] | None, join: tuple[str, int, int] | None = None
    ) -> bytes:
        argv, settings, recovery = list(sys.argv), self.settings, self.recovery
        return GuestOrder(secret, home, argv, self.parcel, settings, recovery, self.wait, join).encode()

    def _print_unsent(self, handed: dict[int, Handed]) -> None:
        """Lines of guests that could not reach this process, or not any more."""
        for of in handed.values():
            for stream, text in of.unsent.items():
                self.printers[stream.encode()].put(text.decode("utf-8", "backslashreplace"))
