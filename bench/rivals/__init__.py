"""Other systems, where they are installed, doing what ours does: programs that benchmarks start as processes.

- `pausing`: pause and resume, and replication, in our own engine.
- `bytewax_count`: counts by key, with Bytewax's own recovery store. `bytewax_windows`: tumbling windows by key.
"""
