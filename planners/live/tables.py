"""Tables of projected costs beside a running dataflow: made in the background, made anew when loads have drifted.

A folder has a table for each making, `tables-0001` and so on. The newest that is complete is used, from the moment that
it is; the one before stays where it is, for whoever has it open, and those before that are deleted.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.errors import BadRequest, NotInTables
from planners.intervals.ssm import ssm
from planners.live.log import LoadLog
from planners.model import Intervals, Plan
from planners.mtm.choice import mtm_aware
from planners.mtm.tables import Tables

Make = Callable[[Path], None]
"""Makes tables in a folder, from the logs; takes as long as it takes, in a thread of its own."""


MOST_REST = 64  # steps after a failure, at most


class LiveTables:
    """The tables that there are now, and the making of others.

    `plan` is a planner as `ssm` is, for `planners.loop.by_intervals`: `mtm_aware` with the tables that are there, or
    `ssm` where they do not help; `last` says which it was, and why. Call `step` with the loads of bins now and then:
    it takes new tables into use, and has others made when there are none, when loads have drifted by more than `limit`
    from those of the tables, or when a plan could not be made from them. After a failure it waits for some steps.
    """

    def __init__(self, folder: str | Path, make: Make, *, limit: float = 0.15) -> None:
        if not 0 < limit <= 1:
            raise BadRequest(f"drift is from 0 to 1, and its limit above 0: not {limit}")
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.last = "no plan has been asked for"
        self._limit = limit
        self._make = make
        self._wanting = ""  # why a plan could not be made from the tables
        self._answered = ""  # the same, of what tables have been made for already: they would be no better
        self._made_for: ArrayLike | None = None  # loads when the last making began
        self._failures = 0  # in a row
        self._rest = 0  # steps until the next try
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tables")
        self._making: tuple[Path, Future[None]] | None = None
        self.version, self.tables = self._newest()

    @property
    def making(self) -> bool:
        """Whether tables are being made."""
        return self._making is not None

    def step(self, loads: ArrayLike) -> str:
        """What was done, for people; empty if nothing was."""
        if self._making is not None:
            return self._take(*self._making) if self._making[1].done() else ""
        self._rest = max(0, self._rest - 1)
        why = self._why(np.asarray(loads, float)) if not self._rest else ""
        if not why:
            return ""
        self._made_for, self._answered = np.array(loads, float), self._wanting
        path = self.folder / f"tables-{self.version + 1:04d}"
        shutil.rmtree(path, ignore_errors=True)  # what an earlier run did not finish
        self._making = path, self._pool.submit(self._make, path)
        return f"tables {self.version + 1} are being made: {why}"

    def _why(self, loads: NDArray[np.float64]) -> str:
        """Why tables should be made; empty if they need not be."""
        if self.tables is None:
            return "there are no tables yet"
        if self._failures:
            return "the last making failed"
        if len(self.tables.problem.tasks) != len(loads):
            return "the tables are for another number of bins"
        if self._wanting and self._wanting != self._answered:
            return self._wanting
        moved = drift(self.tables.problem.tasks.loads, loads)
        # Logs have the mean of all that was: tables lag behind, and are not made again for the same loads.
        fresh = self._made_for is None or drift(self._made_for, loads) > self._limit
        return f"{moved:.0%} of the load is elsewhere than in the tables" if moved > self._limit and fresh else ""

    def _take(self, path: Path, made: Future[None]) -> str:
        self._making, self._wanting = None, ""
        error = made.exception()
        if error is not None:
            self._failures += 1
            self._rest = min(MOST_REST, 2**self._failures)
            return f"tables {self.version + 1} could not be made: {error}"
        self._failures = 0
        self.tables = Tables.open(path)
        self.version += 1
        shutil.rmtree(self.folder / f"tables-{self.version - 2:04d}", ignore_errors=True)
        return f"tables {self.version} are in use"

    def plan(self, current: Intervals, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float) -> Plan:
        """The plan of `mtm_aware`, or of `ssm` if there are no tables, or none that know these nodes and loads."""
        if self.tables is not None and isinstance(current, Intervals):
            within = min(tau, self.tables.problem.tau)
            try:
                plan = mtm_aware(current, nodes=nodes, tables=self.tables, sizes=sizes, loads=loads, tau=within)
                self.last = f"mtm_aware, from tables {self.version}"
                return plan
            except (NotInTables, BadRequest) as error:  # an answer of the tables', and not the last word
                self._wanting = str(error)
        self.last = f"ssm, because {self._wanting or 'there are no tables yet'}"
        return ssm(current, nodes=nodes, sizes=sizes, loads=loads, tau=tau)

    def close(self) -> None:
        """Waits for tables that are being made."""
        self._pool.shutdown()

    def _newest(self) -> tuple[int, Tables | None]:
        """The newest complete tables: parameters are written last."""
        for path in sorted(self.folder.glob("tables-????"), reverse=True):
            if (path / "parameters.json").exists():
                return int(path.name.removeprefix("tables-")), Tables.open(path)
        return 0, None


def drift(then: ArrayLike, now: ArrayLike) -> float:
    """The share of the load that is in other bins than it was: 0 if nothing is, 1 if all of it. O(bins).

    >>> drift([1, 1, 2], [2, 2, 4]), drift([1, 1], [2, 0]), drift([1, 0], [0, 3])
    (0.0, 0.5, 1.0)
    """
    before, after = np.asarray(then, float), np.asarray(now, float)
    if not before.sum() or not after.sum():
        return 0.0
    return float(np.abs(before / before.sum() - after / after.sum()).sum() / 2)


def spark_maker(logs: str | Path | LoadLog, options: Sequence[str]) -> Make:
    """Makes tables by `python -m planners.spark run` with these options, as a process of its own: a JVM does not share
    the dataflow's. If a log is given, what it has noted is written first."""

    def make(out: Path) -> None:
        folder = logs.folder if isinstance(logs, LoadLog) else logs
        if isinstance(logs, LoadLog):
            logs.flush()
        command = [sys.executable, "-m", "planners.spark", "run", "--logs", str(folder), "--out", str(out), *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            said = ended.stderr.strip().splitlines()
            raise BadRequest(f"python -m planners.spark ended with {ended.returncode}: {said[-1] if said else ''}")

    return make
