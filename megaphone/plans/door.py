"""The door to a store of plans: what F, S and controllers ask of it beyond what they ask of any store.

A store of rows and one of columns implement this, each in its own way. docs/internals/plans.md says when each call
comes, and what may be relied upon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dataflow.comm import codec
from dataflow.state.pieces import Piece, pad, unpad
from dataflow.state.store import B, Store
from megaphone.control.replans import Replan

REPLAN = 1 << 20  # the part of pieces that are replans, and no state: no store has so many parts
_MOST = 1 << 14  # bins of one piece


@dataclass(frozen=True, slots=True)
class PlanView:
    """What is known of a bin's plan, to look at."""

    plan: str  # that it runs; while it migrates, the old one
    next: str | None = None  # the new one, while it migrates
    method: str | None = None  # and how it does
    since: int | None = None  # the time at which that began
    queued: tuple[str, ...] = ()  # plans that wait for it


class PlanStore(Store[B]):
    """A store whose bins each have a plan."""

    def put(self, piece: Piece) -> None:
        if piece.part == REPLAN:
            time, bins, replan = replan_of(piece)
            if int(bins.max()) >= self.bins:
                raise ValueError(f"a plan for bin {int(bins.max())}, of which there is none")
            self.note(time, bins, replan)
        else:
            self.put_state(piece)

    @abstractmethod
    def put_state(self, piece: Piece) -> None:
        """`put`, for pieces that are state."""

    @abstractmethod
    def note(self, time: int, bins: NDArray[np.int64], replan: Replan) -> None:
        """As of a time of which nothing has been applied, bins have another plan: it begins in `run` at that time, or
        when the one before is over. The bins may be empty, or not all of their pieces may have come."""

    @property
    @abstractmethod
    def next_work(self) -> int | None:
        """The bin that `work` would change, if there is something to do in the background."""

    @abstractmethod
    def work(self, budget: int) -> None:
        """Does some of it: looks at about so many pairs."""

    @abstractmethod
    def plan_of(self, bin: int) -> PlanView:
        """The plan of a bin that is here. O(1)."""


def replan_pieces(time: int, bins: NDArray[np.int64], replan: Replan) -> Iterator[Piece]:
    """A replan of some bins, as pieces on the way from F to S."""
    data = codec.encode([replan.plan, replan.method, replan.share, replan.background, replan.order])
    for start in range(0, len(bins), _MOST):
        some = bins[start : start + _MOST].astype(np.uint64)
        yield Piece(int(some[0]), REPLAN, time, (len(data), 0, 0), pad(data), some)


def replan_of(piece: Piece) -> tuple[int, NDArray[np.int64], Replan]:
    """The time, the bins and the replan of such a piece."""
    plan, method, share, background, order = codec.decode(unpad(piece.words, piece.head[0]))
    return piece.at, piece.description.astype(np.int64), Replan(plan, method, None, share, background, order)
