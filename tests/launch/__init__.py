"""Tests of `dataflow.launch` and of the command line: how workers in processes, here and on several hosts, end.

- `arena`: runs programs in sessions of their own, and knows whether anything is left of them.
"""
