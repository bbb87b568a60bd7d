"""The eight queries, one body each for both sets of operators.

- `queries`: the bodies, their options, and the columns that each reads. `operators`: the two sets of stateful operators
  that a body can be given, native and migratable.
- `folds`: what the queries do with one record, compiled. `records`: the types of what folds read and write.
- `counting` and `hot_auctions`: the parts of query 5. `highest_bids`: a part of query 7.
"""
