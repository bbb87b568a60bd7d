"""The questions that a run answers, each in a module of its own. `known` lists them.

- `at_run(run, arguments)` answers in the process that has the socket; `at_worker(pump, arguments)` in a worker's.
- `who`: the facts of the run. `save`: a savepoint.
"""
