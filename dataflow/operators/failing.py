"""Records that a function of the program's cannot process: a second stream has them, with what was raised.

`errors="raise"`, as everywhere, ends the computation at the first. `errors="stream"` gives a `CheckedStream`, whose
`errors` has (record, text) of those that failed. They are counted, and `status` and the metrics show them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder, require_callable
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.build.stream import Stream
from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.channels.ports import OutputPort

D = TypeVar("D")
E = TypeVar("E", covariant=True)
F = TypeVar("F")

Errors: TypeAlias = Literal["raise", "stream"]
Failures: TypeAlias = list[tuple[Record, str]]


class CheckedStream(Stream[E], Generic[E]):
    """What a function gave. `errors`: (record, text) of those at which it raised."""

    def __init__(self, stream: Stream[E], errors: Stream[tuple[Record, str]]) -> None:
        super().__init__(stream.scope, stream.source)
        self.errors = errors


class FailedRecord:
    """A record that failed, among what an operator gives: until `separate` takes it out. It never travels."""

    __slots__ = ("record", "text")

    def __init__(self, record: Record, error: Exception) -> None:
        self.record = record
        self.text = text_of(error)


def text_of(error: Exception) -> str:
    """What was raised, as text: exceptions themselves cannot travel between processes."""
    return f"{type(error).__name__}: {error}"


def require_errors(errors: object, name: str) -> None:
    """ConstructionError unless it is one of the two words."""
    if errors not in ("raise", "stream"):
        raise ConstructionError(f"{name}: errors is 'raise' or 'stream', not {errors!r}")


def count_failures(output: OutputPort) -> None:
    """What is given to an output counts as failed."""
    output.failures = True


def _checked(
    stream: Stream[D], name: str, function: Callable[[Batch, Failures], Collection[Record] | Columns]
) -> CheckedStream[Record]:
    """An operator that turns each batch into another, and puts what fails into a list."""
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    builder.add_output()
    builder.add_output()

    def make(context: Context) -> Step:
        (input,), (output, errors) = context.inputs, context.outputs
        count_failures(errors)

        def step() -> None:
            for message, batch in input:
                failures: Failures = []
                output.give(message, function(batch, failures))
                errors.give(message, failures)

        return step

    results, failed = builder.build(make, keeps=Keeps.NOTHING)
    return CheckedStream(results, failed)


def map(stream: Stream[D], function: Callable[[D], F], name: str) -> CheckedStream[F]:
    """`function(record)` for each record for which it does not raise."""
    return flat_map(stream, lambda record: (function(record),), name)


def flat_map(stream: Stream[D], function: Callable[[D], Iterable[F]], name: str) -> CheckedStream[F]:
    """Every item of `function(record)`, for each record for which it does not raise: all of a record's, or none."""
    require_callable(function, name, "function of a record")

    def flat(batch: Batch, failures: Failures) -> list[F]:
        results: list[F] = []
        records: Iterable[Record] = batch
        for record in records:
            try:
                results += list(function(record))
            except Exception as error:
                failures.append((record, text_of(error)))
        return results

    return _checked(stream, name, flat)


def filter(stream: Stream[D], predicate: Callable[[D], object], name: str) -> CheckedStream[D]:
    """The records for which `predicate(record)` is true and does not raise. Columns stay columns."""
    require_callable(predicate, name, "predicate")

    def keep(batch: Batch, failures: Failures) -> Batch:
        chosen: list[bool] = []
        records: Iterable[Record] = batch
        for record in records:
            try:
                chosen.append(bool(predicate(record)))
            except Exception as error:
                chosen.append(False)
                failures.append((record, text_of(error)))
        if isinstance(batch, Columns):
            return batch.filter(np.array(chosen, np.bool_))
        return [record for record, kept in zip(batch, chosen, strict=True) if kept]

    return _checked(stream, name, keep)


def separate(stream: Stream[F | FailedRecord], name: str) -> CheckedStream[F]:
    """Takes the `FailedRecord` out of a stream."""

    def split(batch: Batch, failures: Failures) -> list[Record]:
        kept: list[Record] = []
        for record in batch:
            if type(record) is FailedRecord:
                failures.append((record.record, record.text))
            else:
                kept.append(record)
        return kept

    return _checked(stream, f"{name}: errors", split)


def guarded(fold: Callable[..., Record]) -> Callable[..., Record]:
    """The fold of a state machine, which passes over a pair at which it raises: the key's state stays as it was, if
    the fold has not changed it in place."""

    def guard(key: Record, value: Record, state: Record) -> Record:
        try:
            new, results = fold(key, value, state)
            return new, list(results)
        except Exception as error:
            return state, [FailedRecord((key, value), error)]

    return guard
