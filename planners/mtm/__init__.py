"""MTM-aware planning: migrations that are cheap now and leave cheap ones to come (section 4.2; 5.2 live).

- `choice`: the online half: `mtm_aware`, a scan of a table of projected costs.
- `tables`: such tables in memory and in folders; `table_files`: their Parquet files, and how one is known to be whole.
- `problem`: what projected costs are computed for. `transitions`: the migration transition matrix (MTM). `grids`:
  coarser grids of cuts, at a price with a bound. `off_grid`: cuts that such tables do not list.
- `projection`: the offline half: projected migration costs (PMC), sweep by sweep. `search`: the cheapest next
  partitioning, where the time goes. `policy`: what fixed choices cost for ever, solved between two sweeps.
"""
