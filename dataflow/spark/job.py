"""One barrier job: its workers live and end together. What Spark says of its end, in words about workers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from dataflow.errors import ExecutorLost, NotAsGuest, WorkerFailed
from dataflow.spark import task
from dataflow.spark.outcome import Handed, decode_handed
from dataflow.spark.rooms import quietly
from dataflow.spark.shipping import Packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class BarrierJob:
    """Workers on a session's executors: those with whom a run begins, or some who join it."""

    session: SparkSession
    workers: range  # their numbers, by task
    packages: Packages
    ports: tuple[int, int]
    again: int  # how often a guest that is killed is started again
    tag: str  # by which it can be interrupted

    def run(self, order: bytes) -> tuple[dict[int, Handed], dict[int, str]]:
        """Runs it to its end, in a thread of its own: what guests handed back, and how those died who did not."""
        session, count = self.session, len(self.workers)
        session.addTag(self.tag)
        try:
            work = task.make_task(order, self.packages.archive, self.packages.digest, self.ports, self.again)
            with _by_value(), quietly():
                frame = session.range(0, count, 1, count).mapInArrow(work, task.SCHEMA, barrier=True)
                rows = frame.collect()
        except Exception as error:
            raise explain(str(error), self.workers) from error
        finally:
            session.removeTag(self.tag)
        return understand(rows, self.workers)

    def interrupt(self) -> None:
        """Has Spark end its tasks, and with them the guests."""
        self.session.interruptTag(self.tag)


_lock = Lock()
_jobs = 0  # that run, of this process


@contextmanager
def _by_value() -> Iterator[None]:
    """The packages are not on the executors before the task has put them there. Several jobs may run at a time."""
    from pyspark import cloudpickle

    global _jobs
    with _lock:
        if not _jobs:
            cloudpickle.register_pickle_by_value(task)
        _jobs += 1
    try:
        yield
    finally:
        with _lock:
            _jobs -= 1
            if not _jobs:
                cloudpickle.unregister_pickle_by_value(task)


def understand(rows: list[Any], workers: range) -> tuple[dict[int, Handed], dict[int, str]]:
    """What guests handed back, and how those died who did not, by worker, from rows of `task.SCHEMA`."""
    numbered = [(workers[row.task], row) for row in rows]
    handed = {number: decode_handed(number, bytes(row.outcome)) for number, row in numbered if row.outcome is not None}
    return handed, {number: row.died for number, row in numbered if row.outcome is None}


_TASK = re.compile(r"barrier task ResultTask\(\d+, (\d+)\)|Lost task (\d+)\.\d+ in stage|Task (\d+) in stage")


def explain(text: str, workers: range) -> Exception:
    """What is raised when Spark gives a job with these workers up.

    >>> explain("barrier task ResultTask(0, 1) ... ExecutorLostFailure (executor 0 ... Reason: gone)", range(2, 4))
    ExecutorLost('the executor with worker 3 is gone (gone)')
    """
    if "SPARK-24819" in text:
        return NotAsGuest(
            "Spark has fewer slots than the workers need at once (SPARK-24819): start fewer workers, or ask for more "
            "executors or cores (spark.executor.instances, spark.cores.max)"
        )
    if "SPARK-24942" in text:
        return NotAsGuest(
            "Spark starts no set of tasks together with spark.dynamicAllocation.enabled=true (SPARK-24942): make a "
            "session without it, and with as many executors as the workers need"
        )
    found = _TASK.search(text)
    place = next((int(each) for each in found.groups() if each is not None), len(workers)) if found else len(workers)
    number = workers[place] if place < len(workers) else None
    if "ExecutorLostFailure" in text:
        reason = re.search(r"ExecutorLostFailure.*?Reason: ([^\n)]*)", text, re.DOTALL)
        whose = "one of the workers" if number is None else f"worker {number}"
        why = f" ({reason[1].strip()})" if reason else ""
        return ExecutorLost(f"the executor with {whose} is gone{why}", number)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return WorkerFailed(f"Spark has given the job up: {' '.join(lines)[:1500]}", number)
