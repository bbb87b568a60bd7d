"""Sources: iterables and asynchronous iterables as streams, paced so that the dataflow is never far behind."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.operator import Step
from dataflow.channels.pact import ArrowStream, Batch
from dataflow.channels.ports import OutputPort
from dataflow.columns import Columns
from dataflow.columns.frames import is_frame, pieces
from dataflow.errors import ConstructionError, TimeError
from dataflow.operators.inputs import to_batch
from dataflow.run.completion import Completion
from dataflow.time.durations import Duration, seconds
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream


Items: TypeAlias = Iterable[Record] | AsyncIterable[Record] | ArrowStream
_ROWS = 1 << 16  # of a frame that is sent at each time, unless told


def source(
    scope: Scope,
    records: Items | Callable[[], Items],
    *,
    batch: int | None,
    ahead: int,
    every: float | Duration | None,
    timed: bool,
    name: str,
) -> Stream[Record]:
    """The records of an iterable (or of what a function without arguments returns), on this worker.

    `batch` of them are sent at each time 0, 1, 2, ...: 1024 unless given, and one with `every` or for an asynchronous
    iterable, which may make us wait for the next. With `timed`, items are (time, records) pairs, each time at or
    after the one before.

    `ahead`: so many times may be outstanding anywhere in the dataflow before the source waits. `every`: the source
    starts a new time each so many seconds (or a duration such as "250ms"), and catches up when it is late.

    A frame (or a mapping of names to columns) in the place of the iterable is sent as columns, 65,536 rows at each
    time unless `batch` says otherwise. A frame among the items is a batch of columns, at a time of its own; if it has
    more than `batch` rows, at several.
    """
    items = records() if callable(records) else records
    frame = isinstance(items, Mapping) or (is_frame(items) and not isinstance(items, Iterator))
    if frame:
        if timed:
            raise ConstructionError(f"{name}: with timed=True give (time, columns) pairs, not columns alone")
        batch = _ROWS if batch is None else batch
        items = [Columns(items)]
    if not isinstance(items, Iterable | AsyncIterable):
        raise ConstructionError(f"{name} needs an iterable or an asynchronous iterable, not {items!r}")
    every = None if every is None else _seconds(every, name)
    counts = [ahead] if batch is None else [ahead, batch]
    if any(type(count) is not int or count < 1 for count in counts) or (every is not None and not every >= 0):
        raise ConstructionError(f"{name}: ahead and batch must be at least 1, and every not negative")
    _require_root(scope, timed, name)
    size = batch or (1 if isinstance(items, AsyncIterable) or every is not None else 1024)
    reader = Reader(items)
    epochs = _Timed(reader) if timed else _Counted(reader, size, batch)

    def make(context: Context) -> Step:
        context.stay("give scope.source a source with partitions (dataflow.sources), or feed an input from main")
        run = _Source(scope, context, epochs, ahead, every, name)
        context.spawn(run.run)
        return lambda: None

    builder = OperatorBuilder(scope, name)
    builder.add_output(initial=True)
    (out,) = builder.build(make)
    return out


def _require_root(scope: Scope, timed: bool, name: str) -> None:
    root = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
    if scope.parent is not None or not (timed or isinstance(root, Integers)):
        raise ConstructionError(
            f"{name} must be in the root of a dataflow; where times are not integers, use timed=True"
        )


def _seconds(every: float | Duration, name: str) -> float:
    try:
        return seconds(every)
    except (TypeError, ValueError) as error:
        raise ConstructionError(f"{name}: every={every!r}: {error}") from None


class Reader:
    """The items of an iterable or asynchronous iterable, one by one; an asynchronous generator is closed at the end."""

    def __init__(self, items: Iterable[Record] | AsyncIterable[Record]) -> None:
        self._async = aiter(items) if isinstance(items, AsyncIterable) else None
        self._sync = None if isinstance(items, AsyncIterable) else iter(items)

    async def next(self, end: object) -> Record:
        """The next item, or `end`."""
        if self._sync is not None:
            return next(self._sync, end)
        assert self._async is not None
        return await anext(self._async, end)

    async def close(self) -> None:
        """Lets a generator run its `finally` clauses now, and not whenever it is collected."""
        close = getattr(self._async, "aclose", None)
        if close is not None:
            with trio.move_on_after(1, shield=True):  # also when the worker is being cancelled, but not for ever
                await close()


_END = object()


@dataclass(frozen=True, slots=True)
class _Epoch:
    """Records to send at a time; the source may advance to `after` once they are sent."""

    time: Time
    records: Batch
    after: Time


class _Timed:
    """(time, records) pairs as they come."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    async def next(self) -> _Epoch | None:
        """The next epoch, or None at the end."""
        item = await self.reader.next(_END)
        if item is _END:
            return None
        try:
            time, records = item
        except (TypeError, ValueError):
            raise TypeError(f"a timed source needs (time, records) pairs, and got {item!r}") from None
        return _Epoch(time, to_batch(records), time)


class _Counted:
    """So many records at each of the times 0, 1, 2, ...; frames among them have times of their own."""

    def __init__(self, reader: Reader, size: int, rows: int | None) -> None:
        self.reader = reader
        self._size = size
        self._rows = rows  # of a frame, at each time
        self._pieces: Iterator[Columns] = iter(())  # of a frame that came, after the records before it
        self._time = 0

    async def next(self) -> _Epoch | None:
        """The next epoch, or None at the end."""
        while (batch := next(self._pieces, None)) is None:
            records, frame = await self._gather()
            if frame is not _END:
                self._pieces = pieces(frame, self._rows)
            if records:
                return self._epoch(records)
            if frame is _END:
                return None
        return self._epoch(batch)

    async def _gather(self) -> tuple[list[Record], Record]:
        """Records for one time, and the frame that came after them, if one did."""
        batch: list[Record] = []
        while len(batch) < self._size and (item := await self.reader.next(_END)) is not _END:
            if is_frame(item):
                return batch, item
            batch.append(item)
        return batch, _END

    def _epoch(self, batch: Batch) -> _Epoch:
        self._time += 1
        return _Epoch(self._time - 1, batch, self._time)


class _Source:
    """The task behind a source."""

    def __init__(
        self, scope: Scope, context: Context, epochs: _Timed | _Counted, ahead: int, every: float | None, name: str
    ) -> None:
        self._epochs = epochs
        self._ahead = ahead
        self._every = every
        self._name = name
        self._clock = context.clock
        self._dataflow = scope.dataflow
        self._capability: Capability = context.capability()
        self._output: OutputPort = context.outputs[0]
        self._completion = Completion(scope.dataflow)
        self._sent: deque[Time] = deque()  # the last `ahead` distinct times

    async def run(self) -> None:
        """Sends epoch after epoch, as fast as the pace allows."""
        try:
            await self._send_all()
        except Exception as error:
            error.add_note(f"after time {self._capability.time!r}")
            raise
        finally:
            await self._epochs.reader.close()
        self._capability.drop()

    async def _send_all(self) -> None:
        if not await self._completion.wait_built():
            return
        start = self._clock.now()
        slot = 0
        while (epoch := await self._epochs.next()) is not None:
            time = self._output.domain.check(epoch.time)
            self._require_forward(time)
            if not self._sent or self._sent[-1] != time:
                self._capability.downgrade(time)  # before the wait: what is before this time may depend on it
                await self._pace(start, slot)
                slot += 1
                self._sent.append(time)
            await self._dataflow.room()
            if self._dataflow.dropped:
                return
            self._output.give(self._capability, epoch.records)
            self._capability.downgrade(epoch.after)

    async def _pace(self, start: float, slot: int) -> None:
        if self._every is not None:
            await self._clock.sleep_until(start + slot * self._every)
        if len(self._sent) >= self._ahead:
            await self._completion.wait_passed(self._sent.popleft())

    def _require_forward(self, time: Time) -> None:
        if not self._output.domain.less_equal(self._capability.time, time):
            raise TimeError(f"{self._name} is at {self._capability.time!r} and cannot go back to {time!r}")
