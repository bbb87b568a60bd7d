"""One barrier job: its workers live and end together. What Spark says of its end, in words about workers."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    """So many workers on a session's executors. Growing a run is another job, whose workers join."""

    session: SparkSession
    workers: int
    packages: Packages
    ports: tuple[int, int]
    again: int  # how often a guest that is killed is started again
    tag: str  # by which it can be interrupted

    def run(self, order: bytes) -> tuple[dict[int, Handed], dict[int, str]]:
        """Runs it to its end, in a thread of its own: what guests handed back, and how those died who did not."""
        from pyspark import cloudpickle

        session = self.session
        session.addTag(self.tag)
        # The packages are not on the executors before the task has put them there.
        cloudpickle.register_pickle_by_value(task)
        try:
            work = task.make_task(order, self.packages.archive, self.packages.digest, self.ports, self.again)
            with quietly():
                frame = session.range(0, self.workers, 1, self.workers).mapInArrow(work, task.SCHEMA, barrier=True)
            rows = frame.collect()
        except Exception as error:
            raise explain(str(error)) from error
        finally:
            cloudpickle.unregister_pickle_by_value(task)
            session.removeTag(self.tag)
        return understand(rows)

    def interrupt(self) -> None:
        """Has Spark end its tasks, and with them the guests."""
        self.session.interruptTag(self.tag)


def understand(rows: list[Any]) -> tuple[dict[int, Handed], dict[int, str]]:
    """What guests handed back, and how those died who did not, from rows of `task.SCHEMA`."""
    handed = {row.worker: decode_handed(row.worker, bytes(row.outcome)) for row in rows if row.outcome is not None}
    return handed, {row.worker: row.died for row in rows if row.outcome is None}


_TASK = re.compile(r"barrier task ResultTask\(\d+, (\d+)\)|Lost task (\d+)\.\d+ in stage|Task (\d+) in stage")


def explain(text: str) -> Exception:
    """What is raised when Spark gives a job up.

    >>> explain("... ResultTask(0, 1) ... ExecutorLostFailure (executor 0 exited caused by ... Reason: gone)")
    ExecutorLost('the executor with one of the workers is gone (gone)')
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
    number = next((int(each) for each in found.groups() if each is not None), None) if found else None
    if "ExecutorLostFailure" in text:
        reason = re.search(r"ExecutorLostFailure.*?Reason: ([^\n)]*)", text, re.DOTALL)
        whose = "one of the workers" if number is None else f"worker {number}"
        why = f" ({reason[1].strip()})" if reason else ""
        return ExecutorLost(f"the executor with {whose} is gone{why}", number)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return WorkerFailed(f"Spark has given the job up: {' '.join(lines)[:1500]}", number)
