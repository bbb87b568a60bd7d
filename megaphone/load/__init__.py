"""Load: what an operator counts, for planners.

- `statistics`: records, processing time and bytes of state, by bin and interval, told to every worker.
- `news`: the same for those who look at a run from outside.
- `heavy`: the heavy keys of columns, found with a `sketch` (space-saving, compiled).
- `tally`: the heavy keys of rows (Misra and Gries).
"""
