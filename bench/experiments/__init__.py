"""The experiments. `bench.registry` finds every module in this folder; this map is for people.

- `machine`: yardsticks, what the simplest things cost here. `tracker`, `pipeline`, `rows`, `processes`, `time_maps`:
  the engine's parts: progress, epochs, rows, two processes, maps of times. `workers`: what epochs cost on 2 to 64
  workers. `timeline`: where the time of such an epoch goes. `rows_count`: a word count in rows. `observing`: what
  counters cost that are always on. `overload`: ten times the sustainable rate.
- `count`: hash count and key count. `steps`: what matching, gaps and a bound on the latency do to migrations. `rivals`:
  pause and resume, and replication, beside them. `growing`: one operator from a thousand keys on. `pins`: key-level
  routing. `open_loop`: latency under open-loop load. `scale`: workers that join and leave under it.
- `megaphone_figures`, `megaphone_nexmark`: the figures of the Megaphone paper.
- `nexmark`, `nexmark_generate`, `nexmark_latency`, `nexmark_migrate`: NEXMark's throughput, generator, latency and
  migrations.
- `planning`: what the interval planners cost and save. `pmc`: projected migration costs, the offline half.
- `hybmig`: the figures of the HybMig paper, on a virtual clock. `plans`: windowed joins in columns on the wall clock.
- `snapshots`: what snapshots cost a stream. `recovery`: from kill -9 to the next output. `restarting`: stop-and-restart
  as the rival of live migration.
- `simulator`: costs for the simulator of clusters, and its predictions beside real runs. `simulator_figures`: what it
  says of 16 and 1,024 workers.
- `frames`: frames beside hand-written operators, Bytewax and polars; counts by strings.
- `rebalance`: what a rebalancing plan costs. `skew`: the figures of the skew-and-variance paper.
"""
