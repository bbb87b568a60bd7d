"""Several operators that migrate together: they share a control stream, so that each update moves their bins alike.

A step of a migration is done when all of them have done it, and its bytes are those of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dataflow import Stream
from dataflow.errors import ConstructionError
from dataflow.state.values import Key, Record
from dataflow.time.order import Time
from megaphone.assembly import Handle, Migratable
from megaphone.control.configuration import Table
from megaphone.control.tree import BinTree
from megaphone.errors import ControlError
from megaphone.keys.keyspace import KeySpace, NoKeys
from megaphone.keys.pins import Keys
from megaphone.load.statistics import UNKNOWN, Load, Numbers, Statistics

if TYPE_CHECKING:
    from dataflow.run.meters import Meter


class Group:
    """What a controller may know of several operators with the same bins on one control stream.

    Costs: a report of any of them O(its bins x operators).
    """

    def __init__(self, operators: Sequence[Migratable[Record]]) -> None:
        handles = [_handle_of(operator) for operator in operators]
        if not handles:
            raise ConstructionError("a group needs one operator at least")
        first = handles[0]
        for handle in handles[1:]:
            if handle.bins != first.bins:
                raise ConstructionError(
                    f"a group of operators with {first.bins} and {handle.bins} bins: give all as many"
                )
            if handle.tree != first.tree:
                raise ConstructionError(
                    "operators of a group begin with the same bins: say bins= for all of them, or for none"
                )
            if not _same(handle.control, first.control):
                raise ConstructionError(
                    "operators of a group have one control stream, and these have several: build them with the same, "
                    "or give each a controller of its own"
                )
        self._handles = handles
        self.bins = first.bins
        self.keys: KeySpace[Any] = _KeysOfAGroup()
        self.statistics: Statistics = GroupStatistics([handle.statistics for handle in handles])

    @property
    def peers(self) -> int:
        """One more than the greatest number of a worker."""
        return self._handles[0].peers

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have bins."""
        return self._handles[0].members

    @property
    def configuration(self) -> Table:
        """Where each bin is, as far as that is final for the first operator: all of them get the same updates."""
        return self._handles[0].configuration

    @property
    def tree(self) -> BinTree:
        """The bins that there are, as far as that is final for the first operator."""
        return self._handles[0].tree

    @property
    def pinned(self) -> dict[Key, int]:
        """Keys that live apart from their bins. A group has none."""
        return {}

    @property
    def name(self) -> str:
        """The names of all operators."""
        return " and ".join(handle.name for handle in self._handles)

    @property
    def meter(self) -> Meter:
        """Where what happens is noted, for those who look."""
        return self._handles[0].meter

    def now(self) -> float:
        """The worker's clock."""
        return self._handles[0].now()

    def passed(self, time: Time) -> bool:
        """Whether everything at `time` is done, in every operator."""
        return all(handle.passed(time) for handle in self._handles)


def _same(one: Stream[Record], other: Stream[Record]) -> bool:
    return one.source == other.source and one.scope.dataflow is other.scope.dataflow


def _handle_of(operator: Migratable[Record]) -> Handle:
    if not isinstance(operator, Migratable):
        raise TypeError(
            f"a group has the streams that migratable operators returned, as they returned them: {operator!r}"
        )
    return operator.handle


class _KeysOfAGroup(NoKeys):
    """A key of one operator means nothing to the others."""

    def __init__(self) -> None:
        super().__init__("a group", 0)

    def check(self, keys: Keys) -> NoReturn:
        raise ControlError(
            "a group pins no keys: those of its operators are not the same. Give the operator that shall have some "
            "pinned a control stream and a controller of its own"
        )

    def bins_of(self, keys: Keys) -> NoReturn:
        self.check(keys)


class GroupStatistics(Statistics):
    """The last reports of each bin, in all operators together.

    A worker's report adds up those of all its operators: it is complete when each of these has reported since the last
    one. It has no heavy keys, and its interval spans those of the operators.
    """

    def __init__(self, members: Sequence[Statistics]) -> None:
        super().__init__(len(members[0].bytes))
        self._members = members
        self.kept = all(member.kept for member in members)
        self._news: dict[int, dict[int, Load]] = {}  # by worker and operator, a report that is in none of ours
        self._add_up(np.arange(len(self.bytes)))
        for number, member in enumerate(members):
            for load in member.heavy.values():
                self._gather(number, load)
            member.listeners.append(partial(self._member_heard, number))

    def sizes_of(self, bins: Numbers, places: Table) -> Numbers:
        sizes = np.array([member.sizes_of(bins, places) for member in self._members])
        return np.where((sizes == UNKNOWN).any(axis=0), UNKNOWN, sizes.sum(axis=0))

    def _member_heard(self, number: int, load: Load) -> None:
        self._add_up(load.bins)
        if load.is_last:
            self._gather(number, load)

    def _add_up(self, bins: Numbers) -> None:
        self.records[bins] = sum(member.records[bins] for member in self._members)
        self.nanoseconds[bins] = sum(member.nanoseconds[bins] for member in self._members)
        self.bytes[bins] = sum(member.bytes[bins] for member in self._members)

    def _gather(self, number: int, load: Load) -> None:
        news = self._news.setdefault(load.worker, {})
        news[number] = load
        if len(news) == len(self._members):
            earlier = self.heavy.get(load.worker)
            self.note(_merged([*self._news.pop(load.worker).values()], 0 if earlier is None else earlier.interval + 1))


def _merged(loads: Sequence[Load], interval: int) -> Load:
    """One worker's reports of several operators as one."""
    bins, place = np.unique(np.concatenate([load.bins for load in loads]), return_inverse=True)

    def total(arrays: Sequence[Numbers]) -> Numbers:
        sums = np.zeros(len(bins), np.int64)
        np.add.at(sums, place, np.concatenate(arrays))
        return sums

    until, span = None, 0
    if all(load.span and load.until is not None for load in loads):
        until = max(load.until for load in loads if load.until is not None)
        span = until - min(load.until - load.span for load in loads if load.until is not None)
    return Load(
        loads[0].worker, interval, max(load.seconds for load in loads), bins,
        total([load.records for load in loads]), total([load.nanoseconds for load in loads]),
        total([load.bytes for load in loads]), span, until=until, apart=sum(load.apart for load in loads),
        apart_nanoseconds=sum(load.apart_nanoseconds for load in loads),
        elsewhere=sum(load.elsewhere for load in loads),
    )  # fmt: skip
