"""What is known of the streams of a join: rates, and how likely records of several streams go together. Plain data.

A join has a key, residual predicates between pairs, or both. `same_key` is the share of all pairs of records of two
streams that have the same key, `holds` the share of pairs with the same key whose predicate holds. With one key for all
streams, having it is transitive, so that shares of pairs cannot simply be multiplied. What is known of more streams is
in `together`. Where nothing is, a stream is added by its likeliest pair: exact if keys are uniform and each stream's
are among those of another (a rare stream's among the common ones'), too low if keys are skewed alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from planners.errors import BadRequest
from planners.model import real

Streams: TypeAlias = frozenset[str]
MOST = 10  # streams: orders are searched over all subsets


@dataclass(frozen=True)
class JoinStatistics:
    """A pair that `same_key` or `holds` does not name has 1. `sampled`: by stream, how many records were looked at;
    without it, what is known is taken to be certain."""

    streams: tuple[str, ...]
    window: float  # in units of the dataflow's time
    rates: Mapping[str, float]  # records per unit of time
    same_key: Mapping[Streams, float] = field(default_factory=dict)
    holds: Mapping[Streams, float] = field(default_factory=dict)
    together: Mapping[Streams, float] = field(default_factory=dict)  # share of combinations with the same key
    sampled: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        if not 2 <= len(self.streams) <= MOST or len(set(self.streams)) < len(self.streams):
            raise BadRequest(f"orders are searched for 2 to {MOST} streams of different names, not {self.streams!r}")
        if not real(self.window) > 0:
            raise BadRequest(f"a window is a positive number, not {self.window!r}")
        if set(self.rates) != set(self.streams) or not all(real(rate) >= 0 for rate in self.rates.values()):
            raise BadRequest(f"each of {', '.join(self.streams)} needs a rate, zero or more, not {dict(self.rates)!r}")
        for what, sizes, shares in (
            ("same_key", {2}, self.same_key),
            ("holds", {2}, self.holds),
            ("together", set(range(3, MOST + 1)), self.together),
        ):
            for names, share in shares.items():
                if len(names) not in sizes or not names <= set(self.streams) or not 0 <= real(share) <= 1:
                    raise BadRequest(f"{what} has {share!r} for {' '.join(sorted(names))}: name streams, and a share")

    @property
    def least_sampled(self) -> float:
        """The records that were looked at of the stream of which there were fewest."""
        return min(self.sampled.values()) if self.sampled else float("inf")


class Cardinalities:
    """How much is in states, from statistics: by the streams of a composite. Kept once computed."""

    def __init__(self, statistics: JoinStatistics) -> None:
        self.statistics = statistics
        self._shares: dict[Streams, float] = {}
        self._sizes: dict[Streams, float] = {}

    def share(self, streams: Streams) -> float:
        """How likely records of these streams, one of each, all have the same key."""
        if streams not in self._shares:
            self._shares[streams] = self._share(streams)
        return self._shares[streams]

    def _share(self, streams: Streams) -> float:
        known = self.statistics
        if len(streams) == 1:
            return 1.0
        if len(streams) == 2:
            return known.same_key.get(streams, 1.0)
        if streams in known.together:
            return known.together[streams]
        return max(self.share(streams - {one}) * self._likeliest(one, streams - {one}) for one in streams)

    def _likeliest(self, one: str, others: Streams) -> float:
        return max(self.share(frozenset((one, other))) for other in others)

    def size(self, streams: Streams) -> float:
        """How many composites of these streams there are in a window: all that a complete state has."""
        if streams not in self._sizes:
            known, size = self.statistics, self.share(streams)
            for one in streams:
                size *= known.rates[one] * known.window
            for pair, share in known.holds.items():
                size *= share if pair <= streams else 1.0
            self._sizes[streams] = size
        return self._sizes[streams]

    def made(self, streams: Streams) -> float:
        """How many composites of these streams are made per unit of time: each when the last of its records comes."""
        return len(streams) * self.size(streams) / self.statistics.window
