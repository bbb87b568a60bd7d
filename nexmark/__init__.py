"""The NEXMark suite, the proof that the rest works: an auction site's event stream and eight queries over it.

- `events`: the stream, any slice of it, and events in files.
- `queries`: each query, written once for native and for migratable operators.
- `answers`: two oracles, and the comparison with them.
- `runs`: running a query over a finite stream, or under open-loop load.
- `commands`: the command line; ``python -m nexmark`` starts at `__main__`.
"""

from nexmark.events.config import SECOND, Config
from nexmark.events.generator import COLUMNS, Generator
from nexmark.events.rows import rows
from nexmark.events.vocabulary import dictionary

__all__ = ["COLUMNS", "SECOND", "Config", "Generator", "dictionary", "rows"]
