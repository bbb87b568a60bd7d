"""Running dataflows on a worker.

- `worker`: the worker as a program sees it. `pump`: the machinery behind it, which owns the dataflows, the mailbox, the
  transport and flow control.
- `dataflow`: the part of one dataflow that lives on one worker: it runs operators and passes on progress.
- `agreement`: whether all workers build the same number of dataflows.
- `completion`: whether a time is complete everywhere in a dataflow: what sources are paced by.
- `explain`: what is outstanding in a dataflow that seems stuck, and who holds it. `watch`: says so when nothing moves.
- `exceptions`: exceptions out of the groups that nurseries make of them. `advice`: what to do about asyncio.
- `signal`: a wake-up for one sleeping task. `clock`: the worker's clock.
- `resumption`: where main goes on after a recovery.
"""
