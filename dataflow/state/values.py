"""Users' own values, which pass through stores and which nobody here looks into."""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""Whatever a user has: what follows are values that have a place in a store."""
Key: TypeAlias = Value
"""A user's key: a plain value in rows, a 64-bit word in columns."""
Record: TypeAlias = Value
"""A user's record."""
State: TypeAlias = Value
"""A user's state, of a bin or of a key."""
