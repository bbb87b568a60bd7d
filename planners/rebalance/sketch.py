"""Heavy keys of a stream. The sketch itself is `megaphone`'s, whose operators keep one each.

It is imported when it is first asked for: plans are made without an engine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from megaphone.load.sketch import ROOM, Heavy, SpaceSaving

__all__ = ["ROOM", "Heavy", "SpaceSaving"]


def __getattr__(name: str) -> object:
    """Imports `megaphone`'s sketch for a name of it (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from megaphone.load import sketch

    value: object = getattr(sketch, name)
    globals()[name] = value
    return value
