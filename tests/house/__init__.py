"""Tests of the house itself: its layers, names, maps, sizes, types, and what is distributed.

`tree` reads the source of all packages without importing it. `rooms` says which room may import which.
"""
