"""What a snapshot has of a migratable operator besides its bins: where they are, pins, what is known of their plans,
and the last statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dataflow.members.roster import Roster
from dataflow.time.order import Time
from megaphone.control.arranging import Table, dealt_out
from megaphone.control.configuration import Configurations
from megaphone.control.replans import KnownPlans
from megaphone.control.tree import BinTree
from megaphone.load.statistics import Statistics


class KeptPlacement:
    """The configuration as a companion of the bins (`dataflow.state.kept.Companion`). All workers have the same one, so
    worker 0 gives it."""

    def __init__(
        self,
        configurations: Callable[[], Configurations[Any]],
        plans: KnownPlans,
        statistics: Statistics,
        roster: Roster,
        peers: int,
    ) -> None:
        self._configurations = configurations
        self._plans = plans
        self._statistics = statistics
        self._roster = roster
        self._worker = roster.me
        self._peers = peers
        self._restored: Table | None = None  # where the run goes on; later updates are none of its business

    def share(self, cut: Time) -> object:
        """The configuration that was final just before a cut."""
        if self._worker != 0:
            return None
        configurations, known = self._configurations(), self._statistics
        table, pins = configurations.at(cut - 1), configurations.pins_at(cut - 1)
        levels = configurations.tree_at(cut - 1).levels.tobytes()
        loads = [numbers.astype("<i8").tobytes() for numbers in (known.records, known.nanoseconds, known.bytes)]
        plans = [list(plan) for plan in self._plans.changed_at(cut - 1).items()]
        members = list(self._roster.settled)  # none while workers join or leave: whoever goes on deals out anew
        return [table.astype("<u2").tobytes(), [list(pin) for pin in pins.items()], loads, plans, levels, members]

    def restore(self, shares: Mapping[int, object]) -> None:
        """With the same workers as before, everything is where it was; else bins are dealt out evenly, and pins go to
        their worker mod workers. The statistics are of bins, wherever they are."""
        share = shares[0]
        assert isinstance(share, list)
        saved, pins, loads, plans, *shape = share
        table = np.frombuffer(saved, "<u2").astype(np.uint16)
        bins = len(self._configurations().latest)
        tree = BinTree.even(bins, bins)  # where it was saved before bins could split
        if shape and len(shape[0]) == bins:
            tree = BinTree(np.frombuffer(shape[0], np.uint8))
        members = shape[1] if len(shape) > 1 else sorted(shares)  # from before they could change
        if members != list(range(self._peers)) or len(table) != bins:
            table = dealt_out(tree, range(self._peers)).table
        self._restored = table
        self._configurations().restore(table, {key: worker % self._peers for key, worker in pins}, tree)
        self._plans.restore(dict(plans))
        known = self._statistics
        for numbers, data in zip((known.records, known.nanoseconds, known.bytes), loads, strict=True):
            if len(data) == 8 * bins:  # else of other bins, which say nothing of these
                numbers[:] = np.frombuffer(data, "<i8")

    def owns(self, shard: int) -> bool:
        """Whether a bin is this worker's, as of where the run goes on."""
        assert self._restored is not None, "nobody asks before it is restored"
        return bool(self._restored[shard] == self._worker)

    def owns_before(self, shard: int, cut: Time) -> bool:
        """Whether a bin was this worker's just before a cut."""
        return bool(self._configurations().at(cut - 1)[shard] == self._worker)
