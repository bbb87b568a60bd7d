"""What the real controller sees of a simulated run: the operator's handle, its control stream, its statistics."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bench.simulator.costs import Floats
from dataflow import Probe, Stream
from dataflow.columns import Columns
from dataflow.members.roster import Roster
from dataflow.run.meters import Meter
from dataflow.run.pump import Pump
from dataflow.state.store import Store
from dataflow.time.order import Time
from megaphone.assembly import Handle
from megaphone.control.arranging import dealt_out
from megaphone.control.configuration import Configurations
from megaphone.control.replans import KnownPlans, NoPlans
from megaphone.control.tree import BinTree
from megaphone.control.updates import Update
from megaphone.keys.keyspace import NoKeys
from megaphone.load.statistics import Load, Statistics


class SimulatedHandle(Handle):
    """The handle of an operator that runs on a virtual clock. Configurations, rosters and statistics are real ones."""

    def __init__(self, bins: int, members: int, now: Callable[[], float], passed: Callable[[Time], bool]) -> None:
        keys, plans = NoKeys("simulated", bins), KnownPlans(NoPlans(), bins)
        self.roster = Roster(0, range(members))
        self.configurations = Configurations(dealt_out(BinTree.even(bins, bins), range(members)), keys, plans)
        statistics = Statistics(bins)
        # there is no dataflow behind it: nobody may ask for a store, a stream or a probe
        nothing = cast(tuple[Probe, Store[Columns], Stream[Update]], (None, None, None))
        super().__init__(
            bins,
            self.roster,
            keys,
            self.configurations,
            nothing[0],
            statistics,
            nothing[1],
            nothing[2],
            plans,
            "simulated",
        )
        self._meter = Meter(cast(Pump, SimpleNamespace(index=0)))  # all that it asks of one for what is noted here
        self._now = now
        self._has_passed = passed

    @property
    def meter(self) -> Meter:
        """Where what happens is noted."""
        return self._meter

    def now(self) -> float:
        """The virtual clock."""
        return self._now()

    def passed(self, time: Time) -> bool:
        """Whether worker 0 knows that everything at `time` is done."""
        return self._has_passed(time)


class SimulatedControl:
    """The control stream, on worker 0: what is sent takes effect at the time that it has been advanced to."""

    def __init__(self, handle: SimulatedHandle) -> None:
        self._handle = handle
        self._time = 0
        self.updates = 0  # times at which something was said

    @property
    def time(self) -> Time:
        """Where it is."""
        return self._time

    def send(self, records: list[Update], at: Time = None) -> None:
        """Sends updates."""
        self._handle.configurations.accept(self._time if at is None else at, records)
        self.updates += 1

    def advance_to(self, time: Time) -> None:
        """Promises that nothing comes before."""
        self._time = max(self._time, time)


def told_loads(
    number: int, seconds: float, until: int, span: int, table: NDArray[np.uint16],
    records: Floats, nanoseconds: Floats, sizes: Floats,
) -> list[Load]:  # fmt: skip
    """The reports of all workers that have bins, of one interval. Arrays by bin, but for `nanoseconds`: by worker."""
    order = np.argsort(table, kind="stable")
    workers, firsts = np.unique(table[order], return_index=True)
    loads = []
    for worker, bins in zip(workers.tolist(), np.split(order, firsts[1:]), strict=True):
        mine = records[bins].astype(np.int64)
        spent = (mine * nanoseconds[worker]).astype(np.int64)
        held = np.maximum(1, sizes[bins]).astype(np.int64)
        loads.append(Load(worker, number, seconds, bins, mine, spent, held, span, until=until))
    return loads
