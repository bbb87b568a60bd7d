"""Users' own values, which pass through the engine and which nobody here looks into: one `Any`, with names that say
what the value is to whoever handles it."""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""Whatever a user has: what follows are values in a certain place."""
Record: TypeAlias = Value
"""A record: a row, or a row of columns."""
Key: TypeAlias = Value
"""What records are grouped and routed by. In rows it is anything that `stable_hash` takes, in columns a 64-bit word."""
State: TypeAlias = Value
"""The state of a bin or of a key."""
