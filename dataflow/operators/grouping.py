"""Operators that gather the records of a key at a time: nothing is remembered from one time to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from dataflow.build.builder import Context, binary, require_callable, unary_notify
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import Keeps
from dataflow.build.notificator import Notificator
from dataflow.channels.blame import last_of, name_key, name_last, name_time
from dataflow.channels.pact import Exchange, Pact, ToWorker
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
K = TypeVar("K")  # of keys
S = TypeVar("S")  # of states


def _gather(
    stream: Stream[D],
    name: str,
    pact: Pact | None,
    absorb: Callable[[dict[K, S], list[D]], None],
    emit: Callable[[dict[K, S]], list[E]],
) -> Stream[E]:
    """One dictionary per time: `absorb(dictionary, batch)` as batches arrive, `emit(dictionary)` when the time is
    complete. (Columns are read as a list of rows.)"""
    states: dict[Time, dict[K, S]] = {}

    def on_batch(message: MessageCapability, batch: list[D], output: OutputPort[E], notificator: Notificator) -> None:
        time = message.time
        if time not in states:
            states[time] = {}
            notificator.notify_at(message.retain())
        try:
            absorb(states[time], batch)
        except Exception as error:
            name_time(error, time)
            raise

    def on_notify(capability: Capability, output: OutputPort[E], notificator: Notificator) -> None:
        try:
            results = emit(states.pop(capability.time))
        except Exception as error:
            name_time(error, capability.time)
            raise
        output.give(capability, results)

    return unary_notify(stream, name, on_batch, on_notify, pact=pact, keeps=Keeps.NOTHING)


def aggregate(
    stream: Stream[D],
    key: Callable[[D], K],
    initial: Callable[[], S],
    fold: Callable[[S, D], S],
    emit: Callable[[K, S], E] | None = None,
    name: str = "aggregate",
) -> Stream[E] | Stream[tuple[K, S]]:
    """For each key at each time, `initial()` folded over its records by `state = fold(state, record)`.

    When the time is complete, `emit(key, state)` comes out for each key, or (key, state).
    """
    for function, role in ((key, "key"), (initial, "initial state (a function without arguments)"), (fold, "fold")):
        require_callable(function, name, role)

    def absorb(states: dict[K, S], batch: list[D]) -> None:
        records = iter(batch)
        try:
            for record in records:
                k = key(record)
                states[k] = fold(states[k] if k in states else initial(), record)
        except Exception as error:
            name_last(error, batch, records)
            raise

    def pairs(states: dict[K, S]) -> list[tuple[K, S]]:
        return list(states.items())

    if emit is None:
        return _gather(stream, name, Exchange(key), absorb, pairs)
    require_callable(emit, name, "emit")

    def emitted(states: dict[K, S]) -> list[E]:
        items = iter(states.items())
        try:
            return [emit(k, state) for k, state in items]
        except Exception as error:
            _name_last_key(error, states, items)
            raise

    return _gather(stream, name, Exchange(key), absorb, emitted)


def reduce(
    stream: Stream[D],
    key: Callable[[D], K],
    function: Callable[[K, list[D]], Iterable[E]],
    name: str = "reduce",
) -> Stream[E]:
    """For each key at each time, every item of `function(key, records)`, when the time is complete."""
    require_callable(key, name, "key")
    require_callable(function, name, "function of a key and its records")

    def absorb(groups: dict[K, list[D]], batch: list[D]) -> None:
        records = iter(batch)
        try:
            for record in records:
                groups.setdefault(key(record), []).append(record)
        except Exception as error:
            name_last(error, batch, records)
            raise

    def finish(groups: dict[K, list[D]]) -> list[E]:
        items = iter(groups.items())
        try:
            return [result for k, records in items for result in function(k, records)]
        except Exception as error:
            _name_last_key(error, groups, items)
            raise

    return _gather(stream, name, Exchange(key), absorb, finish)


def count(
    stream: Stream[D], key: Callable[[D], K] | None = None, name: str = "count"
) -> Stream[int] | Stream[tuple[K, int]]:
    """(key, number of records) for each key at each time; without a key, the number of records at each time.

    The latter comes out on worker 0, after each worker has counted its own records. A time without records has no
    count.
    """
    if key is not None:
        return count_by(stream, key, name)

    def tally(counts: dict[None, int], batch: list[D]) -> None:
        counts[None] = counts.get(None, 0) + len(batch)

    def add(counts: dict[None, int], batch: list[int]) -> None:
        counts[None] = counts.get(None, 0) + sum(batch)

    def finish(counts: dict[None, int]) -> list[int]:
        return list(counts.values())

    local = _gather(stream, f"{name} (local)", None, tally, finish)
    return _gather(local, name, ToWorker(0), add, finish)


def count_by(stream: Stream[D], key: Callable[[D], K], name: str) -> Stream[tuple[K, int]]:
    """(key, number of records) for each key at each time."""
    counts: Stream[tuple[K, int]] = aggregate(stream, key, int, lambda n, _: n + 1, name=name)
    return counts


def join(
    left: Stream[D],
    right: Stream[E],
    left_key: Callable[[D], K],
    right_key: Callable[[E], K],
    emit: Callable[[K, D, E], F] | None = None,
    name: str = "join",
) -> Stream[F] | Stream[tuple[K, D, E]]:
    """For each pair of records with equal keys at equal times, `emit(key, left, right)`, or the tuple of those three.

    Pairs come out as soon as both records are there; records are forgotten when their time is complete.
    """
    require_callable(left_key, name, "key of the left stream")
    require_callable(right_key, name, "key of the right stream")
    if emit is not None:
        require_callable(emit, name, "emit")

    def make(context: Context) -> Callable[[InputPort[D], InputPort[E], OutputPort], None]:
        tables: dict[Time, tuple[dict[K, list[D]], dict[K, list[E]]]] = {}
        due = context.notificator()

        def tables_of(message: MessageCapability) -> tuple[dict[K, list[D]], dict[K, list[E]]]:
            if message.time not in tables:
                tables[message.time] = ({}, {})
                due.notify_at(message.retain())
            return tables[message.time]

        def send(message: MessageCapability, pairs: list[tuple[K, D, E]], output: OutputPort) -> None:
            output.give(message, pairs if emit is None else _emit_pairs(emit, pairs, message.time))

        def step(first: InputPort[D], second: InputPort[E], output: OutputPort) -> None:
            for message, lefts in first:
                send(message, _match_left(lefts, left_key, *tables_of(message), message.time), output)
            for message, rights in second:
                send(message, _match_right(rights, right_key, *tables_of(message), message.time), output)
            for capability in due:
                del tables[capability.time]

        return step

    pacts = (Exchange(left_key), Exchange(right_key))
    return binary(left, right, name, make, pacts=pacts, frontier=True, keeps=Keeps.NOTHING)


def _match_left(
    batch: list[D], key: Callable[[D], K], lefts: dict[K, list[D]], rights: dict[K, list[E]], time: Time
) -> list[tuple[K, D, E]]:
    """Adds records to those of the left; their pairs with those of the right."""
    pairs = []
    records = iter(batch)
    try:
        for record in records:
            k = key(record)
            lefts.setdefault(k, []).append(record)
            for other in rights.get(k, ()):
                pairs.append((k, record, other))
    except Exception as error:
        name_last(error, batch, records)
        name_time(error, time)
        raise
    return pairs


def _match_right(
    batch: list[E], key: Callable[[E], K], lefts: dict[K, list[D]], rights: dict[K, list[E]], time: Time
) -> list[tuple[K, D, E]]:
    """Adds records to those of the right; their pairs with those of the left."""
    pairs = []
    records = iter(batch)
    try:
        for record in records:
            k = key(record)
            rights.setdefault(k, []).append(record)
            for other in lefts.get(k, ()):
                pairs.append((k, other, record))
    except Exception as error:
        name_last(error, batch, records)
        name_time(error, time)
        raise
    return pairs


def _emit_pairs(emit: Callable[[K, D, E], F], pairs: list[tuple[K, D, E]], time: Time) -> list[F]:
    left = iter(pairs)
    try:
        return [emit(*pair) for pair in left]
    except Exception as error:
        name_last(error, pairs, left)
        name_time(error, time)
        raise


def _name_last_key(error: Exception, groups: dict[K, S], left: Iterator[tuple[K, S]]) -> None:
    """Names the key whose state, or records, an iterator over the groups gave last."""
    for key in last_of(groups, left):
        name_key(error, key)
