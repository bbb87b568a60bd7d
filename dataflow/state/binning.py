"""From a key of a row to its bin: the most significant bits of a good hash. The same on every worker and in every run.

Keys of columns are hashed in compiled code: see `dataflow.columns.hashing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dataflow.channels.blame import name_last
from dataflow.channels.hashing import hash_strings, stable_hash
from dataflow.channels.pact import Batch
from dataflow.state.arrays import Words
from dataflow.state.values import Key, Record

_MASK = (1 << 64) - 1
MANY = 64  # keys, from which on it pays to take them together


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


def bins_of(keys: Sequence[Key], shift: int) -> Words | None:
    """The bins of many keys that are all strings or all integers of 64 bits, at a tenth of the price; None of others.

    >>> keys = ["the", "quick", "brown", "fox"]
    >>> bins_of(keys, 60).tolist() == [bin_of(key, 60) for key in keys], bins_of([1, 2.5], 60)
    (True, None)
    """
    kinds = set(map(type, keys))
    if kinds == {str}:
        hashes = np.array(hash_strings(keys), np.uint64)
    elif kinds == {int}:
        try:
            hashes = np.array(keys, np.int64).view(np.uint64)
        except OverflowError:
            return None
    else:
        return None
    return _mix_all(hashes) >> np.uint64(shift) if shift < 64 else np.zeros(len(keys), np.uint64)


def _mix_all(values: Words) -> Words:
    """`mix`, of many."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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


class OwnBins:
    """A partitioning of the program's own: a function from a key to the number of one of so many bins.

    >>> by_letter = OwnBins(lambda word: ord(word[0]) - ord("a"), 26, "words")
    >>> by_letter("fox")
    5
    """

    def __init__(self, function: Callable[[Key], int], bins: int, name: str) -> None:
        self._function = function
        self._bins = checked_bins(bins)
        self._name = name

    def __call__(self, key: Key) -> int:
        number = self._function(key)
        if type(number) is not int or not 0 <= number < self._bins:
            raise ValueError(
                f"{self._name}: bin_of gives {number!r} for the key {key!r}; it gives a number from 0 to "
                f"{self._bins - 1}, an int, as there are {self._bins} bins"
            )
        return number


def spread_over(bins: int) -> Callable[[Key], int]:
    """Keys hashed to any number of bins, as evenly as to a power of two.

    >>> {spread_over(3)(key) for key in range(20)}
    {0, 1, 2}
    """
    return lambda key: mix(stable_hash(key)) * bins >> 64


class Binning:
    """The bins of records, by their keys, one batch after another. `own`: a function in place of the hash."""

    def __init__(self, key_of: Callable[[Record], Key], shift: int, own: Callable[[Key], int] | None = None) -> None:
        self._key_of = key_of
        self._shift = shift
        self._own = own
        self._known = KnownBins(shift)

    def bins(self, batch: Batch) -> list[int]:
        """Of a batch of records. What their keys raise gets a note that names the record."""
        bins = self._bins(batch)
        return bins if isinstance(bins, list) else bins.tolist()

    def numbers(self, batch: Batch) -> Words:
        """The same as an array, for many records."""
        return np.asarray(self._bins(batch), np.uint64)

    def _bins(self, batch: Batch) -> list[int] | Words:
        left: Iterator[object] = iter(batch)
        try:
            keys = list(map(self._key_of, left))
            bins = bins_of(keys, self._shift) if len(keys) >= MANY and self._own is None else None
            if bins is not None:
                return bins
            left = iter(keys)
            return [self._bin(key) for key in left]
        except Exception as error:
            name_last(error, batch, left)
            raise

    def _bin(self, key: Key) -> int:
        if self._own is not None:
            return self._own(key)
        kind = type(key)
        return self._known[key] if kind is str or kind is int else bin_of(key, self._shift)


def checked_bins(bins: int) -> int:
    """A number of bins; ValueError unless it is one, up to 2^20."""
    if type(bins) is not int or not 1 <= bins <= 1 << 20:
        raise ValueError(f"the number of bins is from 1 to 2^20, not {bins!r}")
    return bins


def shift_of(bins: int) -> int:
    """How far a hash is shifted for that many bins; ValueError unless they are a power of two up to 2^20.

    >>> shift_of(4096)
    52
    """
    if type(bins) is not int or bins < 1 or bins & (bins - 1) or bins > 1 << 20:
        raise ValueError(f"the number of bins must be a power of two up to 2^20, not {bins!r}")
    return 64 - (bins.bit_length() - 1)
