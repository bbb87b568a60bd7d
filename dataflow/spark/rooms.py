"""Whether a session has room for the workers, before Spark is asked: it would wait for minutes, and then say little.

A barrier stage starts all of its tasks at once or not at all. More tasks than slots are refused (SPARK-24819). So is
dynamic allocation (SPARK-24942), which could not know that they are needed together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import trio

from dataflow.errors import NotAsGuest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK = 0.5  # seconds between looks at the slots
_DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
}


def require_pyspark() -> None:
    """NotAsGuest says how to get it."""
    try:
        import pyspark  # noqa: F401  (only whether it is there)
    except ImportError as error:
        raise NotAsGuest(f"pip install 'megaphone-dataflow[spark]': {error}") from error


def active_session() -> SparkSession:
    """The session that this process has."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise NotAsGuest("there is no Spark session here: make one, and pass it on as session=")
    return session


def refuse_dynamic_allocation(session: SparkSession) -> None:
    """A session that adds and removes executors by itself runs no barrier stages (SPARK-24942)."""
    if str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        raise NotAsGuest(
            "the session has spark.dynamicAllocation.enabled=true, with which Spark starts no set of tasks together "
            "(SPARK-24942): make a session without it, and with as many executors as the workers need"
        )


def count_slots(session: SparkSession) -> int | None:
    """How many tasks can run at once with the executors that are there now; None if the session does not tell.

    That is what the scheduler compares the tasks of a barrier stage with. A session of Spark Connect does not tell.
    """
    context = getattr(session, "_jsc", None) or getattr(getattr(session, "_sc", None), "_jsc", None)
    if context is None:
        return None
    scala = context.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


async def wait_for_slots(
    count: Callable[[], int | None], workers: int, wait: float, taken: Callable[[], int] = lambda: 0
) -> None:
    """Waits until executors have been started; NotAsGuest if there are too few slots for so long. `taken`: how many
    have workers that run already."""
    slots: int | None = 0
    with trio.move_on_after(wait):
        while True:  # nobody tells of a new executor
            slots = await trio.to_thread.run_sync(count)
            if slots is None or slots >= workers + taken():
                return
            await trio.sleep(_LOOK)
    now = taken()
    more = f"{now} workers have one each, and {workers} more" if now else f"{workers} workers"
    raise NotAsGuest(
        f"{more} need {workers} slots of the session at once, and there are {slots} in all after {wait:g} seconds "
        "(SPARK-24819). A slot is spark.task.cpus cores of an executor. Start fewer workers, ask for more executors or "
        "cores (spark.executor.instances, spark.cores.max), or wait longer for them (wait=)"
    )


def driver_address(session: SparkSession) -> str | None:
    """Where executors reach this process; None if they may not: a session of Spark Connect has its driver elsewhere."""
    if not hasattr(session, "_sc"):
        return None
    host: str | None = session.sparkContext.getConf().get("spark.driver.host")
    return host


def start_session(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """A session for the command line. On this machine, executors use this Python."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("dataflow")
    if master is not None:
        builder = builder.master(master)
    for key, value in {**_DEFAULTS, **settings}.items():
        builder = builder.config(key, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with quietly():
        return builder.getOrCreate()


@contextlib.contextmanager
def spark_ignores_ctrl_c() -> Iterator[None]:
    """A session's own handler for Ctrl-C cancels all jobs and interrupts whatever runs. Meanwhile ours has workers end
    first, with their `finally` clauses."""
    handler = signal.getsignal(signal.SIGINT)
    theirs = str(getattr(handler, "__module__", "")).startswith("pyspark")
    if not theirs or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """pyspark warns of pandas 3 whenever a function over Arrow batches is made, although those use no pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield
