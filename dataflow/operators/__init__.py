"""The operators. Each is a short function on top of `dataflow.build.builder`; streams and scopes have them as methods.

- `rows`: record by record: map, flat_map, filter, inspect; concat, partition, branch; exchange, broadcast.
- `failing`: records at which functions raise, on a stream of their own.
- `timing`: delay. `grouping`: aggregate, reduce, count, join, each by key at a time.
- `asynchronous`: map_async and map_async_batches, asynchronous functions in the middle of a dataflow.
- `inputs`: input, unordered input. `source`: iterables as sources, paced. `sink`: where records leave.
- `loops`: enter, leave, feedback, iterate. `probe`: how far a stream has come. `replay`: capture and replay.
- `partitions`: the interface of sources with positions; `partitioned`: the operators behind it; `finding`: the one that
  deals partitions out; `reading`: the one that reads, and `timed_reading` where sources name their times; `silence`:
  partitions that say nothing; `latecomers`: late records apart from the others; `heirs`: how partitions go to other
  workers; `pacing`: how far ahead they may be; `positions`: where they stood at each time.
- `sinks`: the interface of sinks that write each record once; `committed`: the operator behind it.
- `following`: streams that the run itself advances: `scope.control()`, and the stream of cuts.
"""
