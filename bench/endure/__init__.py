"""A run that is left alone for hours with everything that happens to runs: `make endure HOURS=1`.

- `app`: the program that endures: lines of growing files, running counts by word, a table in SQLite.
- `writing`: writes the files, and knows what the counts must be.
- `living`: the run as a process that is killed and started again, and asked things.
- `troubles`: what happens to it: migrations, workers that come, go and die, stopped processes, a locked table, a full
  disk, a clock that jumps, many times the load.
- `watching`: what is seen of it every few seconds: memory, descriptors, latency, and whether the table is right.
- `judging`: whether what was seen is good. `report`: a page about it.
- `command`: `python -m bench.endure`.
"""
