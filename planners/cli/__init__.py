"""The command line, ``python -m planners``.

- `command`: its commands and options. `replay`: the command `loop`, what the closed loop would have done about a log.
- `files`: requests and plans as JSON and Parquet. `report`: plans, comparisons and explanations as text. `picture`: who
  would have what, drawn.
"""
