"""The whole loop beside a run: looks at an operator, logs what it sees, has tables made, decides, and moves bins."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dataflow.asking.client import NoSuchRun
from planners.errors import BadRequest
from planners.intervals.baselines import storm
from planners.live.log import LoadLog
from planners.live.running import RunningOperator
from planners.live.tables import LiveTables, Make, spark_maker
from planners.loop.loop import Driver, Loop
from planners.loop.planning import by_intervals
from planners.model import BinMap

FULL = 0.8e9  # nanoseconds in a second that a worker should be busy at most
LogMaker = Callable[[LoadLog, Sequence[str]], Make]


@dataclass(frozen=True)
class LiveSettings:
    """What is decided by, and how tables are made. `cost`: "nanoseconds" or "records", per second and worker."""

    nodes: tuple[int, int]
    capacity: float = FULL
    cost: str = "nanoseconds"
    tau: float = 0.5
    gamma: float = 0.8
    drift: float = 0.15
    grid: int | None = None
    warm_up: int = 10  # looks before the first tables are made: a log of nothing makes none
    master: str = "local[1]"  # the run has better use for the cores

    def __post_init__(self) -> None:
        low, high = self.nodes
        if not 1 <= low <= high:
            raise BadRequest(f"the number of workers ranges from one or more upwards, not from {low} to {high}")
        if self.cost not in ("records", "nanoseconds"):
            raise BadRequest(f"cost is 'records' or 'nanoseconds', not {self.cost!r}")
        if self.cost == "records" and self.capacity == FULL:
            raise BadRequest("say --capacity: how many records a worker bears in a second")

    def options(self, bins: int) -> list[str]:
        """For `python -m planners.spark run`."""
        low, high = self.nodes
        amounts = {"capacity": self.capacity, "tau": self.tau, "gamma": self.gamma, "bins": bins, "grid": self.grid}
        given = [(f"--{name}", str(value)) for name, value in amounts.items() if value is not None]
        return ["--nodes", f"{low}:{high}", "--master", self.master, *(text for pair in given for text in pair)]


class Beside:
    """A loop beside a run. `step` is one look; what it did is a list of lines, for people."""

    def __init__(
        self, operator: RunningOperator, folder: Path, settings: LiveSettings, maker: LogMaker = spark_maker
    ) -> None:
        self._operator, self._folder, self._settings, self._maker = operator, folder, settings, maker
        self._looks = 0
        self._log: LoadLog | None = None
        self._shape = b""
        self.live = LiveTables(folder, self._make, limit=settings.drift)
        planner = by_intervals(
            self.live.plan, settings.tau, capacity=settings.capacity, least=settings.nodes[0], otherwise=storm
        )
        self._driver = Driver(operator, Loop(planner), cost=settings.cost, least=0, shaping=None)
        self._begin_log()

    def _begin_log(self) -> None:
        """A log for the bins that there are now. Those of other bins say nothing of these."""
        counts = self._operator.counts
        self._shape = counts.tobytes()
        name = f"log-{len(counts)}-{hashlib.sha256(self._shape).hexdigest()[:8]}"
        operator = self._operator
        self._log = LoadLog(
            self._folder / name, cost=self._settings.cost, pinned=lambda: operator.pinned, bins_of=operator.bins_of
        )
        operator.listeners[:] = [self._log.hear]

    def _make(self, out: Path) -> None:
        assert self._log is not None
        self._maker(self._log, self._settings.options(len(self._operator.counts)))(out)

    def step(self) -> list[str]:
        """Looks, decides, and has tables made. NoSuchRun when the run has ended."""
        operator, said = self._operator, []
        usable = operator.look()
        if operator.lost:
            said.append(f"{operator.lost} reports were lost: look more often")
            operator.lost = 0
        if operator.counts.tobytes() != self._shape:
            self._begin_log()
            said.append(f"there are other bins now, {len(operator.counts)} of them: a new log")
        if not usable:
            return said
        self._looks += 1
        if self._lays_out():
            return [*said, "bins are laid in intervals, evenly: they were scattered"]
        decision = self._driver.step()
        if decision is not None and decision.acts:
            said.append(f"{decision} ({self.live.last})")
        if self.live.tables is not None or self._looks >= self._settings.warm_up:
            said += filter(None, [self.live.step(operator.loads(self._settings.cost))])
        return said

    def _lays_out(self) -> bool:
        """Whether bins had to be laid in intervals first: interval planners take nothing else."""
        counts = self._operator.counts
        firsts = np.cumsum(counts) - counts
        places = np.array(self._operator.configuration)[firsts]
        workers = sorted(set(places.tolist()))
        if BinMap(places.tolist(), workers).consecutive:
            return False
        even = np.array(workers)[np.arange(len(counts)) * len(workers) // len(counts)]
        self._operator.migrate(np.repeat(even, counts).tolist())
        return True

    def run(self, every: float, tell: Callable[[str], None], until: Callable[[], bool] = lambda: False) -> None:
        """Steps until the run has ended, or `until` says so."""
        try:
            while not until():
                for line in self.step():
                    tell(line)
                time.sleep(every)
        except NoSuchRun:
            tell("the run has ended")
        finally:
            self.close()

    def close(self) -> None:
        """Writes the rest of the log, and waits for tables that are being made."""
        self.live.close()
        if self._log is not None:
            self._log.flush()
