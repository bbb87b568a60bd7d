"""Reading what has travelled as plain data."""

from __future__ import annotations

from dataflow.errors import ProtocolError
from dataflow.values import Value


def fields(plain: object, count: int) -> list[Value]:
    """So many values that were sent together; ProtocolError if they are not so many."""
    if not isinstance(plain, list | tuple) or len(plain) != count:
        raise ProtocolError(f"{plain!r} where {count} values belong")
    return list(plain)
