"""Operators that gather the records of a key at a time: nothing is remembered from one time to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dataflow.build.builder import Context, binary, require_callable, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.notificator import Notificator
from dataflow.channels.pact import Exchange, Pact, ToWorker
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream


def _gather(
    stream: Stream[Any],
    name: str,
    pact: Pact | None,
    absorb: Callable[[dict[Any, Any], Any], None],
    emit: Callable[[dict[Any, Any]], list[Any]],
) -> Stream[Any]:
    """One dictionary per time: `absorb(dictionary, batch)` as batches arrive, `emit(dictionary)` when the time is
    complete."""
    states: dict[Time, dict[Any, Any]] = {}

    def on_batch(message: MessageCapability, batch: Any, output: OutputPort, notificator: Notificator) -> None:
        time = message.time
        if time not in states:
            states[time] = {}
            notificator.notify_at(message.retain())
        absorb(states[time], batch)

    def on_notify(capability: Capability, output: OutputPort, notificator: Notificator) -> None:
        output.give(capability, emit(states.pop(capability.time)))

    return unary_notify(stream, name, on_batch, on_notify, pact=pact)


def aggregate(
    stream: Stream[Any],
    key: Callable[[Any], Any],
    initial: Callable[[], Any],
    fold: Callable[[Any, Any], Any],
    emit: Callable[[Any, Any], Any] | None = None,
    name: str = "aggregate",
) -> Stream[Any]:
    """For each key at each time, `initial()` folded over its records by `state = fold(state, record)`.

    When the time is complete, `emit(key, state)` comes out for each key, or (key, state).
    """
    for function, role in ((key, "key"), (initial, "initial state (a function without arguments)"), (fold, "fold")):
        require_callable(function, name, role)
    if emit is not None:
        require_callable(emit, name, "emit")

    def absorb(states: dict[Any, Any], batch: Any) -> None:
        for record in batch:
            k = key(record)
            states[k] = fold(states[k] if k in states else initial(), record)

    def finish(states: dict[Any, Any]) -> list[Any]:
        return list(states.items()) if emit is None else [emit(k, state) for k, state in states.items()]

    return _gather(stream, name, Exchange(key), absorb, finish)


def reduce(
    stream: Stream[Any],
    key: Callable[[Any], Any],
    function: Callable[[Any, list[Any]], Iterable[Any]],
    name: str = "reduce",
) -> Stream[Any]:
    """For each key at each time, every item of `function(key, records)`, when the time is complete."""
    require_callable(key, name, "key")
    require_callable(function, name, "function of a key and its records")

    def absorb(groups: dict[Any, Any], batch: Any) -> None:
        for record in batch:
            groups.setdefault(key(record), []).append(record)

    def finish(groups: dict[Any, Any]) -> list[Any]:
        return [result for k, records in groups.items() for result in function(k, records)]

    return _gather(stream, name, Exchange(key), absorb, finish)


def count(stream: Stream[Any], key: Callable[[Any], Any] | None = None, name: str = "count") -> Stream[Any]:
    """(key, number of records) for each key at each time; without a key, the number of records at each time.

    The latter comes out on worker 0, after each worker has counted its own records. A time without records has no
    count.
    """
    if key is not None:
        return aggregate(stream, key, int, lambda n, _: n + 1, name=name)

    def tally(counts: dict[Any, Any], batch: Any) -> None:
        counts[None] = counts.get(None, 0) + len(batch)

    def add(counts: dict[Any, Any], batch: Any) -> None:
        counts[None] = counts.get(None, 0) + sum(batch)

    def finish(counts: dict[Any, Any]) -> list[Any]:
        return list(counts.values())

    local = _gather(stream, f"{name} (local)", None, tally, finish)
    return _gather(local, name, ToWorker(0), add, finish)


def join(
    left: Stream[Any],
    right: Stream[Any],
    left_key: Callable[[Any], Any],
    right_key: Callable[[Any], Any],
    emit: Callable[[Any, Any, Any], Any] | None = None,
    name: str = "join",
) -> Stream[Any]:
    """For each pair of records with equal keys at equal times, `emit(key, left, right)`, or the tuple of those three.

    Pairs come out as soon as both records are there; records are forgotten when their time is complete.
    """
    require_callable(left_key, name, "key of the left stream")
    require_callable(right_key, name, "key of the right stream")
    if emit is not None:
        require_callable(emit, name, "emit")

    def make(context: Context) -> Callable[[InputPort, InputPort, OutputPort], None]:
        tables: dict[Time, tuple[dict[Any, list[Any]], dict[Any, list[Any]]]] = {}
        due = context.notificator()

        def step(first: InputPort, second: InputPort, output: OutputPort) -> None:
            for side, input, key in ((0, first, left_key), (1, second, right_key)):
                for message, batch in input:
                    if message.time not in tables:
                        tables[message.time] = ({}, {})
                        due.notify_at(message.retain())
                    mine, others = tables[message.time][side], tables[message.time][1 - side]
                    output.give(message, _matches(batch, key, mine, others, side, emit))
            for capability in due:
                del tables[capability.time]

        return step

    return binary(left, right, name, make, pacts=(Exchange(left_key), Exchange(right_key)), frontier=True)


def _matches(
    batch: Any,
    key: Callable[[Any], Any],
    mine: dict[Any, list[Any]],
    others: dict[Any, list[Any]],
    side: int,
    emit: Callable[[Any, Any, Any], Any] | None,
) -> list[Any]:
    pairs = []
    for record in batch:
        k = key(record)
        mine.setdefault(k, []).append(record)
        for other in others.get(k, ()):
            pairs.append((k, record, other) if side == 0 else (k, other, record))
    return pairs if emit is None else [emit(*pair) for pair in pairs]
