"""Native stateful operators on columns: an exchange, and a table that outlives times.

Their signatures are those of `megaphone` without the control stream: a query that takes its operators as arguments runs
on either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dataflow.builder import Context, OperatorBuilder
from dataflow.capability import Capability, MessageCapability
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.columns.batches import KeyedBatches
from dataflow.columns.fold import Fold
from dataflow.columns.joining import KeyedJoin
from dataflow.columns.keyed import Keyed, Side
from dataflow.columns.pacts import ExchangeColumns, require_columns
from dataflow.columns.schema import Schema
from dataflow.columns.table import Dense
from dataflow.errors import ConstructionError
from dataflow.operator import Step
from dataflow.order import Time

if TYPE_CHECKING:
    from dataflow.stream import Stream

_SEGMENTS = 256  # of a native table: they make growth gradual, and mean nothing else


class Host:
    """The step of a stateful operator: applies the records of a time, and those post-dated to it, once it is complete.

    At a time the inputs are applied in their order, the first one's records before the second's; then what was
    post-dated.
    """

    def __init__(self, context: Context, keyed: Any, inputs: Sequence[InputPort]) -> None:
        self._keyed = keyed
        self._inputs = inputs
        self._watched = list(context.inputs)  # a time is complete when none of these can deliver it
        self._output: OutputPort = context.outputs[0]
        self._waiting: dict[Time, tuple[Capability, list[list[Columns]]]] = {}
        self._hold: Capability | None = None  # invariant: at the least pending time, if anything is pending

    def step(self) -> None:
        """Takes what has arrived, then applies what is complete, in the order of time."""
        self._gather()
        self._hold_least_pending()
        while (time := self._next_time()) is not None and not any(port.could_see(time) for port in self._watched):
            self._apply_time(time)

    def _gather(self) -> None:
        for number, port in enumerate(self._inputs):
            for message, batch in port:
                self.saw(message)
                if message.time not in self._waiting:
                    self._waiting[message.time] = (message.retain(), [[] for _ in self._inputs])
                self._waiting[message.time][1][number].append(require_columns(batch, self._keyed.name))

    def _next_time(self) -> Time | None:
        least: Time | None = self._keyed.least_pending
        for time in self._waiting:
            if least is None or time < least:
                least = time
        return least

    def _apply_time(self, time: Time) -> None:
        if time in self._waiting:
            now, batches = self._waiting.pop(time)
        else:
            assert self._hold is not None
            now, batches = self._hold.clone(), []
        for out in self.apply(time, batches):
            self._output.give(now, out)
        self._hold_from(now)
        now.drop()

    def saw(self, message: MessageCapability) -> None:
        """A message is being taken. For hosts that do more."""

    def apply(self, time: Time, batches: list[list[Columns]]) -> list[Columns]:
        """Applies everything at a time; what comes out."""
        results: list[Columns] = self._keyed.run(time, batches)
        return results

    def _hold_from(self, now: Capability | MessageCapability) -> None:
        """Keeps the right to send at the least pending time, which may be new."""
        least = self._keyed.least_pending
        if least is not None and (self._hold is None or least < self._hold.time):
            later = now.delayed(least)
            if self._hold is not None:
                self._hold.drop()
            self._hold = later
        self._hold_least_pending()

    def _hold_least_pending(self) -> None:
        """What nobody waits for here any longer is let go."""
        least = self._keyed.least_pending
        if self._hold is not None and least is None:
            self._hold.drop()
            self._hold = None
        elif self._hold is not None and least is not None and self._hold.time < least:
            self._hold.downgrade(least)


def state_machine(
    stream: Stream[Any],
    *,
    key: str,
    value: str | Sequence[str] | None = None,
    fold: Fold,
    due: Fold | None = None,
    order: Sequence[str] = (),
    keys: Dense | None = None,
    name: str = "state_machine",
) -> Stream[Columns]:
    """State by key over a stream of columns: `fold` for each record, `due` for what it post-dates.

    `order`: columns by which the records of one time are sorted first; without it their order is not defined.
    """
    return _stateful((stream,), (Side(key, value, fold, order),), due, keys, name)


def binary(
    left: Stream[Any],
    right: Stream[Any],
    *,
    key: str,
    right_key: str | None = None,
    value: str | Sequence[str] | None = None,
    right_value: str | Sequence[str] | None = None,
    fold: Fold,
    right_fold: Fold,
    due: Fold | None = None,
    keys: Dense | None = None,
    name: str = "binary",
) -> Stream[Columns]:
    """Two inputs over one state, in the order of times; at one time the left one's records come first."""
    sides = (Side(key, value, fold), Side(right_key or key, right_value, right_fold))
    return _stateful((left, right), sides, due, keys, name)


def unary(
    stream: Stream[Any],
    *,
    key: str,
    fold: Callable[..., Any],
    state: Schema,
    pending: Schema | None = None,
    keys: Dense | None = None,
    name: str = "unary",
) -> Stream[Columns]:
    """State by key that a function of whole batches changes: `fold(time, batch, state, notificator)`. See `batches`."""
    return native((stream,), (key,), KeyedBatches(name, (key,), fold, state, pending, _SEGMENTS, keys), name)


def join(
    left: Stream[Any],
    right: Stream[Any],
    *,
    key: str,
    right_key: str | None = None,
    value: Sequence[str] = (),
    right_value: Sequence[str] = (),
    unique: str | None = None,
    name: str = "join",
) -> Stream[Columns]:
    """Every pair of records with equal keys, whenever they come: `key` and the value columns of both. See `joining`."""
    by = (key, right_key or key)
    return native((left, right), by, KeyedJoin(name, by, (value, right_value), unique, _SEGMENTS), name)


def _stateful(
    streams: Sequence[Stream[Any]], sides: Sequence[Side], due: Fold | None, dense: Dense | None, name: str
) -> Stream[Columns]:
    return native(streams, [side.key for side in sides], Keyed(name, sides, due, _SEGMENTS, dense), name)


def native(streams: Sequence[Stream[Any]], keys: Sequence[str], keyed: Any, name: str) -> Stream[Columns]:
    """An operator that hosts `keyed`, behind an exchange by the key of each stream."""
    scope = streams[0].scope
    if not scope.domain.total:
        raise ConstructionError(f"{name}: timestamps must be totally ordered, and those of {scope.title} are not")
    builder = OperatorBuilder(scope, name)
    for stream, key in zip(streams, keys, strict=True):
        builder.add_input(stream, ExchangeColumns((key,)))
    builder.add_output()

    def make(context: Context) -> Step:
        step: Callable[[], None] = Host(context, keyed, context.inputs).step
        return step

    (out,) = builder.build(make, frontier=True)
    return out
