"""Batches of columns, and operators on them. Nothing here is keyed state: that is in `dataflow.state`.

What a batch is:
- `batch`: `Columns`, named columns of one length. `column`: the types of a column, numpy's and Arrow's.
- `arrow`: columns from and to whatever speaks Arrow. `frames`: whether a value is a batch of columns or a record.
- `repairs`: missing numbers and decimals, made into what columns can hold.
- `schema`: the types of columns and of state, as people write them.

What is done with batches:
- `operators`: `stream.columns`: map, filter, project, exchange, aggregate, join, windows.
- `grouping`: groups and joins of the rows of one time, by sorting. `sums`: sums of integers that do not wrap around.
- `windows`: windows over a column of times. `kinds`: what columns hold from the first batch on, on all workers.
- `spelling`: keys of any kind as a few words, and a hash; compiled.
- `pact`: which worker gets which rows. `hashing`: hashes of keys, and routing by them; compiled. `scatter`: one batch
  for each owner; compiled.

Values:
- `zones`: moments with a time zone. `instants`: dates, moments and time spans as whole numbers of a unit.
- `conversions`: columns as the 64-bit numbers that compiled code works with. `arithmetic`: sums and products for users'
  folds that raise where 64 bits do not suffice.

numba and pyarrow are imported when they are first needed: a program of rows does not wait for them.
"""

from dataflow.columns.batch import Columns

__all__ = ["Columns"]
