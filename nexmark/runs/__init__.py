"""Running queries.

- `running`: a query over a finite stream, as fast as it goes. `sources`: where its events come from, epoch by epoch.
- `partitions`: generated events as a source that goes on after a crash.
- `measuring`: a query under open-loop load, with migrations.
- `lines`: how many lines of code the queries have, beside the paper's Table 1.
"""
