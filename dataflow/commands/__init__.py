"""Commands of `python -m dataflow`, each in a module of its own.

- `snapshots`: lists snapshots, verifies them, shows what is in them. `inspecting`: the state of an operator as a table.
- `listing`: the runs on this host. `asking`: what commands share that ask one of them.
- `status`, `top`, `explaining`, `profile`, `tracing`: look at a run. `page`: in a browser. `get`: the state of a key.
- `metrics`: serves them for Prometheus. `families`: from readings to metrics.
- `migrate`: moves state. `save`: a savepoint. `stop`: the end.
- `on_spark`: `run --on spark`.
- `scaling`: workers join and leave a run.
- `tables`: text for people.
"""
