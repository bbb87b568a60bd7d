"""Logarithmic histograms: any number of values, in bounded memory, with a bounded relative error.

Values below 2^bits have a bucket each; above, each power of two is cut into 2^bits buckets of one width. So the width
of a bucket is at most 2^-bits of its values. `bits=4` gives the buckets of the paper's harness; 7 gives two digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from megaphone.harness.schedule import Ints


def bucket_of(values: Ints, bits: int) -> Ints:
    """The bucket of each value.

    >>> bucket_of(np.array([0, 15, 16, 33, 1000]), bits=4)
    array([  0,  15,  16,  32, 111])
    """
    # The length of a value in bits. Beyond 2^53 it may be rounded up to the next power of two, and seem a bit longer:
    # it is then in the last bucket below that power, which has the same number by either length.
    length = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(length - (bits + 1), 0)
    return (shift << bits) + (values >> shift)


def edges_of(buckets: Ints, bits: int) -> tuple[Ints, Ints]:
    """The lowest value of each bucket, and the lowest beyond it.

    >>> [edge.tolist() for edge in edges_of(np.array([15, 32, 111]), bits=4)]
    [[15, 32, 992], [16, 34, 1024]]
    """
    shift = np.maximum((buckets >> bits) - 1, 0)
    lower = (buckets - (shift << bits)) << shift
    return lower, lower + (np.int64(1) << shift)


class PlainHistogram(TypedDict):
    """A histogram as plain data: buckets in use and their counts."""

    bits: int
    least: int
    greatest: int
    buckets: list[int]
    counts: list[int]


class Histogram:
    """Counts of integers that are not negative, by bucket; the least and the greatest exactly.

    `record` costs some array operations over the values, `merge` and `quantile` one over the buckets in use.

    >>> latencies = Histogram(bits=4)
    >>> latencies.record([3, 5, 5, 1000])
    >>> latencies.quantile(0.5), latencies.quantile(0.75), latencies.quantile(1), len(latencies)
    (5, 5, 1000, 4)
    """

    def __init__(self, bits: int = 7) -> None:
        if type(bits) is not int or not 1 <= bits <= 16:
            raise ValueError(f"bits must be an integer from 1 to 16, not {bits!r}")
        self.bits = bits
        self.least = -1  # -1: nothing was recorded
        self.greatest = -1
        self._first = 0  # the bucket that the first count is of
        self._counts: Ints = np.zeros(0, np.int64)

    def record(self, values: Iterable[int] | Ints, weights: Ints | None = None) -> None:
        """Counts each value as often as its weight says: once, unless told otherwise."""
        values = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64)
        if weights is not None:
            values, weights = values[weights > 0], weights[weights > 0]
        if not len(values):
            return
        least, greatest = int(values.min()), int(values.max())
        if least < 0:
            raise ValueError(f"a histogram counts values that are not negative, and was given {least}")
        buckets = bucket_of(values, self.bits)
        first = int(buckets.min())
        counts = np.zeros(int(buckets.max()) - first + 1, np.int64)
        np.add.at(counts, buckets - first, 1 if weights is None else weights)
        self.add(first, counts, least, greatest)

    def add(self, first: int, counts: Ints, least: int, greatest: int) -> None:
        """Adds counts by bucket, from bucket `first` on, of values of which these are the least and the greatest."""
        if least < 0 or not counts.any():
            return
        self.least = least if self.least < 0 else min(self.least, least)
        self.greatest = max(self.greatest, greatest)
        if not len(self._counts):
            self._first, self._counts = first, counts.copy()
            return
        begin, end = min(first, self._first), max(first + len(counts), self._first + len(self._counts))
        if end - begin > len(self._counts):
            wider = np.zeros(end - begin, np.int64)
            wider[self._first - begin :][: len(self._counts)] = self._counts
            self._first, self._counts = begin, wider
        self._counts[first - self._first :][: len(counts)] += counts

    def merge(self, other: Histogram) -> None:
        """Adds everything that the other histogram has counted."""
        if other.bits != self.bits:
            raise ValueError(f"histograms of {self.bits} and {other.bits} bits cannot be merged")
        self.add(other._first, other._counts, other.least, other.greatest)

    def __len__(self) -> int:
        return int(self._counts.sum())

    def quantile(self, q: float) -> int:
        """The value that at least the fraction q of all values do not exceed.

        At least that value, and less than 2^-bits of it too much; exact for q = 1, the maximum. 0 if there are none.
        """
        return self.quantiles([q])[0]

    def quantiles(self, qs: Iterable[float]) -> list[int]:
        """Several quantiles in one pass."""
        running = np.cumsum(self._counts)
        return [self._ranked(running, _rank(q, int(running[-1]) if len(running) else 0)) for q in qs]

    def _ranked(self, running: Ints, rank: int) -> int:
        if not len(running):
            return 0
        bucket = int(np.searchsorted(running, rank)) + self._first
        _, upper = edges_of(np.array([bucket]), self.bits)
        return min(int(upper[0]) - 1, self.greatest)

    def ccdf(self) -> tuple[Ints, NDArray[np.float64]]:
        """(values, fractions): of all values that fraction is greater. The last is the maximum, with 0."""
        used = np.flatnonzero(self._counts)
        _, upper = edges_of(used + self._first, self.bits)
        running = np.cumsum(self._counts[used])
        above = (running[-1:] - running) / np.maximum(running[-1:], 1)
        return np.minimum(upper - 1, self.greatest), above

    def to_dict(self) -> PlainHistogram:
        """All of it as plain data: buckets in use and their counts."""
        used = np.flatnonzero(self._counts)
        return {
            "bits": self.bits,
            "least": self.least,
            "greatest": self.greatest,
            "buckets": (used + self._first).tolist(),
            "counts": self._counts[used].tolist(),
        }

    @classmethod
    def from_dict(cls, plain: PlainHistogram) -> Histogram:
        """The histogram that `to_dict` described."""
        histogram = cls(plain["bits"])
        buckets = np.asarray(plain["buckets"], np.int64)
        if len(buckets):
            counts = np.zeros(int(buckets[-1] - buckets[0]) + 1, np.int64)
            counts[buckets - buckets[0]] = plain["counts"]
            histogram.add(int(buckets[0]), counts, plain["least"], plain["greatest"])
        return histogram

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<histogram of {len(self)} values, {self.least} to {self.greatest}>"


def _rank(q: float, total: int) -> int:
    """Which value, counted from the least, has a fraction q at or below it. q is taken as it is written: 0.07 is 7/100.

    >>> _rank(0.07, 100), _rank(0.0, 100), _rank(1, 100)
    (7, 1, 100)
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile is between 0 and 1, and {q!r} is not")
    return max(1, ceil(Fraction(repr(float(q))) * total))
