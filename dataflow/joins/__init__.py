"""Joins over event time, by key, on rows: interval, as-of, with a table; and duplicates left out. Migratable in
`megaphone`, and there on columns as well, for frames.

- `folds`: each as a fold over the state of a bin.
- `operator`: the native operators, and what they share with the migratable ones.
- `columns`: what is before and behind the state where records are columns.
"""

from dataflow.joins.operator import as_of_join, deduplicate, interval_join, table_join

__all__ = ["as_of_join", "deduplicate", "interval_join", "table_join"]
