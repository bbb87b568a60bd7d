"""The command line, ``python -m planners``.

- `command`: its commands and options. `replay`: the command `loop`, what the closed loop would have done about a log.
  `living`: the command `live`, the whole loop beside a run. `orders`: the command `order`, which plan a join should
  have. `scaling`: the command `scale`, how many workers for a curve of rates. `autoscaling`: the same beside a run.
- `files`: requests and plans as JSON and Parquet. `report`: plans, comparisons and explanations as text. `picture`: who
  would have what, drawn.
"""
