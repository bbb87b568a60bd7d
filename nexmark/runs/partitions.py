"""Generated events as a source with positions: a query that reads it goes on after a crash."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from dataflow.columns import Columns
from dataflow.sources import Partitions, SourceError
from nexmark.events.config import Config
from nexmark.queries.queries import NEEDS
from nexmark.runs.sources import Generated

if TYPE_CHECKING:
    from dataflow import Scope, Stream

Item = tuple[int, int, Columns]  # (position, time, batch)


class EventShares(Partitions[Columns]):
    """One kind of the first `events` events, in columns, at their times.

    A partition is a share of every epoch, and a position the number of the first event of the next epoch. Which workers
    read which shares is all the same.
    """

    timed = True

    def __init__(self, generated: Generated, kind: str, shares: int) -> None:
        self._generated = generated
        self._kind = kind
        self._shares = shares

    def __repr__(self) -> str:
        return f"<{self._kind} events of NEXMark>"

    async def partitions(self) -> Collection[str]:
        """The numbers of the shares."""
        return [str(number) for number in range(self._shares)]

    def read(self, partition: str, position: object | None) -> Iterator[Item]:
        """A share of each epoch."""
        size = self._generated.size
        if position is not None and (type(position) is not int or position % size):
            raise SourceError(f"{self!r}: {position!r} is no position where an epoch of {size} events begins")
        for number in range((position or 0) // size, self._generated.epochs):
            table = self._generated.share(number, int(partition), self._shares)[self._kind]
            yield (number + 1) * size, self._generated.time(number), Columns(table)


def event_streams(
    scope: Scope, query: str, config: Config, events: int, *, batch: int, shares: int = 4
) -> tuple[Mapping[str, Stream[Columns]], int]:
    """What a query reads, by kind, and the grid of its times (see `QueryOptions`): `batch` events at each time, in as
    many shares as workers may divide."""
    needs = NEEDS[query]
    made = {kind: Generated(config, {kind: names}, events, batch) for kind, names in needs.items()}
    streams = {kind: scope.source(EventShares(generated, kind, shares), name=kind) for kind, generated in made.items()}
    return streams, next(iter(made.values())).grid
