"""Starting workers as processes, and seeing to it that they end well.

In the caller's process:
- `supervisor`: has workers started, watches them, prints what they print, collects results. `process`: a worker's
  process as it sees it. `watching`: what it sees. `verdict`: who is at fault when something goes wrong; pure.
- `lives`: with recovery, who goes back when somebody fails, and when the next life begins; pure. `rolling` does it.
- `spawning`: the process that workers are forked from begins. `starting`: what it is given. `parcel`: main and what it
  uses, on their way there. `travel`: which variable it is that cannot go. `descriptors`: closed standard streams.
- `ending`: ends them, whatever happened. `signals`: Ctrl-C and SIGTERM.
- `recruiting`: workers that join, when the leader asks for them (in its process: `wishes`). `elastic`: where somebody
  else must bring them.
- `output`, `lines`, `printer`: what processes print, in whole lines, at the pace of whoever reads it.

In the process that workers are forked from: `zygote`, its life; `forking`: its workers; `threads`: whether it has any.
`errand`: what it is told to start.

In a worker's: `child`: what it does from fork to exit. `preparing`: what a joiner loads beforehand. `neighbours`: how
it reaches the others of its host. `heap`: it keeps the memory that it frees. `descent`: forks, and that none outlives
its parent.

Between them: `orders`: what workers are told. `questions`: what they were asked and have not answered. `report`:
results, and exceptions that can be raised again. `framing`: whole messages.

- `guests`: hosts that join a run. `talk`: whole messages between two supervisors.
- `hosts`: the file that says where everybody is. `environment`: what Slurm or Kubernetes say of that; `nodelist`:
  Slurm's lists of nodes. `mesh`: connections between hosts. `greeting`: the handshake with those who are not trusted
  yet; `strangers`: what is said about connections that were turned away. `cluster`: supervisors of several hosts, which
  keep an eye on each other. `host_lives`: with recovery, what a host knows of the lives of a run. `control`: what they
  say to each other; `control_link`: the connection; `far_questions`: questions among that. `health`: what managers ask
  over HTTP.
"""
