"""Migrating query plans: a windowed join of several streams whose join order changes while it runs (HybMig and MS, PT).

A plan is a binary tree over the streams. Plans are data: a bin's state has the plan that it runs, and while it migrates
the next one as well. Everything here is pure but the stores: times and records in, results out. `window_join` and
`opaque` in `megaphone.operators` make operators of it; docs/internals/plans.md tells the whole.

- `query`: what is joined: the streams, the key, the window, predicates. `trees`: plans as trees, how people write them,
  and the tasks into which two of them are decomposed (section 3.2).
- `composites`: what a join makes of records. `states`: composites by key, with an end (section 2.1).
- `tree_step`: what one tree does at one time.
- `chains`: which results the old plan still owes (section 3.3, corrected).
- `migrating`: a whole plan in one bin, and its way from one to the next by moving state, parallel track or HybMig.
- `general`: opaque plans and their ways: GMS, GPT, GHM (section 4).
- `spaces`: which plans an operator can have, and what is refused.
- `door`: what F and S ask of a store of plans, in rows or in columns. `row_store`: that store for rows.
- `bins`: a bin as that store sees it. `join_bin`: a bin of a join. `travel`: such a bin as plain data.
- `columns`: the store for columns, all of it; compiled, and imported on demand.
"""

from megaphone.plans.general import Built, Opaque
from megaphone.plans.query import Query

__all__ = ["Built", "Opaque", "Query"]
