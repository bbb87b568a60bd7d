"""The NEXMark suite, the proof that the rest works: an auction site's event stream and eight queries over it.

The stream:
- `config`: the options, checked. `generator`: any slice of the stream, in columns. `kernels`: its compiled loops.
- `vocabulary`: the words that codes stand for. `payload`: the long strings. `rows`: columns as rows, for people.
- `files`: events in Parquet files.

What answers are held against:
- `oracle`: the queries one after the other over lists of rows. `spark_oracle`: the same as Spark SQL over files.

The queries:
- `queries`: each written once, with its stateful operators as an argument. `folds`, `counting`,
  `hottest`, `dearest`: their parts.
- `operators`: the two sets of operators, native and migratable.
- `sources`: events an epoch at a time. `running`: a finite stream as fast as it goes. `results`: its rows as a file.
- `measuring`: a query under open-loop load, with migrations.
- `verifying`: whether several answers are the same.

`commands` is the command line.
"""

from nexmark.events.config import SECOND, Config
from nexmark.events.generator import COLUMNS, Generator
from nexmark.events.rows import rows
from nexmark.events.vocabulary import dictionary

__all__ = ["COLUMNS", "SECOND", "Config", "Generator", "dictionary", "rows"]
