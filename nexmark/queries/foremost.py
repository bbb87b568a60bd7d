"""The bids that can still win, of a batch: what queries 4, 6 and 9 send on, in the place of every bid. Compiled.

A worker that brings in bids often brings in their auctions as well, since both come in the order of time. Where it
knows an auction, it knows which of its bids for it are valid, and sends the best of these alone. Bids for auctions that
it does not know it sends as they are. So what is left out here could not win anywhere, whatever other workers have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.compiled.kernel import kernel
from dataflow.lowlevel import Context, InputPort, Keeps, OutputPort
from nexmark.events.kernels import Ints

_MOST = 8  # places for each auction, at most: beyond that ids are too far apart for a table of them
Step: TypeAlias = Callable[[InputPort[Columns], InputPort[Columns], OutputPort[Columns]], None]


_INTS = "int64[::1]"


@kernel(f"int64({_INTS}, int64, int32[::1], int64[:,::1], {_INTS}, {_INTS}, {_INTS}, {_INTS}, {_INTS})")
def _foremost(
    auctions: Ints, least: int, places: NDArray[np.int32], known: NDArray[np.int64], prices: Ints, dates: Ints,
    events: Ints, best: Ints, kept: Ints,
) -> int:  # fmt: skip
    """Writes to `kept` the rows of bids for auctions that are not known, and then the best row of each one that is; how
    many. `known` has of each auction when it opens and expires, and its reserve."""
    count, width = 0, np.uint64(places.size)
    for i in range(auctions.size):
        near = np.uint64(auctions[i] - least)  # an id that is too small is very large here
        place = places[near] if near < width else -1
        if place < 0:
            kept[count] = i
            count += 1
        elif dates[i] >= known[place, 0] and dates[i] < known[place, 1] and prices[i] >= known[place, 2]:
            other = best[place]
            if other < 0 or prices[i] > prices[other] or (prices[i] == prices[other] and events[i] < events[other]):
                best[place] = i
    for place in range(best.size):
        if best[place] >= 0:
            kept[count] = best[place]
            count += 1
    return count


class KnownAuctions:
    """The auctions of one batch."""

    def __init__(self, auctions: Columns) -> None:
        ids = auctions["id"]
        self._least = int(ids.min())
        width = int(ids.max()) - self._least + 1
        self._places = np.full(width if width <= _MOST * len(ids) + 1024 else 0, -1, np.int32)
        if len(self._places):
            self._places[ids - self._least] = np.arange(len(ids))
        columns = [auctions[name] for name in ("date_time", "expires", "reserve")]
        self._known = np.ascontiguousarray(np.stack(columns, axis=1), np.int64)

    def foremost(self, bids: Columns) -> Columns:
        """The bids that can win: all for other auctions, and the best one for each of these."""
        columns = [np.ascontiguousarray(bids[name], np.int64) for name in ("auction", "price", "date_time", "event")]
        auctions, prices, dates, events = columns
        best, kept = np.full(len(self._known), -1, np.int64), np.empty(len(bids), np.int64)
        count = _foremost(auctions, self._least, self._places, self._known, prices, dates, events, best, kept)
        return bids.take(kept[:count])


def foremost_bids(auctions: Stream[Columns], bids: Stream[Columns]) -> Stream[Columns]:
    """Bids without those that cannot win, as far as their worker knows: by the last auctions that came there."""

    def make(context: Context) -> Step:
        known: KnownAuctions | None = None  # to lose it changes no answer

        def step(opened: InputPort[Columns], made: InputPort[Columns], output: OutputPort[Columns]) -> None:
            nonlocal known
            for _, batch in opened:
                known = KnownAuctions(batch)
            for message, batch in made:
                output.give(message, batch if known is None else known.foremost(batch))

        return step

    return auctions.binary(bids, "foremost bids", make, keeps=Keeps.NOTHING)
