"""Sinks that write each record once: the interface. docs/connectors.md shows how to write one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

from dataflow.channels.pact import Batch, Pact
from dataflow.columns.batch import Columns
from dataflow.errors import DataflowError
from dataflow.time.order import Time

R = TypeVar("R")


class SinkError(DataflowError):
    """Rows that a sink cannot take, or staged output that is not there any more."""


class SinkUnavailable(SinkError, OSError):
    """The outside cannot be written to now: a full disk, a locked database, a server that does not answer. What meets
    this is tried again: a batch and a commit after a moment, a snapshot after its interval."""


def join_batches(batches: Sequence[Batch]) -> list[Batch]:
    """As few batches as possible, with the same records in the same order: rows with rows, columns with their like."""
    joined: list[Batch] = []
    for is_columns, some in groupby(batches, lambda batch: isinstance(batch, Columns)):
        if not is_columns:
            joined.append([record for batch in some for record in batch])
            continue
        columns = [batch for batch in some if isinstance(batch, Columns)]
        joined += [Columns.concat(columns)] if Columns.alike(columns) else columns
    return joined


class Away(Protocol):
    """Runs what blocks: in a thread, where there may be threads."""

    def __call__(self, function: Callable[[], R], /) -> Awaitable[R]: ...


@dataclass(frozen=True)
class Place:
    """Where a writer writes from."""

    name: str  # of the sink's operator
    worker: int
    incarnation: int  # of the run, among those that went on from one another
    away: Away  # runs what blocks


class Sink(ABC):
    """Where records leave for good. Each worker opens a writer of its own."""

    every: float = 0.0  # without recovery: at least so many seconds from one commit to the next

    def route(self) -> Pact | None:
        """Which worker writes which records; None: the one that has them."""
        return None

    @abstractmethod
    def open(self, place: Place) -> Writer:
        """A writer, on a worker. Nothing blocks here: that is for the writer's methods."""


class AtLeastOnce(Sink):
    """A sink that shows records again after a crash: those since the last snapshot. Its type says so."""


class Writer(ABC):
    """Writes in two steps: what was written is first prepared, durable and invisible, and then committed, visible.

    With recovery, `prepare` comes before a snapshot and `commit` after it. A snapshot may be given up: then what was
    prepared is not committed, and must be part of the next token. After a crash, the tokens of the last snapshot are
    given to `recover`, on worker 0. Methods are called one at a time.
    """

    @abstractmethod
    async def write(self, time: Time, batch: Batch) -> None:
        """Takes a batch of a complete time. Times come in order. If it raises SinkUnavailable, nothing of the batch was
        taken: the same batch comes again."""

    @abstractmethod
    async def prepare(self, time: Time) -> object:
        """Makes durable what was written and has not been committed: all that is before a time. Returns a token, in
        plain data, from which any writer of this sink can commit it; None if there is nothing."""

    @abstractmethod
    async def commit(self, token: object) -> None:
        """Makes visible what was prepared under a token, perhaps by another writer, in a run that died. May be
        repeated, and is if it raises SinkUnavailable."""

    @abstractmethod
    async def recover(self, tokens: Sequence[object]) -> None:
        """Commits the tokens of the snapshot from which the run goes on, and removes what earlier incarnations prepared
        besides: nobody will commit it."""

    def close(self) -> None:  # noqa: B027  # few have anything to close
        """The worker ends, whatever the reason."""
