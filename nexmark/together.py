"""The operators of one query as one: they share a control stream, and a migration's step is done when all are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataflow.order import Time
from megaphone.apart import PinningStore
from megaphone.assembly import Handle, Migratable
from megaphone.statistics import Statistics


class TogetherHandle(Handle):
    """What a controller may know of several operators with the same bins: the slowest decides."""

    def __init__(self, handles: Sequence[Handle]) -> None:
        self.bins, self.peers, self.store = handles[0].bins, handles[0].peers, handles[0].store
        self._handles = handles

    @property
    def configuration(self) -> Any:
        """Where each bin is, as far as that is final."""
        return self._handles[0].configuration

    @property
    def statistics(self) -> Statistics:  # type: ignore[override]
        """A bin's records and bytes, in all operators together."""
        total = Statistics(self.bins)
        for handle in self._handles:
            total.records += handle.statistics.records
            total.nanoseconds += handle.statistics.nanoseconds
            total.bytes += handle.statistics.bytes
        return total

    def passed(self, time: Time) -> bool:
        """Whether everything at `time` is done, in every operator."""
        return all(handle.passed(time) for handle in self._handles)


def together(operators: Sequence[Migratable]) -> Migratable:
    """Something to make a `megaphone.Controller` of: it paces by the slowest of the operators."""
    if len(operators) == 1:
        return operators[0]
    one = Migratable(operators[0].scope, operators[-1].source)
    one.handle = TogetherHandle([operator.handle for operator in operators])
    return one


def state_of(operators: Sequence[Migratable]) -> tuple[int, int]:
    """Keys that have state on this worker, and the bytes that all would travel as, post-dated records included."""
    from dataflow.columns.kernels import USED

    stores = [operator.handle.store for operator in operators]
    keys = sum(int(store.table.meta[:, USED].sum()) for store in stores if isinstance(store, PinningStore))
    return keys, sum(int(store.sizes(0, store.bins).sum()) for store in stores)


def make_ready(operators: Sequence[Migratable], size: int) -> None:
    """Touches so many bytes of memory for each table and queue of theirs on this worker, before they are needed."""
    for operator in operators if size else ():
        assert isinstance(operator.handle.store, PinningStore)
        for part in operator.handle.store.home.parts:
            part.segments.make_ready(size)
