"""Operators that look at one record at a time, or at none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder, require_callable, unary
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.blame import name_last, name_time
from dataflow.channels.pact import Batch, Broadcast, Exchange, Pact
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")
E = TypeVar("E")


def _batches(
    stream: Stream[D], name: str, function: Callable[[list[D]], Collection[E] | Columns], pact: Pact | None = None
) -> Stream[E]:
    """An operator that turns each batch into another, at the same time. (Columns are read as a list of rows.)"""

    def step(input: InputPort[D], output: OutputPort[E]) -> None:
        for message, batch in input:
            try:
                result = function(batch)
            except Exception as error:
                name_time(error, message.time)
                raise
            output.give(message, result)

    return unary(stream, name, lambda _: step, pact=pact, keeps=Keeps.NOTHING)


def map(stream: Stream[D], function: Callable[[D], E], name: str = "map") -> Stream[E]:
    """`function(record)` for each record."""
    require_callable(function, name, "function of a record")
    return _batches(stream, name, lambda batch: _each(function, batch))


def _each(function: Callable[[D], E], batch: Collection[D]) -> list[E]:
    """The function of each record. What it raises names the record."""
    records = iter(batch)
    try:
        return [function(record) for record in records]
    except Exception as error:
        name_last(error, batch, records)
        raise


def flat_map(stream: Stream[D], function: Callable[[D], Iterable[E]], name: str = "flat_map") -> Stream[E]:
    """Every item of `function(record)`, for each record."""
    require_callable(function, name, "function of a record")
    chain = itertools.chain.from_iterable

    def flat(batch: list[D]) -> list[E]:
        results = iter(_each(function, batch))
        try:
            return list(chain(results))
        except Exception as error:  # in a generator, which runs only now
            name_last(error, batch, results)
            raise

    return _batches(stream, name, flat)


def filter(stream: Stream[D], predicate: Callable[[D], object], name: str = "filter") -> Stream[D]:
    """The records for which `predicate(record)` is true."""
    require_callable(predicate, name, "predicate")

    def keep(batch: list[D] | Columns) -> list[D] | Columns:
        records: Iterator[Record] = iter(batch)
        try:
            if isinstance(batch, Columns):  # columns stay columns
                return batch.filter(np.fromiter((bool(predicate(row)) for row in records), np.bool_, len(batch)))
            return [record for record in records if predicate(record)]
        except Exception as error:
            name_last(error, batch, records)
            raise

    return _batches(stream, name, keep)


def inspect_batch(
    stream: Stream[D],
    function: Callable[[Time, Columns], object] | Callable[[Time, list[D]], object],
    name: str = "inspect_batch",
) -> Stream[D]:
    """Calls `function(time, batch)` for each batch, and passes it on."""
    require_callable(function, name, "function of a time and a batch")

    def step(input: InputPort, output: OutputPort) -> None:
        for message, batch in input:
            try:
                function(message.time, batch)
            except Exception as error:
                name_time(error, message.time)
                raise
            output.give(message, batch)

    return unary(stream, name, lambda _: step, keeps=Keeps.NOTHING)


def inspect(stream: Stream[D], function: Callable[[Time, D], object], name: str = "inspect") -> Stream[D]:
    """Calls `function(time, record)` for each record, and passes it on."""
    require_callable(function, name, "function of a time and a record")

    def look(time: Time, batch: Collection[D]) -> None:
        records = iter(batch)
        try:
            for record in records:
                function(time, record)
        except Exception as error:
            name_last(error, batch, records)
            raise

    return inspect_batch(stream, look, name)


def exchange(stream: Stream[D], key: Callable[[D], object], name: str = "exchange") -> Stream[D]:
    """Brings records with equal `key(record)` to the same worker."""
    return _batches(stream, name, lambda batch: batch, Exchange(key))


def broadcast(stream: Stream[D], name: str = "broadcast", pact: Broadcast | None = None) -> Stream[D]:
    """Brings every record to every worker."""
    return _batches(stream, name, lambda batch: batch, pact or Broadcast())


def concat(scope: Scope, streams: tuple[Stream[D], ...], name: str = "concat") -> Stream[D]:
    """All records of several streams."""
    if not streams:
        raise ConstructionError(f"{name} needs at least one stream")
    builder = OperatorBuilder(scope, name)
    for stream in streams:
        builder.add_input(stream)
    builder.add_output()

    def make(context: Context) -> Step:
        inputs, (output,) = context.inputs, context.outputs

        def step() -> None:
            for input in inputs:
                if input.queue:
                    for message, batch in input:
                        output.give(message, batch)

        return step

    (out,) = builder.build(make, keeps=Keeps.NOTHING)
    return out


def partition(stream: Stream[D], parts: int, route: Callable[[D], int], name: str = "partition") -> list[Stream[D]]:
    """`parts` streams; a record goes to the one that `route(record)` names: 0, 1, ..., parts - 1."""
    require_callable(route, name, "route")
    if parts < 1:
        raise ConstructionError(f"{name} needs at least one part, not {parts}")
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    for _ in range(parts):
        builder.add_output()

    def make(context: Context) -> Step:
        (input,), outputs = context.inputs, context.outputs

        def step() -> None:
            for message, batch in input:
                try:
                    shares = _shares(batch, parts, route, name)
                except Exception as error:
                    name_time(error, message.time)
                    raise
                for output, share in zip(outputs, shares, strict=True):
                    output.give(message, share)

        return step

    return builder.build(make, keeps=Keeps.NOTHING)


def _shares(batch: Batch, parts: int, route: Callable[[Record], int], name: str) -> Sequence[Batch]:
    """What goes to each part of a partition: columns of columns, rows of rows."""
    shares: list[list[Record]] = [[] for _ in range(parts)]
    numbers = []
    records = iter(batch)
    try:
        for record in records:
            part = route(record)
            if not 0 <= part < parts:
                raise ValueError(f"{name} has parts 0 to {parts - 1}; its route says {part!r} for {record!r}")
            shares[part].append(record)
            numbers.append(part)
    except Exception as error:
        name_last(error, batch, records)
        raise
    return batch.divide(numbers, parts) if isinstance(batch, Columns) else shares


def branch(stream: Stream[D], predicate: Callable[[D], object], name: str = "branch") -> tuple[Stream[D], Stream[D]]:
    """Two streams: the records for which `predicate(record)` is true, and the others."""
    require_callable(predicate, name, "predicate")
    matching, others = partition(stream, 2, lambda record: 0 if predicate(record) else 1, name)
    return matching, others
