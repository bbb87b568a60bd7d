"""Tables: rows by key in segments, with compiled kernels.

- `table`: tables of keyed state, hashed and dense. `hash_kernels`, `dense_kernels`: their compiled parts. `blocks`:
  what loops do for a block of records at once.
- `pending`: post-dated records; `heaps` is its compiled part. `chains`: the compiled part of joins.
- `preimages`: rows as they were at a cut, while a snapshot of them is being written.
- `leaders`: the key with the largest value of a field. `one_key`: a single key, taken out and put in elsewhere.
"""
