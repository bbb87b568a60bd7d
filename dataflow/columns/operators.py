"""Operators on streams of columns: `stream.columns.map(...)` and so on. The unit of work is the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dataflow.build.builder import Context, binary, require_callable, unary, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import Keeps
from dataflow.build.notificator import Notificator
from dataflow.channels.blame import name_time
from dataflow.channels.pact import Pact
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.columns.grouping import Aggregate, Aggregates, match
from dataflow.columns.pact import ExchangeColumns, require_columns
from dataflow.columns.windows import END, Windows
from dataflow.columns.windows import windows as in_windows
from dataflow.errors import ConstructionError
from dataflow.time.durations import Duration
from dataflow.time.order import Time
from dataflow.time.timestamp import unit_of
from dataflow.values import Value

if TYPE_CHECKING:
    from dataflow.build.stream import Stream


class ColumnOperators:
    """The operators on a stream's columns. `function` always means a function of a batch (`Columns`)."""

    def __init__(self, stream: Stream[Value]) -> None:
        self._stream = stream

    def map(self, function: Callable[[Columns], Value], name: str = "map") -> Stream[Columns]:
        """`function(batch)`: columns in place of the batch's, as a mapping, a frame or `Columns`."""
        return self._batches(name, function, lambda batch: _as_columns(function(batch), name))

    def with_columns(
        self, function: Callable[[Columns], Mapping[str, Value]], name: str = "with_columns"
    ) -> Stream[Columns]:
        """The batch with the columns of `function(batch)` added."""
        return self._batches(name, function, lambda batch: batch.with_columns(function(batch)))

    def filter(self, function: Callable[[Columns], Value], name: str = "filter") -> Stream[Columns]:
        """The rows for which the mask `function(batch)` is true."""
        return self._batches(name, function, lambda batch: batch.filter(function(batch)))

    def project(self, *names: str, name: str = "project") -> Stream[Columns]:
        """Only these columns, in this order."""
        return self._batches(name, len, lambda batch: batch.select(names))

    def exchange(self, *by: str, name: str = "exchange") -> Stream[Columns]:
        """Brings rows with equal values in these columns to the same worker."""
        if not by:
            raise ConstructionError(f"{name} needs the name of at least one column")
        return self._batches(name, len, lambda batch: batch, ExchangeColumns(by))

    def _batches(
        self, name: str, given: object, change: Callable[[Columns], Columns], pact: Pact | None = None
    ) -> Stream[Columns]:
        require_callable(given, name, "function of a batch")

        def step(input: InputPort, output: OutputPort) -> None:
            for message, batch in input:
                try:
                    changed = change(require_columns(batch, name))
                except Exception as error:
                    name_time(error, message.time)
                    raise
                output.give(message, changed)

        return unary(self._stream, name, lambda _: step, pact=pact, keeps=Keeps.NOTHING)

    def aggregate(
        self, by: str | Sequence[str] = (), *, name: str = "aggregate", **aggregates: Aggregate
    ) -> Stream[Columns]:
        """For each group at each time, one row: `aggregate("auction", bids="count", total=("sum", "price"))`.

        Each worker aggregates its own rows first; groups then meet on one worker.
        """
        plan = Aggregates(_names(by), aggregates)
        partial = self._batches(f"{name} (local)", len, plan.partial)

        def finish(parts: list[Columns], time: Time) -> Columns:
            return plan.finish(plan.merge(parts), f"{name} at {time!r}")

        return _gather(partial, name, ExchangeColumns(plan.by), finish)

    def gather(
        self, by: str | Sequence[str], function: Callable[[Columns], Value], name: str = "gather"
    ) -> Stream[Columns]:
        """`function(rows)` of all rows of a time that came to this worker; rows with equal keys come to one."""
        require_callable(function, name, "function of all rows of a time")
        pact = ExchangeColumns(_names(by))
        return _gather(self._stream, name, pact, lambda parts, _: _as_columns(function(Columns.concat(parts)), name))

    def join(
        self,
        other: Stream[Value],
        on: str | Sequence[str],
        other_on: str | Sequence[str] | None = None,
        name: str = "join",
    ) -> Stream[Columns]:
        """The pairs of rows with equal keys at equal times: the columns of both, without the other's key columns.

        A column of the other that has a name of this one's gets `_right` after it.
        """
        keys, other_keys = _names(on), _names(other_on if other_on is not None else on)
        if not keys or len(keys) != len(other_keys):
            raise ConstructionError(f"{name} needs as many key columns on either side: {keys} and {other_keys}")
        return _join(self._stream, other, keys, other_keys, name)

    def tumbling(
        self,
        time: str,
        size: int | Duration,
        by: str | Sequence[str] = (),
        *,
        name: str = "tumbling",
        **aggregates: Aggregate,
    ) -> Stream[Columns]:
        """Aggregates by window of `size`, as `sliding` does with a slide of the same length."""
        return self.sliding(time, size, size, by, name=name, **aggregates)

    def sliding(
        self,
        time: str,
        size: int | Duration,
        slide: int | Duration,
        by: str | Sequence[str] = (),
        *,
        name: str = "sliding",
        **aggregates: Aggregate,
    ) -> Stream[Columns]:
        """For each window [end - size, end), every `slide`, and each group in it: one row with `window_end`.

        `time` is a column of integers in the dataflow's own units, or of dates, moments or time spans, whose units are
        known and may differ from batch to batch. `size` and `slide` are durations ("10s", a timedelta), or numbers in
        the dataflow's units. A window comes out at the time of its end, once no record before that can come any more.
        """
        windows = Windows(name, time, size, slide, unit_of(self._stream.scope.domain))
        plan = Aggregates((END, *_names(by)), aggregates)
        return in_windows(self._stream, name, plan, windows)


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)


def _as_columns(value: object, name: str) -> Columns:
    if isinstance(value, Columns):
        return value
    if value is None:
        raise TypeError(f"{name}: the function returned nothing: it must return columns, such as {{'key': array}}")
    return Columns(value)


def _gather(
    stream: Stream[Value], name: str, pact: Pact, finish: Callable[[list[Columns], Time], Columns]
) -> Stream[Columns]:
    """Keeps the batches of each time, and gives `finish(batches, time)` when the time is complete."""
    waiting: dict[Time, list[Columns]] = {}

    def on_batch(message: MessageCapability, batch: Columns, output: OutputPort, notificator: Notificator) -> None:
        if message.time not in waiting:
            waiting[message.time] = []
            notificator.notify_at(message.retain())
        waiting[message.time].append(batch)

    def on_notify(capability: Capability, output: OutputPort, notificator: Notificator) -> None:
        output.give(capability, finish(waiting.pop(capability.time), capability.time))

    return unary_notify(stream, name, on_batch, on_notify, pact=pact, keeps=Keeps.NOTHING)


def _join(
    left: Stream[Value], right: Stream[Value], on: tuple[str, ...], right_on: tuple[str, ...], name: str
) -> Stream[Columns]:
    def make(context: Context) -> Callable[[InputPort, InputPort, OutputPort], None]:
        waiting: dict[Time, tuple[list[Columns], list[Columns]]] = {}
        due = context.notificator()

        def step(first: InputPort, second: InputPort, output: OutputPort) -> None:
            for side, input in enumerate((first, second)):
                for message, batch in input:
                    if message.time not in waiting:
                        waiting[message.time] = ([], [])
                        due.notify_at(message.retain())
                    waiting[message.time][side].append(batch)
            for capability in due:
                ours, theirs = waiting.pop(capability.time)
                if ours and theirs:
                    output.give(capability, _pairs(Columns.concat(ours), Columns.concat(theirs), on, right_on))

        return step

    pacts = (ExchangeColumns(on), ExchangeColumns(right_on))
    return binary(left, right, name, make, pacts=pacts, frontier=True, keeps=Keeps.NOTHING)


def _pairs(left: Columns, right: Columns, on: tuple[str, ...], right_on: tuple[str, ...]) -> Columns:
    left_rows, right_rows = match(left, right, on, right_on)
    ours = left.take(left_rows)
    others = right.select([name for name in right.names if name not in right_on]).take(right_rows)
    columns = ours.columns
    for name, column in others.columns.items():
        while name in columns:
            name += "_right"
        columns[name] = column
    return Columns.trusted(columns, len(left_rows))
