"""The commands of ``python -m nexmark``, a module each.

- `generate`: events into Parquet files. `run`: a query over a finite stream. `latency`: a query under open-loop load.
- `verify`: a query answered three ways. `demo`: what `make demo` shows.
- `main`: which command was asked for. A command is a module with `add_to(commands)`, which makes its parser and sets
  `run`, a function from the parsed options to an exit code; a new one is added to the list in `main`.
- `asking`: the options that `run`, `latency` and `verify` share. `options`: those that all commands share, and exit
  codes.
"""
