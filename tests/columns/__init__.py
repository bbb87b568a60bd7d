"""Columns, operators on them, tables and compiled folds.

- `test_batch`: `Columns` against lists of tuples. `test_conversions`: to and from numpy, Arrow, pandas and polars.
- `test_wire`: strings on the wire, and strangers who send them.
- `running`: programs of columns under seeds. `sampling`: how many random cases.
- `test_operators`: operators against plain loops over rows, under seeds.
- `test_tables`, `test_pending`: state by key and post-dated records against dictionaries and heaps. `test_memory`.
- `folds`: the folds that tests share (each costs seconds to compile), and their oracles. `test_folds`: compiled, not
  compiled and the oracle agree. `test_fold_errors`: what is said before anything runs. `test_cache`: on disk.
- `test_stateful`: native stateful operators against sequential programs, under seeds.
"""
