"""Progress tracking, free of I/O: which times may still arrive where.

- `change_batch`: signed counts, gathered before they are applied as a whole.
- `paths`: path summaries, what becomes of a time between two places of the graph, across nested scopes.
- `graph`: nodes, ports, edges. `ordering`: the order in which changes propagate, and the refusal of cycles that do not
  advance time. `reach`: the path summaries between two locations, for explanations.
- `tracker`: pointstamps in, frontiers out; the general one and the fast one for acyclic graphs with integer times.
- `broadcast`: how workers report their changes to each other: atomic batches, in order per sender.
- `validity`: whether the progress that another worker reports fits this graph.

The protocol and its invariants are written down in docs/internals/progress.md.
"""
