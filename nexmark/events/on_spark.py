"""Events as Parquet, made on the executors of a Spark cluster: the same as `files.write` makes here, billions of them.

Each task makes a run of consecutive events, of one kind, and Spark writes what it made as a part of that kind's folder;
parts that are there when a job fails are taken back by Spark's own protocol. Spark pickles this module by value, since
the packages are not on the executors before `unpack` has put them there: so it imports nothing of ours at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

    from nexmark.events.generator import Generator

SLICE = 500_000  # events that a task makes at a time
TASK = 20_000_000  # events of a task, unless somebody says otherwise

Making = Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]


def write_on_spark(
    session: SparkSession,
    out: str,
    generator: Generator,
    events: int,
    tasks: int | None = None,
    overwrite: bool = False,
) -> dict[str, int]:
    """Writes the first so many events to `out`/person.parquet and so on: folders of parts, in any file system that the
    cluster has. Returns the rows of each kind."""
    from pyspark import cloudpickle

    from dataflow.spark import task
    from dataflow.spark.shipping import pack
    from nexmark.events import files

    packages = pack(["nexmark"])
    config = vars(generator.config)
    many = tasks or max(1, -(-events // TASK))
    here = sys.modules[__name__]
    counts = {}
    for module in (task, here):
        cloudpickle.register_pickle_by_value(module)
    try:
        for kind, columns in files.columns_of(generator).items():
            make = making(kind, config, generator.payload, events, many, packages.archive, packages.digest)
            frame = session.range(0, many, 1, many).mapInArrow(make, _schema(columns, files.words_of(kind)))
            writer = frame.write.mode("overwrite" if overwrite else "error").option("compression", "zstd")
            writer.parquet(f"{out}/{kind}.parquet")
            counts[kind] = session.read.parquet(f"{out}/{kind}.parquet").count()
    finally:
        for module in (task, here):
            cloudpickle.unregister_pickle_by_value(module)
    return counts


def _schema(columns: list[str], words: set[str]) -> str:
    return ", ".join(f"{name} {'string' if name in words else 'bigint'}" for name in columns)


def making(
    kind: str, config: dict[str, object], payload: str, events: int, tasks: int, archive: bytes, digest: str
) -> Making:
    """What a task does: the numbers of parts come in, their events go out."""
    from dataflow.spark.task import unpack

    def make(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import sys

        folder = unpack(archive, digest)
        sys.path.insert(0, folder)
        try:
            from nexmark.events import files
            from nexmark.events.config import Config
            from nexmark.events.generator import COLUMNS, Generator

            generator = Generator(Config(**config), {kind: COLUMNS[kind]}, payload)  # type: ignore[arg-type]
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    first, last = events * part // tasks, events * (part + 1) // tasks
                    for start in range(first, last, SLICE):
                        made = generator.events(range(start, min(start + SLICE, last)))[kind]
                        yield from files.plain_arrow(kind, made).to_batches()
        finally:
            sys.path.remove(folder)

    return make
