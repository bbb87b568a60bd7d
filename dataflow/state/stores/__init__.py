"""Stores of keyed state.

- `row_store`: state in Python objects. `row_bins`: its bins. `row_folds`: users' functions as what it applies.
  `portions`: a bin of Python objects as bytes. `weighing`: about how long those would be.
- `column_store`: what stores in columns have in common. `with_pending`: those with a table and post-dated records.
- `fold_store`: state that folds change record by record. `batch_store`: state that a function of batches changes.
  `join_store`: joins that remember. `spelled`: keys of folds that are no single integer.
"""
