"""Bins go to where workers are: what scaling asks of a migratable operator (`dataflow.build.hooks.Mover`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataflow.errors import DataflowError
from dataflow.members.following import CannotScale
from dataflow.members.requests import Places, even
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.hooks import UpdateFeed
    from dataflow.run.dataflow import Dataflow
    from megaphone.assembly import Migratable
    from megaphone.control.updates import Update
    from megaphone.migration.controller import Controller

EACH = 8  # bins of a worker: with fewer, bins are split before they are placed


class BinMover:
    """Moves the bins of one operator, with a controller of its own, on the control stream that it has."""

    def __init__(self, name: str, stream: Migratable[Any], dataflow: Dataflow) -> None:
        self._name = name
        self._stream = stream
        self._dataflow = dataflow
        self._controller: Controller | None = None
        self._feed: UpdateFeed | None = None

    def begin(self, workers: Sequence[int], placement: object, strategy: object) -> None:
        """Begins to move all bins, and keys that are pinned elsewhere, to these workers."""
        from megaphone.migration.controller import Controller
        from megaphone.migration.strategies import batched

        handle = self._stream.handle
        feed = self._dataflow.hooks.feeds.get(handle.control.source)
        if feed is None:
            raise CannotScale(
                f"{self._name}: its control stream is not that of an input, so nobody but the program can move its bins"
            )
        self._feed = feed
        placed = even if placement is None else placement
        assert callable(placed), "it was checked where it was asked for"
        known, tree = handle.statistics, handle.tree.at_least(EACH * len(workers))
        where = handle.configuration[tree.firsts]
        to = placed(Places(self._name, list(workers), where, tree.total(known.records), tree.total(known.bytes)))
        if len(to) != len(tree):
            raise CannotScale(f"{self._name}: a placement of {len(to)} bins, and it was given {len(tree)}")
        pins = {key: workers[0] for key, worker in handle.pinned.items() if worker not in workers}
        self._controller = Controller(_Named(feed, self._name), self._stream)
        chosen: Any = batched(max(1, len(tree) // 16)) if strategy is None else strategy
        self._controller.migrate(tree.spread(to), chosen, pins or None)

    def step(self) -> bool:
        """Sends the next step if the last is complete; whether all are."""
        assert self._controller is not None and self._feed is not None, "it begins first"
        if self._controller.busy:
            try:
                self._controller.advance_to(self._feed.time)
            except DataflowError as error:
                raise CannotScale(f"{self._name}: its bins cannot be moved: {error}") from error
        return not self._controller.busy

    @property
    def progress(self) -> tuple[int, int]:
        """How many bins have moved, of how many."""
        done = None if self._controller is None else self._controller.progress
        return (0, 0) if done is None else (done.bins_moved, done.bins)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Has somebody called whenever a step may be done."""
        self._dataflow.watch(self._stream.source, watcher)


class _Named:
    """Sends updates for one operator, on a control stream that others may share."""

    def __init__(self, feed: UpdateFeed, name: str) -> None:
        self._feed = feed
        self._name = name

    @property
    def time(self) -> Time:
        """The least time at which an update can take effect."""
        return self._feed.time

    def send(self, records: list[Update], at: Time = None) -> None:
        """Sends updates."""
        self._feed.send([replace(update, operator=self._name) for update in records], self.time if at is None else at)

    def advance_to(self, time: Time) -> None:
        """Whoever feeds the control stream advances it."""
