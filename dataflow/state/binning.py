"""From a key of a row to its bin: the most significant bits of a good hash. The same on every worker and in every run.

Keys of columns are hashed in compiled code: see `dataflow.columns.hashing`.
"""

from __future__ import annotations

from dataflow.channels.hashing import stable_hash
from dataflow.state.values import Key

_MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Scatters 64 bits (the finaliser of splitmix64): neighbouring integers end far apart, in all bits."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def bin_of(key: Key, shift: int) -> int:
    """The bin of a key, where there are 2^(64 - shift) bins.

    >>> {bin_of(key, 62) for key in range(20)} == {0, 1, 2, 3}
    True
    """
    return mix(stable_hash(key)) >> shift


class KnownBins(dict[Key, int]):
    """The bins of keys that have come before: hashing a string in Python takes ten times as long as looking it up.

    For keys whose type is `str` or `int` alone: others may be equal and have different hashes. Holds at most so many
    keys, and then begins anew.

    >>> known = KnownBins(62)
    >>> known["fox"] == bin_of("fox", 62) == known["fox"]
    True
    """

    __slots__ = ("_most", "_shift")

    def __init__(self, shift: int, most: int = 1 << 17) -> None:
        self._shift = shift
        self._most = most

    def __missing__(self, key: Key) -> int:
        if len(self) >= self._most:
            self.clear()
        number = self[key] = bin_of(key, self._shift)
        return number


def shift_of(bins: int) -> int:
    """How far a hash is shifted for that many bins; ValueError unless they are a power of two up to 2^20.

    >>> shift_of(4096)
    52
    """
    if type(bins) is not int or bins < 1 or bins & (bins - 1) or bins > 1 << 20:
        raise ValueError(f"the number of bins must be a power of two up to 2^20, not {bins!r}")
    return 64 - (bins.bit_length() - 1)
