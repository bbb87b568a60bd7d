"""Sources that go on where they were: `scope.source(sources.lines("logs/"))`. docs/connectors.md explains them.

- `texts`: files of lines, of JSON and of CSV. `tables`: Parquet files. `files`: which files, and lines from a byte on.
- `iterators`: whatever can be started again in the middle. `captures`: captured streams.
- `timed`: sources whose times are those of their records.

The interface is `Partitions`, in `dataflow.operators.partitions`.
"""

from dataflow.operators.partitions import Partitions, SourceError
from dataflow.sources.captures import replay
from dataflow.sources.iterators import generator, restartable, shares
from dataflow.sources.tables import parquet
from dataflow.sources.texts import csv, json_lines, lines
from dataflow.sources.timed import event_timed

__all__ = [
    "Partitions",
    "SourceError",
    "csv",
    "event_timed",
    "generator",
    "json_lines",
    "lines",
    "parquet",
    "replay",
    "restartable",
    "shares",
]
