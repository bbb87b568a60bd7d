"""From workload logs to tables of projected costs, on Spark: `python -m planners.spark --help`, or under spark-submit.

- `session`: a Spark session, or a clear error: Java, the master, the executors' Python
- `logs`: stage 1: logs to loads and sizes by bin, and to the number of nodes needed in each interval
- `history`: stage 2: that history to the migration transition matrix
- `enumeration`: stage 3: every balanced partitioning, by executors that share nothing but ranks
- `iteration`: stage 4: the projected costs, sweep by sweep, with a checkpoint after each
  `sharing`: the costs, once for each machine
- `output`: stage 5: the tables that ``planners.mtm_aware`` reads
- `folder`: what the stages leave for each other, on any file system that Spark knows
- `command`: the command line (`__main__`)

This is the only place in ``planners`` that imports pyspark. What comes to the driver is small: sizes and loads by bin,
the matrix, counts, and of a sweep two numbers for each range and the partitionings that choices lead to.
"""
