"""A traffic matrix as a sequence of phases in which no critical link idles. Pure.

Rows send and columns receive, each at most at its speed. No schedule takes less time than the busiest link needs.
Phases of constant rates reach that time: each phase uses every link at its full speed, and a link that is not critical
carries padding besides (Birkhoff's theorem). With equal speeds a phase is a matching, and the phases are an edge
colouring of the traffic, as in the technique that section 3.2 (5.1) refers to. With speeds that differ, a fast link
serves several slow ones at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

TINY = 1e-12  # shares of the whole that are rounding, and nothing else


@dataclass(frozen=True)
class Phase:
    """For so long, each row sends to each column at these rates."""

    duration: float
    rates: Matrix


def least_time(traffic: Matrix, up: Matrix, down: Matrix) -> float:
    """The time that the busiest link needs: no schedule is shorter.

    >>> least_time(np.array([[0, 4.0], [2, 0]]), up=np.array([1.0, 1]), down=np.array([1.0, 2]))
    4.0
    """
    return float(max((traffic.sum(axis=1) / up).max(initial=0), (traffic.sum(axis=0) / down).max(initial=0)))


def phases(traffic: Matrix, up: Matrix, down: Matrix) -> Iterator[Phase]:
    """Phases that carry all traffic in the least time: O(pairs with traffic) of them, mostly far fewer.

    >>> for phase in phases(np.array([[0, 2.0, 1], [1, 0, 0], [0, 0, 0]]), np.ones(3), np.ones(3)):
    ...     print(phase.duration, np.argwhere(phase.rates).tolist())
    2.0 [[0, 1]]
    1.0 [[0, 2], [1, 0]]
    """
    left = least_time(traffic, up, down)
    n = len(traffic)
    rest, speeds_up, speeds_down = _padded(traffic, up, down, left)
    slower = np.minimum(speeds_up[:, None], speeds_down[None, :])
    tiny, threshold = TINY * left, left
    flow = _Flow(speeds_up, speeds_down)
    while left > tiny:
        # Pairs that are busy for long come first, and make long phases: else there could be one for every pair.
        flow.release((flow.rates > 0) & (rest <= threshold * slower))
        if not flow.saturate(rest > threshold * slower) and threshold > 0:
            threshold = threshold / 2 if threshold > tiny else 0.0
            continue
        used = flow.rates > 0
        if not used.any():
            return  # what is left is rounding
        duration = min(left, float((rest[used] / flow.rates[used]).min()))
        if (flow.rates[:n, :n] > 0).any():
            yield Phase(duration, flow.rates[:n, :n].copy())
        rest[used] -= duration * flow.rates[used]
        left -= duration
        rest[rest <= tiny * slower] = 0.0


def _padded(traffic: Matrix, up: Matrix, down: Matrix, time: float) -> tuple[Matrix, Matrix, Matrix]:
    """Traffic filled up so that every link is busy all the time: each row and column then sums to speed x time."""
    idle_up = np.maximum(up * time - traffic.sum(axis=1), 0)
    idle_down = np.maximum(down * time - traffic.sum(axis=0), 0)
    matrix = np.block([[traffic, np.diag(idle_up)], [np.diag(idle_down), traffic.T]])
    return matrix, np.concatenate([up, down]), np.concatenate([down, up])


class _Flow:
    """Rates of rows to columns that use every link at its full speed, repaired from phase to phase."""

    def __init__(self, up: Matrix, down: Matrix) -> None:
        self.rates = np.zeros((len(up), len(down)))
        self._up, self._down = up.copy(), down.copy()  # what is not used of each link
        self._tiny = TINY * max(up.max(), down.max())

    def release(self, pairs: NDArray[np.bool_]) -> None:
        """Nothing is left to send between these."""
        freed = np.where(pairs, self.rates, 0.0)
        self._up += freed.sum(axis=1)
        self._down += freed.sum(axis=0)
        self.rates[pairs] = 0.0

    def saturate(self, open_pairs: NDArray[np.bool_]) -> bool:
        """Augments over these pairs, as for a maximum flow, while rows can send more; whether all links are used."""
        for row in np.flatnonzero(self._up > self._tiny):
            while self._up[row] > self._tiny:
                if not (path := self._path(int(row), open_pairs)):
                    return False
                self._augment(path)
        return True

    def _path(self, start: int, open_pairs: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Pairs to raise and to lower in turn, from a row that can send more to a column that can receive more."""
        came_from: dict[int, int] = {}  # by column, the row
        back: dict[int, int] = {start: -1}  # by row, the column whose rate it can lower
        queue = [start]
        for row in queue:
            for column in np.flatnonzero(open_pairs[row]).tolist():
                if column in came_from:
                    continue
                came_from[column] = row
                if self._down[column] > self._tiny:
                    return self._trace(column, came_from, back)
                for other in np.flatnonzero(self.rates[:, column] > self._tiny).tolist():
                    if other not in back:
                        back[other] = column
                        queue.append(other)
        return []

    @staticmethod
    def _trace(column: int, came_from: dict[int, int], back: dict[int, int]) -> list[tuple[int, int]]:
        path = []
        while column >= 0:
            row = came_from[column]
            path.append((row, column))
            column = back[row]
            if column >= 0:
                path.append((row, column))
        return path

    def _augment(self, path: list[tuple[int, int]]) -> None:
        raised, lowered = path[::2], path[1::2]
        amount = min(self._up[raised[-1][0]], self._down[raised[0][1]], *(self.rates[pair] for pair in lowered))
        for pair in raised:
            self.rates[pair] += amount
        for pair in lowered:
            self.rates[pair] -= amount
            if self.rates[pair] <= self._tiny:
                self.rates[pair] = 0.0
        self._up[raised[-1][0]] -= amount
        self._down[raised[0][1]] -= amount
