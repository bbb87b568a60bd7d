"""Keys: their bins, and single keys that live apart from their bins.

- `hashing`: from a key to its bin. Pure.
- `pins`: `Pin`, `Unpin` and `Pins`, the updates for single keys. Pure.
- `keyspace`: what a key is, in rows and in columns, and which keys are pinned. Pure.
- `pinning`: a store of bins with a store of the keys that live apart from them, as one, in columns.
- `returns`: keys that go back into their bins.
"""
