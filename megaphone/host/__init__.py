"""S, which holds state.

- `s`: installs the pieces of state that arrive, and has the records of a time applied once it is complete.
"""
