"""Captured streams, replayed at their own times. A capture is a partition; a position is a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dataflow.errors import DataflowError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.operators.replay import CapturedBatch, Event, read_events
from dataflow.sources.files import FileSet
from dataflow.values import Record


class _Captures(Partitions[Record]):
    """Batches are given in the order of their times, as these become complete. A position is [time, batches given at
    that time]: a replay that goes on reads the file from its beginning and passes over what was before."""

    timed = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files = FileSet(path, False)

    def __repr__(self) -> str:
        return f"<captures of {self._files.title}>"

    async def partitions(self) -> list[str]:
        """The files."""
        return self._files.names()

    def read(self, partition: str, position: object | None) -> Iterator[Item[Record]]:
        """What was captured at the position or later."""
        path = self._files.path(partition)
        if position is None:
            first, given = 0, 0
        elif isinstance(position, list) and len(position) == 2 and all(type(part) is int for part in position):
            first, given = position
        else:
            raise SourceError(f"{path}: {position!r} is no position in a capture: a time was expected")
        with open(path, "rb") as file:
            try:
                yield from _in_order(path, read_events(file), first, given)
            except SourceError:
                raise
            except DataflowError as error:
                raise SourceError(f"{path}: {error}") from None


def _in_order(path: Path, events: Iterator[Event], first: int, given: int) -> Iterator[Item[Record]]:
    waiting: dict[int, list[CapturedBatch]] = {}  # by time, not complete
    frontier = {0: 1}  # how often each time is in it
    for event in events:
        if isinstance(event, CapturedBatch):
            if type(event.time) is not int:
                raise SourceError(
                    f"{path} was captured at times such as {event.time!r}: only integers can be replayed so"
                )
            if event.time >= first:
                waiting.setdefault(event.time, []).append(event)
            continue
        for time, change in event.changes:
            frontier[time] = frontier.get(time, 0) + change
        least = min((time for time, count in frontier.items() if count), default=None)
        for time in sorted(waiting):
            if least is not None and time >= least:
                break
            for number, batch in enumerate(waiting.pop(time), 1):
                if time > first or number > given:
                    yield [time, number], time, batch.records
        if least is not None and least > first:
            yield [least, 0], least, []  # the stream was here, with or without records


def replay(path: str | os.PathLike[str]) -> Partitions[Record]:
    """The streams in files that an `EventWriter` wrote, at the times at which they were captured: one file, all of a
    folder, or those that match a pattern. Times must be integers. (`scope.replay` replays captures in memory.)"""
    return _Captures(path)
