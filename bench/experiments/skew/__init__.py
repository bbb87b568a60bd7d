"""Figures of the skew-and-variance paper.

- `scenario`: intervals of the synthetic workload, planned one after the other: no dataflow runs.
- `figures`: the figures that need planners only. `drawing`: the pictures.
- `programs`: dataflows with an artificial cost per record. `streaming`: one of them on two processes, measured.
- `throughput`: the figures of those: throughput and latency with the loop on, under hashing and ideally.
"""
