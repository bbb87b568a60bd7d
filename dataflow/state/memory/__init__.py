"""Memory for keyed state: one large array of words for each table, cut into segments.

- `segments`: arrays of segments, and the parts of a store that lie in them and travel.
- `allocation`: how segments are given out, grown and given back, compiled.
- `prefault`: a thread that touches memory before it is needed. `reuse`: what bins leave behind is kept for a while.
- `slab`: memory that copies of state go into, for snapshots.
"""
