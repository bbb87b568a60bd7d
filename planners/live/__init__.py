"""Planning from tables that are made while the dataflow runs: statistics to logs, logs to tables, tables to plans.

- `log`: what workers report, as Parquet files in a folder: the log that `planners.spark` reads.
- `tables`: tables of projected costs that are made in the background, from that log, and anew when loads have drifted;
  and a planner for `planners.loop` that uses those which are there.
- `autoscale`: how many workers a run that is under way should have, from its own counters.
- `running`: an operator of a run that is under way, seen and steered from another process. `beside`: the whole loop
  there.

The whole loop is in docs/offline-tables.md, under "While a dataflow runs".
"""

from planners.live.log import LoadLog
from planners.live.tables import LiveTables, drift, spark_maker

__all__ = ["LiveTables", "LoadLog", "drift", "spark_maker"]
