"""Values that msgpack takes for something else without asking: a bytearray or memoryview for bytes, an extension of
msgpack's own for one of ours.

We look for them after the value was packed, since only then is it known to be finite. The search is a pass over the
types of all values, in C. If it finds any (hardly ever), each is put into a `Revealed`, which msgpack asks about.
"""

from __future__ import annotations

import gc
from collections.abc import Collection

import msgpack

from dataflow.comm.values.refusal import Refusal
from dataflow.comm.values.shapes import require_bytes

_PRETENDERS = frozenset({bytearray, memoryview, msgpack.ExtType})
_TRANSPARENT = frozenset({list, dict})  # what msgpack looks into by itself
SUSPECTS = _PRETENDERS | _TRANSPARENT


class Revealed:
    """A value that msgpack would take for something else."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def hides(values: Collection[object]) -> bool:
    """Whether there is such a value among these, or in lists and dictionaries in them. They must be finite."""
    level = values
    while not (kinds := set(map(type, level))).isdisjoint(SUSPECTS):
        if not kinds.isdisjoint(_PRETENDERS):
            return True
        inside = level if kinds <= _TRANSPARENT else [value for value in level if type(value) in _TRANSPARENT]
        level = gc.get_referents(*inside)  # all that is in them, but for keys of dictionaries that have only strings
    return False


def reveal(value: object) -> object:
    """The value with every such value in it put into a `Revealed`."""
    if type(value) in _PRETENDERS:
        return Revealed(value)
    if type(value) is list:
        return [reveal(item) for item in value]
    if type(value) is dict:
        return {reveal(key): reveal(item) for key, item in value.items()}
    return value


def of_revealed(revealed: Revealed) -> bytes:
    """The bytes of a bytearray; a refusal of anything else."""
    value = revealed.value
    if type(value) is bytearray:
        return bytes(value)
    if type(value) is memoryview:
        raise Refusal(value, "Send bytes: `bytes(view)`.")
    raise Refusal(value, "Send its code and its data: `tuple(value)`.")


def to_bytearray(plain: object) -> bytearray:
    """The bytearray that `of_revealed` was given."""
    return bytearray(require_bytes(plain))
