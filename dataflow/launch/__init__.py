"""Starting workers as processes, and seeing to it that they end well.

In the caller's process:
- `supervisor`: has workers started, watches them, prints what they print, collects results. `process`: a worker's
  process as it sees it. `verdict`: who is at fault when something goes wrong; pure.
- `starting`: the process that workers are forked from. `parcel`: main and what it uses, on their way there. `travel`:
  which variable it is that cannot go. `descriptors`: closed standard streams.
- `ending`: ends them, whatever happened. `signals`: Ctrl-C and SIGTERM.
- `output`, `lines`, `printer`: what processes print, in whole lines, at the pace of whoever reads it.

In the process that workers are forked from: `zygote`, its life; `forking`: its workers; `threads`: whether it has any.

In a worker's: `child`: what it does from fork to exit. `heap`: it keeps the memory that it frees. `descent`: forks, and
that none outlives its parent.

Between them: `report`: results, and exceptions that can be raised again. `framing`: whole messages.

- `hosts`: the file that says where everybody is. `mesh`: connections between hosts. `cluster`: supervisors of several
  hosts, which keep an eye on each other. `control`: what they say to each other. `strangers`: what is said about
  connections that were turned away.
"""
