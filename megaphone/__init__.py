"""Stateful operators whose state moves between workers while the stream flows (Megaphone).

An operator is split into F, which routes records by the configuration at their time, and S, which holds the state; both
speak timely dataflow and nothing else. State is grouped into bins of keys. A configuration update is a record on an
ordinary stream: as of its time, a bin lives at a worker.

- `control`: what is said on the control stream: `Move`, `Assign`; and its form as JSON lines.
- `configuration`: which worker has which bin at which time. Pure.
- `hashing`: from a key to its bin.
- `bins`: state and pending records by bin, as Python objects.
- `routing`: F. `state`: S. `operators`: `unary`, `binary` and `state_machine`, which are an F and an S each.

So far state is rows of Python objects; columns, compiled folds, strategies and the controller are to come.
"""

from megaphone.control import Assign, ControlError, Move
from megaphone.operators import binary, state_machine, unary

__all__ = ["Assign", "ControlError", "Move", "binary", "state_machine", "unary"]
