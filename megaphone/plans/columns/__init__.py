"""Windowed joins in columns whose plans change: compiled, all bins of a store together.

- `kernels`: the compiled loops; `probing`: that in which rows meet. `rings`: the state of an edge: rows in the order in
  which they came, chained by key.
- `pages`: the memory of rows, used again. `slots`: the hash table of a ring, which grows a little at a time.
- `sources`: the rings of streams, which have the records' values.
- `courses`: what a bin does: its plan and its way to the next. Pure. `shapes`: the courses of all bins, and what
  bins of one shape do at a time.
- `joiner`: how the rows of two edges come together.
- `background`: what HybMig computes when idle. `travel`: a bin as entries that travel.
- `store`: the door to all of it. `pairs`: the same for two streams, whose single keys can be pinned.
"""
