"""Capture and replay: everything that happens on a stream, written down, and done again.

A capture is a list of events: records at a time, and changes of the frontier. Captured streams can be replayed in
another dataflow, later, and on another number of workers: a worker may replay any number of them, but each must be
replayed once.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

import trio

from dataflow.build.builder import Context, OperatorBuilder, require_callable, unary
from dataflow.build.capability import Capability
from dataflow.build.operator import Step
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns import Columns
from dataflow.comm import codec
from dataflow.errors import ConstructionError, DataflowError
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream
    from dataflow.run.dataflow import Dataflow

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class CapturedBatch:
    """A batch of records at a time: rows as a tuple, columns as they are."""

    time: Time
    records: tuple[Record, ...] | Columns


@dataclass(frozen=True, slots=True)
class CapturedFrontier:
    """How the frontier of the stream changed: times with +1 joined it, times with -1 left it.

    The first event is relative to a frontier at the minimum; after the last, the frontier is empty.
    """

    changes: tuple[tuple[Time, int], ...]


Event: TypeAlias = CapturedBatch | CapturedFrontier


def capture(stream: Stream[D], into: Callable[[Event], object], name: str = "capture") -> Stream[D]:
    """Calls `into(event)` with everything that happens on the stream on this worker; passes the records on.

    `into` may be a list's `append`, or the `write` of an EventWriter.
    """
    require_callable(into, name, "function of an event")

    def make(context: Context) -> Callable[[InputPort[D], OutputPort[D]], None]:
        last: set[Time] = {stream.scope.domain.minimum}

        def step(input: InputPort, output: OutputPort) -> None:
            nonlocal last
            for message, batch in input:
                into(CapturedBatch(message.time, batch if isinstance(batch, Columns) else tuple(batch)))
                output.give(message, batch)
            now = set(input.frontier)
            if now != last:
                changes = [(t, +1) for t in sorted(now - last)] + [(t, -1) for t in sorted(last - now)]
                into(CapturedFrontier(tuple(changes)))
                last = now

        return step

    return unary(stream, name, make, frontier=True)


def replay(scope: Scope, captures: tuple[Iterable[Event], ...], name: str = "replay") -> Stream[Record]:
    """The captured streams, one after another step by step, on this worker."""
    for events in captures:
        if not isinstance(events, Iterable):
            raise ConstructionError(f"{name} needs captured events, one iterable per capture, and got {events!r}")

    def make(context: Context) -> Step:
        context.stay("read the captures as a source with partitions (dataflow.sources.captures)")
        start, output = context.capability(), context.outputs[0]
        context.spawn(lambda: _replay_all(start, output, captures, scope.dataflow, name))
        return lambda: None

    builder = OperatorBuilder(scope, name)
    builder.add_output(initial=True)
    (out,) = builder.build(make)
    return out


async def _replay_all(
    start: Capability, output: OutputPort, captures: tuple[Iterable[Event], ...], dataflow: Dataflow, name: str
) -> None:
    await dataflow.started.wait()
    if not dataflow.built:
        return
    players = [_Player(start.clone(), output, iter(events), name) for events in captures]
    start.drop()
    while players:
        players = [player for player in players if player.play_one()]
        await trio.lowlevel.checkpoint()


class _Player:
    """Replays one captured stream: holds a capability for each time in its frontier."""

    def __init__(self, start: Capability, output: OutputPort, events: Iterator[Event], name: str) -> None:
        self._held: dict[Time, Capability] = {start.time: start}
        self._output = output
        self._events = events
        self._name = name

    def play_one(self) -> bool:
        """Does the next event; False when there are none left."""
        event = next(self._events, None)
        if event is None:
            for capability in self._held.values():
                capability.drop()
            return False
        if isinstance(event, CapturedBatch):
            records = event.records if isinstance(event.records, Columns) else list(event.records)
            self._output.give(self._below(event.time), records, event.time)
        elif isinstance(event, CapturedFrontier):
            for time, diff in sorted(
                event.changes, key=lambda change: -change[1]
            ):  # a time that joins is delayed from one that leaves
                self._change(time, diff)
        else:
            raise DataflowError(f"{self._name}: {event!r} is not an event: pass each capture as an argument of its own")
        return True

    def _change(self, time: Time, diff: int) -> None:
        if diff > 0:
            self._held[time] = self._below(time).delayed(time)
        elif time in self._held:
            self._held.pop(time).drop()
        else:
            raise DataflowError(
                f"{self._name}: the capture is damaged: {time!r} leaves the frontier without being in it"
            )

    def _below(self, time: Time) -> Capability:
        order = self._output.domain.less_equal
        for held, capability in self._held.items():
            if order(held, time):
                return capability
        raise DataflowError(
            f"{self._name}: the capture is damaged: {time!r} comes after the frontier {list(self._held)!r}"
        )


_MAGIC = b"megaphone-events 1\n"
_PREFIX = struct.Struct("<II")  # length and checksum of an event


class EventWriter:
    """Writes captured events to a binary file, one after the other; pass its `write` to capture."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._file.write(_MAGIC)

    def write(self, event: Event) -> None:
        """Appends one event."""
        parts = (0, event.time, event.records) if isinstance(event, CapturedBatch) else (1, event.changes)
        frame = codec.encode(parts)
        self._file.write(_PREFIX.pack(len(frame), zlib.crc32(frame)) + frame)


def read_events(file: BinaryIO) -> Iterator[Event]:
    """The events that an EventWriter wrote.

    DataflowError for a file that is damaged or was cut off, after its last whole event.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise DataflowError("this is not a file of captured events")
    open_times = 1  # a stream starts with one time in its frontier, and ends with none
    while header := file.read(_PREFIX.size):
        if len(header) < _PREFIX.size:
            raise DataflowError("the captured file ends in the middle of an event")
        event = _read_event(file, *_PREFIX.unpack(header))
        if isinstance(event, CapturedFrontier):
            open_times += sum(diff for _, diff in event.changes)
        yield event
    if open_times:
        raise DataflowError("the captured file ends before its stream does: it was cut off, or is still being written")


def _read_event(file: BinaryIO, size: int, checksum: int) -> Event:
    frame = file.read(size)
    if len(frame) < size:
        raise DataflowError("the captured file ends in the middle of an event")
    if zlib.crc32(frame) != checksum:
        raise DataflowError("the captured file is damaged: a checksum is wrong")
    try:
        kind, *parts = codec.decode(frame)
        return CapturedBatch(*parts) if kind == 0 else CapturedFrontier(*parts)
    except (ValueError, TypeError) as error:
        raise DataflowError(f"the captured file is damaged: {error}") from None
