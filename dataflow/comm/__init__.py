"""How workers reach each other. One interface, `Transport`, with an implementation for one process and one for several.

- `messages`: what workers say to each other.
- `transport`: the interface, `InProcess` and `Linked`.
- `link`: one connection to one other worker; `pipes`: the bytes under it; `patience`: when to look before sleeping.
- `wire`, `rows`: messages and rows as bytes; `frames`: bytes in units that can be checked; `pool`: memory for them;
  `arena`: memory for large ones that workers of one host share.
- `handshake`: proofs before anything else is said; `conversation`: what may be said when; `flow`: how much may be on
  its way; `held`: what came for dataflows that are not built yet.
"""
