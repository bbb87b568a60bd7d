"""The partial order of time, and what a user's own timestamp type must supply.

Two orders, two spellings: `less_equal(t, u)` is the partial order, for reasoning about progress; `t < u` is any total
order that extends it, for heaps and sorting only. A tuple is a product and is compared component by component:

>>> less_equal(3, 5), less_equal((1, 7), (2, 0)), less_equal((1, 0), (2, 0))
(True, False, True)
>>> (1, 7) < (2, 0)               # the total order does not ask
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self, TypeAlias

Time: TypeAlias = Any
"""A logical timestamp: an int at the root of most dataflows, a tuple in nested scopes, or a user's own type."""

TimeSummary: TypeAlias = Any
"""By how much a path advances times of one type: an int for integers, a tuple for products, a user's own `Summary`."""


class Timestamp(ABC):
    """A user's timestamp type: immutable, hashable, with a least element and two orders.

    Subclassing is a convenience; any class that has these methods, `__eq__` and `__hash__` will do.
    """

    __slots__ = ()

    @classmethod
    @abstractmethod
    def minimum(cls) -> Self:
        """The time that is less than or equal to every other: where a dataflow starts."""

    @abstractmethod
    def less_equal(self, other: Self) -> bool:
        """The partial order: reflexive, antisymmetric, transitive."""

    @abstractmethod
    def __lt__(self, other: Self) -> bool:
        """A strict total order that extends `less_equal`, for heaps."""


class Summary(Protocol):
    """What happens to a time along a path through the graph.

    A summary is monotone and strictly advances every time (a path that does not change time has no summary to speak of:
    the engine has its own identity). `results_in` may answer None: no time at all comes out.
    """

    def results_in(self, time: Time) -> Time | None:
        """The least time that can come out when `time` goes in."""

    def followed_by(self, other: Self) -> Self | None:
        """The summary of this path and then `other`; None if nothing can pass both."""

    def less_equal(self, other: Self) -> bool:
        """Whether this path gives times no later than `other` does, for every time."""


def less_equal(t: Time, u: Time) -> bool:
    """The partial order of time: may be False both ways round."""
    if isinstance(t, int):
        return bool(t <= u)
    if isinstance(t, tuple):
        return len(t) == len(u) and all(map(less_equal, t, u))
    return bool(t.less_equal(u))


def less_than(t: Time, u: Time) -> bool:
    """Strictly before in the partial order."""
    return t != u and less_equal(t, u)
