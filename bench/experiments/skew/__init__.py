"""Figures of the skew-and-variance paper that need planners only, no running dataflow.

- `scenario`: intervals of the synthetic workload, planned one after the other.
- `figures`: each figure; `drawing`: the pictures.
"""
