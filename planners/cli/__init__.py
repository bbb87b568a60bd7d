"""The command line, ``python -m planners``.

- `command`: its commands and options. `files`: requests and plans as JSON and Parquet.
- `report`: plans, comparisons and explanations as text. `picture`: who would have what, drawn.
"""
