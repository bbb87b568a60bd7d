"""Late records of a source that names its times: among the others until they leave it, and then a stream of their own.

They never travel so: what separates them stands right behind the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.build.stream import Stream
from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.columns.column import Mask
from dataflow.values import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

D = TypeVar("D")
E = TypeVar("E", covariant=True)

LATE = "\0late"  # a column of batches that have late rows


class LateRow:
    """A late record among others."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record


class LateApart(Generic[D]):
    """A source (it is a `Partitions` as well) that marks late records: `scope.source` gives a `TimedStream` of it.

    Not a subclass: of one with records of any type, a type checker could not tell which of the two `scope.source` is
    given, and nobody would see types behind it.
    """

    late_apart: bool = True


class TimedStream(Stream[E], Generic[E]):
    """The records of a source at their own times. `late`: those that came too late."""

    def __init__(self, stream: Stream[E], late: Stream[Record]) -> None:
        super().__init__(stream.scope, stream.source)
        self.late = late


def marked(batch: Sequence[Record] | Columns, late: Mask) -> Batch:
    """A batch in which late records are marked."""
    if isinstance(batch, Columns):
        return batch.with_columns({LATE: late})
    return [LateRow(record) if is_late else record for record, is_late in zip(batch, late.tolist(), strict=True)]


def separated(stream: Stream[D], name: str) -> TimedStream[D]:
    """Takes marked records out of a stream."""
    builder = OperatorBuilder(stream.scope, f"{name}: late")
    builder.add_input(stream)
    builder.add_output()
    builder.add_output()

    def make(context: Context) -> Step:
        (input,), (records, late) = context.inputs, context.outputs

        def step() -> None:
            for message, batch in input:
                kept, apart = _split(batch)
                records.give(message, kept)
                late.give(message, apart)

        return step

    records, late = builder.build(make, keeps=Keeps.NOTHING)
    return TimedStream(records, late)


def _split(batch: Batch) -> tuple[Batch, Batch]:
    plain, late = unmarked(batch)
    if not late.any():
        return plain, []
    if isinstance(plain, Columns):
        return plain.filter(np.logical_not(late)), plain.filter(late)
    pairs = list(zip(plain, late.tolist(), strict=True))
    return [record for record, is_late in pairs if not is_late], [record for record, is_late in pairs if is_late]


def unmarked(batch: Batch) -> tuple[list[Record] | Columns, Mask]:
    """A batch as it was before late records were marked, and which were."""
    if isinstance(batch, Columns):
        if LATE not in batch:
            return batch, np.zeros(len(batch), bool)
        return batch.select([name for name in batch.names if name != LATE]), batch[LATE]
    late = np.fromiter((type(record) is LateRow for record in batch), bool, len(batch))
    return [record.record if type(record) is LateRow else record for record in batch], late
