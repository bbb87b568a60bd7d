"""Other systems, where they are installed, doing what ours does: programs that benchmarks start as processes.

- `bytewax_count`: counts by key, with Bytewax's own recovery store.
"""
