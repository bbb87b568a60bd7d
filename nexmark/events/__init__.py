"""The stream of events: an auction site where persons register, open auctions and bid.

- `config`: the options of a stream, checked. `generator`: any slice of the stream, in columns. `kernels`: its compiled
  loops.
- `vocabulary`: the words that codes stand for. `payload`: the long strings of a full payload.
- `rows`: columns as rows, for people. `files`: events in Parquet files. `on_spark`: the same, made on a cluster.
"""
