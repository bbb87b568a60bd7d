"""Starting workers as processes, and seeing to it that they end well.

- `child`: what a worker's process does from fork to exit. `heap`: it keeps the memory that it frees.
- `report`: what a worker tells its supervisor: results, and exceptions that can be raised again.
- `verdict`: who is at fault when something goes wrong. Pure.
- `process`: a worker's process as its parent sees it. `starting`: forking them. `ending`: ending them, whatever
  happened.
- `supervisor`: the parent: watches workers, prints what they print, collects results.
- `hosts`: the file that says where everybody is. `mesh`: connections between hosts. `cluster`: supervisors of several
  hosts, which keep an eye on each other. `control`: what they say to each other. `strangers`: what is said about
  connections that were turned away. `lines`: whole lines out of pieces of output.
"""
