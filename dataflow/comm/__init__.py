"""How workers reach each other. One interface, `Transport`; so far one implementation, for workers of one process.

- `messages`: what workers say to each other.
- `transport`: the interface, and `InProcess`.
"""
