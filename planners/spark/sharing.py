"""The costs of all partitionings, once for each machine that sweeps: eight bytes each.

Where the folder is on a file system that all machines see, they are one file. Tasks write their parts of it, all at
once, and the tasks of the next sweep map it into memory: processes of one machine share its pages, and nothing is read
that is not looked at. Anywhere else (HDFS, S3) they are a broadcast, which Spark brings to each executor once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD, Broadcast
from pyspark.sql import DataFrame, Row

from planners.mtm.policy import follow
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Costs
from planners.spark.folder import Folder

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lasting:
    """Partitionings that some choice leads to, ascending among all, and what they cost."""

    ranks: NDArray[np.int64]
    costs: Floats


@dataclass(frozen=True, eq=False)
class SharedCosts:
    """Where a task finds the costs of all partitionings: in a file, or in a broadcast."""

    path: str | None
    sent: Broadcast[bytes] | None

    def by_count(self, problem: MTMProblem) -> Costs:
        """By node count and rank."""
        if self.path is not None:
            return _mapped(self.path, problem)
        assert self.sent is not None
        return _divided(np.frombuffer(self.sent.value), problem)


@lru_cache(maxsize=1)
def _mapped(path: str, problem: MTMProblem) -> Costs:
    """The same object for all tasks that a process does in a sweep: what they derive from it is derived once."""
    return _divided(np.asarray(np.memmap(path, np.float64, "r")), problem)


def _divided(whole: Floats, problem: MTMProblem) -> Costs:
    counts = [problem.partitionings(nodes).count for nodes in problem.counts]
    return dict(zip(problem.counts, np.split(whole, np.cumsum(counts)[:-1]), strict=True))


class Sharing:
    """Brings settled costs to the executors. Leaves nothing behind."""

    def __init__(self, folder: Folder, problem: MTMProblem) -> None:
        self._spark, self._problem = folder.spark, problem
        self._total = sum(problem.partitionings(nodes).count for nodes in problem.counts)
        place = local_path(folder.path("checkpoints", problem.fingerprint))
        self._place = None if place is None else Path(place)
        self._last: SharedCosts | None = None

    def __enter__(self) -> Sharing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()

    def share(self, checkpoint: DataFrame, lasting: Lasting) -> SharedCosts:
        """The costs that follow from what a sweep chose, computed by all executors, for all of them."""
        self._forget()
        found = pieces(checkpoint)
        known = self._spark.sparkContext.broadcast((lasting.ranks, lasting.costs))
        try:
            if self._place is None:
                parts = sorted(found.map(partial(_follow, self._problem, known)).collect())
                sent = self._spark.sparkContext.broadcast(b"".join(part for _, part in parts))
                self._last = SharedCosts(None, sent)
            else:
                path = self._place / f"costs-{uuid4().hex}.f8"  # never a name that some process has mapped
                np.memmap(path, np.float64, "w+", shape=(self._total,)).flush()
                found.foreachPartition(partial(_write, self._problem, known, str(path)))
                self._last = SharedCosts(str(path), None)
        finally:
            known.unpersist()
        return self._last

    def _forget(self) -> None:
        """The costs before the last are of no more use."""
        if self._last is None:
            return
        if self._last.sent is not None:
            self._last.sent.unpersist()
        if self._last.path is not None:
            Path(self._last.path).unlink(missing_ok=True)
        self._last = None


def pieces(checkpoint: DataFrame) -> RDD[Row]:
    """What a sweep wrote, for stages that do little with it: a task for each core, since tasks cost more."""
    spark = checkpoint.sparkSession
    columns = checkpoint.select("nodes", "start", "swept", "direct", "targets")
    return columns.coalesce(spark.sparkContext.defaultParallelism).rdd


def first_ranks(problem: MTMProblem) -> NDArray[np.int64]:
    """Partitionings of all node counts in one row: by node count, where its own begin; and, at the end, how many."""
    return np.cumsum([0, *(problem.partitionings(nodes).count for nodes in problem.counts)])


def swept_parts(problem: MTMProblem, row: Row) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Of a row of a checkpoint: swept costs, direct costs, and by node count the target among all partitionings."""
    targets = np.frombuffer(row.targets, np.int64).reshape(-1, len(problem.counts))
    return np.frombuffer(row.swept), np.frombuffer(row.direct), targets


def followed(problem: MTMProblem, lasting: Lasting, row: Row) -> tuple[int, NDArray[np.float64]]:
    """The settled costs of a piece, and where they stand in the row of all."""
    place = problem.counts.index(row.nodes)
    _, direct, targets = swept_parts(problem, row)
    places = np.where(targets >= 0, np.searchsorted(lasting.ranks, targets), -1)
    weights = problem.gamma * problem.transitions.matrix[place]
    return int(first_ranks(problem)[place]) + row.start, follow(direct, places, weights, lasting.costs)


Known = Broadcast[tuple[NDArray[np.int64], Floats]]


def _follow(problem: MTMProblem, known: Known, row: Row) -> tuple[int, bytes]:
    start, costs = followed(problem, Lasting(*known.value), row)
    return start, costs.tobytes()


def _write(problem: MTMProblem, known: Known, path: str, rows: Iterator[Row]) -> None:
    whole = np.memmap(path, np.float64, "r+")
    for row in rows:
        start, costs = followed(problem, Lasting(*known.value), row)
        whole[start : start + len(costs)] = costs
    whole.flush()


def local_path(address: str) -> str | None:
    """The path of an address on a file system that is mounted, or None if it is elsewhere.

    >>> local_path("/data/x"), local_path("file:///data/x"), local_path("hdfs://host/x")
    ('/data/x', '/data/x', None)
    """
    parts = urlsplit(address)
    if parts.scheme == "file":
        return unquote(parts.path)
    return None if parts.scheme else address
