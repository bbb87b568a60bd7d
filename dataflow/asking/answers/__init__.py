"""The questions that a run answers, each in a module of its own. `known` lists them.

- `at_run(run, arguments)` answers in the process that has the socket; `at_worker(pump, arguments)` in a worker's.
- `who`: the facts of the run. `status`: what all workers have counted. `explain`: who holds which time; `holding`: the
  same as typed values. `trace`: a timeline. `bins`: where an operator's shards are. `loops`: what they decided.
- `get`: the state of a key. `loads`: what the shards of an operator cost, report by report. `migrate`: begins a
  migration, and says how far it is.
- `save`: a savepoint. `stop`: the end. `scale`: others. `ready`: whether a worker is ready, for cluster managers.
"""
