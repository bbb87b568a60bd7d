"""The migration transition matrix (MTM): how likely the next node count is, given this one (section 4.2; 5.2).

Table 4 of the papers counts staying, on its diagonal; their experiments (section 6) count only changes. `from_history`
does either, changes only unless told: staying costs nothing and is not a migration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.errors import BadRequest
from planners.model import integers

EXACT = 1e-9  # rows sum to one within this


@dataclass(frozen=True, eq=False, init=False)
class Transitions:
    """`matrix[i, j]`: the probability to go from `counts[i]` nodes to `counts[j]`.

    >>> table_4 = Transitions([2, 3, 4], [[0.3, 0.6, 0.1], [0.3, 0.4, 0.3], [0.1, 0.5, 0.4]])
    >>> table_4.probability(2, 3)
    0.6
    """

    counts: tuple[int, ...]
    matrix: NDArray[np.float64]

    def __init__(self, counts: Iterable[int], matrix: ArrayLike) -> None:
        checked, array = _node_counts(counts), _array(matrix)
        if array.shape != (len(checked), len(checked)):
            raise BadRequest(
                f"{len(checked)} node counts need a matrix of {len(checked)} rows and columns, not {array.shape}"
            )
        for count, row in zip(checked, array, strict=True):
            if not np.isfinite(row).all() or (row < 0).any():
                raise BadRequest(f"the row of {count} nodes has {row.tolist()}: probabilities are zero or more")
            if abs(row.sum() - 1) > EXACT:
                raise BadRequest(
                    f"the row of {count} nodes sums to {row.sum():.12g}, not to 1. Divide it by its sum; a node count "
                    "that is never left stays with probability one"
                )
        array.flags.writeable = False
        object.__setattr__(self, "counts", checked)
        object.__setattr__(self, "matrix", array)

    def probability(self, now: int, then: int) -> float:
        """How likely it is to go from so many nodes to so many."""
        return float(self.matrix[self.index(now), self.index(then)])

    def index(self, count: int) -> int:
        """The row and column of a node count."""
        if count not in self.counts:
            raise BadRequest(f"the matrix knows {list(self.counts)} nodes, not {count}")
        return self.counts.index(count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions):
            return NotImplemented
        return self.counts == other.counts and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.counts, self.matrix.tobytes()))

    def sample(self, start: int, length: int, seed: int) -> list[int]:
        """So many node counts, each drawn from the row of the one before; the first follows `start`."""
        rng, state, drawn = np.random.default_rng(seed), self.index(start), []
        for _ in range(length):
            state = int(rng.choice(len(self.counts), p=self.matrix[state]))
            drawn.append(self.counts[state])
        return drawn


def from_history(history: Sequence[int], staying: bool = False) -> Transitions:
    """The matrix of a history of node counts, one for each interval of time.

    >>> from_history([2, 2, 3, 2, 3, 3, 4]).matrix.tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]
    >>> from_history([2, 2, 3, 2, 3, 3, 4], staying=True).probability(2, 2)
    0.3333333333333333
    """
    if not history:
        raise BadRequest("a history without a single node count has no transitions")
    seen: dict[tuple[int, int], int] = {}
    for pair in pairwise(history):
        seen[pair] = seen.get(pair, 0) + 1
    return from_counts(seen, _node_counts(sorted(set(history))), staying)


def from_counts(seen: Mapping[tuple[int, int], int], counts: Iterable[int], staying: bool = False) -> Transitions:
    """The matrix of how often each (from, to) was seen."""
    order = _node_counts(counts)
    place = {count: i for i, count in enumerate(order)}
    matrix = np.zeros((len(order), len(order)))
    for (now, then), times in seen.items():
        if staying or now != then:
            matrix[place[now], place[then]] += times
    for i, row in enumerate(matrix):
        if row.sum():
            row /= row.sum()
        else:
            matrix[i, i] = 1.0  # never left, as far as the history knows
    return Transitions(order, matrix)


def _array(matrix: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.array(matrix, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadRequest("a matrix has rows of numbers, all of one length") from None


def _node_counts(counts: Iterable[int]) -> tuple[int, ...]:
    checked = integers("node counts", counts)
    if not checked or checked[0] < 1 or any(b <= a for a, b in pairwise(checked)):
        raise BadRequest(f"node counts are whole numbers, one or more, in ascending order; {list(checked)} are not")
    return checked
