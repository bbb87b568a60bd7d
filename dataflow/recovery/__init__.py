"""Snapshots at a time, and going on from them. docs/internals/recovery.md is the specification.

- `storage`: where snapshots are kept, as an interface.
"""
