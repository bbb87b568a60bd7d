"""Which bins there are: a prefix tree over the finest ones, whose leaves are the bins (section 4.4). Pure.

The finest bins are numbered and never change. A bin is a prefix, `0110*`: the finest bins whose numbers begin with
these bits. So it is a run of 2^j of them that begins at a multiple of 2^j. Splitting and merging bins regroups finest
ones, and touches no state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from megaphone.control.checks import brief, within
from megaphone.errors import ControlError

Numbers: TypeAlias = NDArray[np.int64]
Levels: TypeAlias = NDArray[np.uint8]
_PREFIX = re.compile(r"([01]{0,20})\*")


@dataclass(frozen=True, slots=True)
class BinRun:
    """A bin, by its finest ones: the first, and how many."""

    first: int
    count: int

    @property
    def slice(self) -> slice:
        """Its part of an array by finest bin."""
        return slice(self.first, self.first + self.count)


def _halves(finest: int) -> bool:
    """Whether so many bins make a tree of prefixes. If not, each stays as it is."""
    return finest & (finest - 1) == 0


def prefix_of(run: BinRun, finest: int) -> str:
    """The name of a bin.

    >>> prefix_of(BinRun(8, 8), 16), prefix_of(BinRun(0, 16), 16)
    ('1*', '*')
    """
    if not _halves(finest):
        return str(run.first)
    length = (finest // run.count).bit_length() - 1
    return f"{run.first // run.count:0{length}b}*" if length else "*"


def run_of(bin: SupportsIndex | str, finest: int) -> BinRun:
    """The bin of a name: a prefix with a star, or the number of a finest one. ControlError if there is none.

    >>> run_of("011*", 16), run_of(5, 16)
    (BinRun(first=6, count=2), BinRun(first=5, count=1))
    """
    if not isinstance(bin, str):
        return BinRun(within(bin, finest, "bin"), 1)
    if not _halves(finest):
        raise ControlError(f"there is no bin {brief(bin)}: {finest} bins are no power of two, and have numbers only")
    match = _PREFIX.fullmatch(bin)
    depth = finest.bit_length() - 1
    if match is None:
        raise ControlError(f"{brief(bin)} is not a bin: say its first bits and a star, as in '0110*', or a number")
    bits = match[1]
    if len(bits) > depth:
        raise ControlError(f"there is no bin {bin!r}: the finest of {finest} bins have {depth} bits")
    return BinRun(int(bits or "0", 2) << (depth - len(bits)), finest >> len(bits))


@dataclass(frozen=True, slots=True)
class Split:
    """As of the time at which this is sent, `bin` is cut into so many bins, or more where it was cut finer before."""

    bin: str
    into: int = 2
    operator: str = field(default="", repr=False)  # whom it is for; all operators on the stream, if it does not say


@dataclass(frozen=True, slots=True)
class Merge:
    """As of the time at which this is sent, `bin` is one bin: at `worker`, or where its first finest bin was."""

    bin: str
    worker: int | None = None
    operator: str = field(default="", repr=False)

    def renumbered(self, workers: int) -> Merge:
        """The same, where there are other workers now."""
        return self if self.worker is None else replace(self, worker=self.worker % workers)


def check_shape(update: Split | Merge, finest: int, peers: int) -> Split | Merge:
    """The update in its normal form; ControlError says what is wrong with it."""
    if not isinstance(update.bin, str):
        raise ControlError(f"{brief(update.bin)} is not a bin: say its first bits and a star, as in '0110*'")
    run = run_of(update.bin, finest)
    if isinstance(update, Merge):
        worker = None if update.worker is None else within(update.worker, peers, "worker")
        return Merge(update.bin, worker, update.operator)
    into: object = update.into
    if isinstance(into, bool) or not isinstance(into, int | np.integer) or into < 1 or into & (into - 1):
        raise ControlError(f"a bin is split into 2, 4, 8 or another power of two, not into {brief(into)}")
    if into > run.count:
        raise ControlError(
            f"{update.bin} cannot be split into {into} bins: the operator has {finest} bins at the finest, and "
            f"{run.count} of them in this one"
        )
    return Split(update.bin, int(into), update.operator)


class BinTree:
    """The bins that there are. Never changed once it is made; making another costs O(finest bins).

    >>> tree = BinTree.even(16, 2).split([Split("1*")])
    >>> tree.names, tree.counts.tolist(), len(tree)
    (['0*', '10*', '11*'], [8, 4, 4], 3)
    """

    def __init__(self, levels: Levels) -> None:
        self.levels = levels  # by finest bin, how many bits the prefix of its bin has; invariant: see _check
        self.finest = len(levels)
        self._depth = self.finest.bit_length() - 1

    @classmethod
    def even(cls, finest: int, bins: int) -> BinTree:
        """So many bins of one size."""
        return cls(np.full(finest, bins.bit_length() - 1, np.uint8))

    @classmethod
    def of_counts(cls, counts: Sequence[int] | Numbers) -> BinTree:
        """Bins with so many finest ones each, in order. ValueError if they are no prefixes."""
        array = np.asarray(counts, np.int64)
        finest = int(array.sum())
        if finest and (array == 1).all():
            return cls.even(finest, finest)
        firsts = np.cumsum(array) - array
        if finest < 1 or (array < 1).any() or finest & (finest - 1) or (array & (array - 1)).any():
            raise ValueError("numbers of finest bins are powers of two, and so is their sum")
        if (firsts % array).any():
            raise ValueError("a bin begins at a multiple of its length")
        levels = np.log2(finest // array).astype(np.uint8)
        return cls(np.repeat(levels, array))

    @cached_property
    def firsts(self) -> Numbers:
        """By bin, its first finest one. A bin's place in this is its index."""
        if self.is_finest:
            return np.arange(self.finest)
        counts = self.finest >> self.levels.astype(np.int64)
        return np.flatnonzero(np.arange(self.finest) % counts == 0)

    @cached_property
    def counts(self) -> Numbers:
        """By bin, how many finest ones it has."""
        found: Numbers = self.finest >> self.levels[self.firsts].astype(np.int64)
        return found

    @cached_property
    def is_finest(self) -> bool:
        """Whether no bin can be split."""
        return bool((self.levels == self._depth).all())

    @property
    def runs(self) -> list[BinRun]:
        """The bins, in order."""
        return [BinRun(*run) for run in zip(self.firsts.tolist(), self.counts.tolist(), strict=True)]

    @property
    def names(self) -> list[str]:
        """Their prefixes."""
        return [prefix_of(run, self.finest) for run in self.runs]

    def __len__(self) -> int:
        return len(self.firsts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BinTree) and np.array_equal(self.levels, other.levels)

    __hash__ = None  # type: ignore[assignment]

    def run_at(self, number: int) -> BinRun:
        """The bin that has a finest one."""
        count = self.finest >> int(self.levels[number])
        return BinRun(number // count * count, count)

    def indexes(self, numbers: NDArray[np.integer]) -> Numbers:
        """The bins, by index, that have these finest ones."""
        if self.is_finest:
            return numbers.astype(np.int64)
        return np.searchsorted(self.firsts, numbers, side="right").astype(np.int64) - 1

    def total(self, by_finest: NDArray[np.integer]) -> Numbers:
        """Sums by bin."""
        if self.is_finest:
            return by_finest.astype(np.int64)
        return np.add.reduceat(by_finest.astype(np.int64), self.firsts)

    def spread(self, by_bin: Sequence[int] | NDArray[np.integer]) -> Numbers:
        """What each bin has, for each of its finest ones."""
        return np.repeat(np.asarray(by_bin, np.int64), self.counts)

    def merge(self, merges: Iterable[Merge]) -> BinTree:
        """The tree in which these are bins, unless they are parts of coarser ones."""
        levels = self.levels.copy()
        for update in merges:
            run = run_of(update.bin, self.finest)
            part = levels[run.slice]
            np.minimum(part, self._level(run), out=part)
        return BinTree(levels)

    def split(self, splits: Iterable[Split]) -> BinTree:
        """The tree in which these are cut, and with them whatever they are parts of."""
        levels = self.levels.copy()
        for update in splits:
            run = run_of(update.bin, self.finest)
            part = levels[run.slice]
            np.maximum(part, self._level(run) + update.into.bit_length() - 1, out=part)
            for level in range(1, self._level(run) + 1):  # what has the bin, from the outside in, is no bin any more
                count = self.finest >> (level - 1)
                around = levels[BinRun(run.first // count * count, count).slice]
                np.maximum(around, level, out=around)
        return BinTree(levels)

    def cut(self, places: NDArray[np.integer]) -> BinTree:
        """The coarsest tree that is as fine as this one, and in which all finest bins of a bin have one place."""
        if self.is_finest or self.is_uniform(places):
            return self
        levels = self.levels.copy()
        for level in range(self._depth):
            by_node = places.reshape(1 << level, -1)
            divided = (by_node != by_node[:, :1]).any(axis=1)
            if not divided.any():
                break
            within_node = levels.reshape(1 << level, -1)
            within_node[divided] = np.maximum(within_node[divided], level + 1)
        return BinTree(levels)

    def is_uniform(self, places: NDArray[np.integer]) -> bool:
        """Whether all finest bins of each bin have one place."""
        return bool((places == np.repeat(places[self.firsts], self.counts)).all())

    def at_least(self, bins: int) -> BinTree:
        """The tree with so many bins, as far as there are finer ones: the largest are split, level by level."""
        tree = self
        while len(tree) < bins and not tree.is_finest:
            coarsest = tree.levels == tree.levels.min()
            tree = BinTree(np.where(coarsest, tree.levels + 1, tree.levels).astype(np.uint8))
        return tree

    def _level(self, run: BinRun) -> int:
        return (self.finest // run.count).bit_length() - 1

    def _check(self) -> None:
        assert (self.firsts % self.counts == 0).all(), "a bin begins at a multiple of its length"
        assert self.counts.sum() == self.finest, "bins are disjoint, and together are everything"
