"""How workers reach each other. One interface, `Transport`, with an implementation for one process and one for several.

- `messages`: what workers say to each other. `conversation`: what a peer may say when.
- `transport`: the interface, and `InProcess`. `linked`: `Linked`, between processes. `link`: one connection to one
  other worker.
- `hall`: memory through which workers of one host speak without the kernel. `board`: what one says to all. `ring`: what
  one says to another. `gathering`: all of them are looked at together.
- `simulated`: what is on its way between workers that are simulated.
- `pipes`: the bytes under a link. `patience`: when to look for messages before sleeping.
- `handshake`: proofs, before anything else is said.
- `flow`: how much data may be on its way before sources wait. `backlog`: messages for dataflows that main has not built
  yet.

Messages as bytes:
- `frames`: bytes in units that can be checked. `pool`: memory for those that are received. `arena`: memory for large
  ones that workers of one host share.
- `wire`: messages in frames. `rows`, `columns`: their batches. `codec`: any value of plain data. `values`: what the
  codec knows of each kind of value.
"""
