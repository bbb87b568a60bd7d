"""Heavy keys of a stream. The sketch itself is `megaphone`'s, whose operators keep one each."""

from megaphone.load.sketch import ROOM, Heavy, SpaceSaving

__all__ = ["ROOM", "Heavy", "SpaceSaving"]
