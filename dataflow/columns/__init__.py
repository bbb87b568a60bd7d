"""Columnar batches: named arrays of one length.

- `batch`: the batch itself.
"""

from dataflow.columns.batch import Columns

__all__ = ["Columns"]
