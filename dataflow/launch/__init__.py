"""Starting workers as processes, and seeing to it that they end well.

- `child`: what a worker's process does from fork to exit.
- `report`: what a worker tells its supervisor: results, and exceptions that can be raised again.
- `verdict`: who is at fault when something goes wrong. Pure.
- `supervisor`: the parent: starts workers, prints what they print, collects results, ends them.
- `hosts`: the file that says where everybody is. `mesh`: connections between hosts. `tls`: certificates.
"""
