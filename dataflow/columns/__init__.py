"""Columnar batches, operators on them, and folds that are compiled.

- `batch`: `Columns`, named columns of one length. `arrow`: to and from whatever speaks Arrow.
- `operators`: map, filter, project, exchange, group-aggregate and join at a time, windows.
- `schema`: types as people write them. `fold`: what a user writes for one record. `compiling`: from a fold to a
  compiled
  module on disk. `driver`: the loop over a batch. `emitter`: rows that compiled folds add to.
- `zones`, `instants`: moments with a time zone, and units. `windows`: windows over a column of times. `sums`,
  `conversions`: integers that do not wrap. `checked`: the same for folds.
- `hashing`, `kernels`: compiled. `segments`: one large array, cut into a segment per bin. `table`: state by key.
  `leaders`: the key with the largest value. `pending`: post-dated records. `store`: what any state tells of itself.
  `keyed`: these together: the state of a stateful operator on one worker.
- `stateful`: native stateful operators. (Those that migrate are in `megaphone`.)

numba and pyarrow are imported when they are first needed: a program of rows does not wait for them.
"""

from dataflow.columns.batch import Columns

__all__ = ["Columns"]
