"""Migrating query plans: a windowed join of several streams whose join order changes while it runs (HybMig and MS, PT).

A plan is a binary tree over the streams. Plans are data: a bin's state has the plan that it runs, and while it migrates
the next one as well. Everything here is pure: times and records in, results out.

- `query`: what is joined: the streams, the key, the window, predicates. `trees`: plans as trees, how people write them,
  and the tasks into which two of them are decomposed (section 3.2).
- `composites`: what a join makes of records. `states`: composites by key, with an end (section 2.1).
- `tree_step`: what one tree does at one time.
- `chains`: which results the old plan still owes (section 3.3, corrected).
- `migrating`: a whole plan in one bin, and its way from one to the next by moving state, parallel track or HybMig.

No operator uses this yet: what is missing is its store, the control update and the compiled form.
"""
