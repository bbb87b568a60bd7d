"""Running dataflows on a worker.

- `worker`: the worker as a program sees it. `pump`: the machinery behind it, which owns the dataflows, the mailbox, the
  transport and flow control.
- `flowing`: the part of it that weighs what is on its way. `receiving`: the part that is sent messages.
  `attending`: the part that looks for messages while main waits. `alarm`: wakes it, no earlier than it needs.
  `breathing`: when main lets others run. `interest`: what a sleeping worker is woken for.
  `mains`: from the call of main to the end of its worker.
- `dataflow`: the part of one dataflow that lives on one worker. `stepping`: its heart, which runs operators and passes
  on progress.
- `snapshots`: what a dataflow has to do with those.
- `agreement`: whether all workers build the same dataflows, and as many.
- `completion`: whether a time is complete everywhere in a dataflow: what sources are paced by.
- `explain`: what is outstanding in a dataflow that seems stuck, and who holds it. `watch`: says so when nothing moves.
- `meters`: what a worker counts, always. `pressures`: for how long who was under pressure. `readings`: the same as
  typed values, for those who ask. `shares`: what a worker's time went to. `reasons`: why a run is slow, in words.
  `holding`: who holds which time back, and from whom. `bins`: where the shards of an operator are, and what they cost.
  `tracing`: a timeline. `telemetry`: what happens as spans. `logs`: how a run logs.
- `exceptions`: exceptions out of the groups that nurseries make of them. `advice`: what to do about asyncio.
  `cells`: in which cell of a notebook. `limits`: a limit for the state of a worker.
- `inside`: a dataflow inside an operator, stepped by hand.
- `signal`: a wake-up for one sleeping task. `clock`: the worker's clock. `timers`: of the kernel's, for short
  sleeps. `collecting`: Python's garbage collector.
- `resumption`: where main goes on after a recovery. `defaults`: what `execute` has unless it is told otherwise.
"""
