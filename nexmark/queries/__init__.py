"""The queries, one body each for both sets of operators.

- `queries`: the bodies of those that the paper has (1 to 8), a table of all, and the columns that each reads.
  `options`: what can be chosen. `operators`: the two sets of stateful operators that a body can be given.
- `folds`: what the queries do with one record, compiled. `records`: the types of what folds read and write.
- `counting` and `hot_auctions`: the parts of query 5. `highest_bids`: a part of query 7. `foremost`: of 4, 6 and 9.
- The others: `lookups` (0, 10, 13, 14, 21, 22: one bid at a time), `winners` (9, 20: bids with their auctions),
  `sessions` (11, 12), `distinct` (15, 16) and `daily` (17 to 19).
"""
