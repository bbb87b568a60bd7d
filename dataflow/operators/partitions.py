"""Sources that can be set where they were: partitions, and positions in them. docs/connectors.md shows how to write
one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Generic, TypeAlias, TypeVar

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.errors import DataflowError
from dataflow.time.order import Time

D = TypeVar("D")

Item: TypeAlias = tuple[object, Time, Collection[D] | Columns]
"""(the position behind a batch, its time or None, the batch)"""


class SourceError(DataflowError):
    """A source that cannot be read, or whose data is not what it should be."""


class Partitions(ABC, Generic[D]):
    """A source of records in partitions: files of a folder, partitions of a topic, shares of a generator.

    A position says how much of a partition has been read, in plain data: a byte, a row number, a cursor. Reading from a
    position gives exactly the rest. Each partition is read by one worker.
    """

    resumable: bool = True  # whether it can be set to a position; if not, recovery refuses it
    timed: bool = False  # whether batches name their times; if not, the engine gives them
    follow: bool = False  # whether there may always be more, so that the source never ends
    tick: float = 0.1  # seconds: with `follow` and without times of its own, time advances so often
    look_every: float = 1.0  # seconds: with `follow`, worker 0 looks for new partitions so often
    hears_back: bool = True  # set to False by the engine if there is no recovery: nobody will call `acknowledge`
    moves: bool = True  # whether another worker may go on with a partition, when workers join and leave
    idle_after: float | None = None  # seconds: a partition that is silent for so long holds no times back; if `timed`
    late_apart: bool = False  # whether it marks late records, which then are a stream of their own
    at_once: int = 16  # without `follow` and `timed`, a worker reads so many partitions side by side

    @abstractmethod
    async def partitions(self) -> Collection[str]:
        """The names of the partitions that there are now. Called on worker 0."""

    @abstractmethod
    def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]] | Iterator[Item[D]]:
        """The rest of a partition from a position on (None: from its beginning), as (position, time, batch): the
        position behind the batch, the batch's time if the source is `timed` (not before the one before it) or None, and
        rows or columns. An empty batch only moves the position and the time."""

    def overtaken(self, partition: str, batch: Batch, reached: int) -> Batch:
        """What is sent of a batch at a time that its partition, which was silent (`idle_after`), is behind."""
        raise SourceError(f"{self!r} has idle_after, and does not say what is late of a partition that was silent")

    async def acknowledge(self, partition: str, position: object) -> None:  # few have an upstream
        """Everything before the position is in a durable snapshot: it will not be read again. May be repeated."""
