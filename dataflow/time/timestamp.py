"""Time domains: the operations of one type of timestamp, gathered in one value.

A scope knows its domain, and everything that compares or advances times does so through it. `Integers` is the usual
one; `Product` pairs several; `UserDomain` wraps a user's class; `Checked` wraps any of them and verifies the laws on
every time that it meets (debug mode).
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import date
from typing import TypeAlias

import numpy as np

from dataflow.errors import ConstructionError, NotAnOrder, TimeError
from dataflow.time.durations import NANOSECONDS, Duration, is_duration, is_moment, moment, nanoseconds
from dataflow.time.order import Time, TimeSummary

TimeType: TypeAlias = "type[object] | str | Domain"
"""How a user names a type of time: `int`, a unit such as "ms", a Domain such as `Product(int, int)`, or a class."""

_BITS = 4096  # of an integer time of another process: more could not even be printed


class Domain(ABC):
    """One type of time. `identity` is the summary of a path that leaves times alone."""

    name: str
    minimum: Time
    total: bool  # whether any two times compare, so that a frontier has at most one element
    identity: TimeSummary
    less_equal: Callable[[Time, Time], bool]  # a plain attribute, so that integers get operator.le itself

    @abstractmethod
    def check(self, time: Time) -> Time:
        """The time in its normal form, or a TimeError that says what was expected."""

    def normal(self, time: Time) -> Time:
        """The time in its normal form, to ask about it: `check` without the laws that debug mode verifies."""
        return self.check(time)

    @abstractmethod
    def holds(self, time: Time) -> bool:
        """Whether this is a time of this type in its normal form: for times that other processes send. May raise what a
        user's class raises for fields that are not what it expects."""

    @abstractmethod
    def summary(self, summary: TimeSummary) -> TimeSummary:
        """A user's summary in its normal form, or a ConstructionError."""

    @abstractmethod
    def results_in(self, summary: TimeSummary, time: Time) -> Time | None: ...

    @abstractmethod
    def followed_by(self, first: TimeSummary, second: TimeSummary) -> TimeSummary | None: ...

    @abstractmethod
    def summary_less_equal(self, first: TimeSummary, second: TimeSummary) -> bool: ...


class Integers(Domain):
    """Times 0, 1, 2, ...; a summary is how much is added.

    Where they meet the calendar, they count `unit` since 1970, UTC: a datetime is the time that it is of these.

    >>> from datetime import datetime
    >>> Integers().results_in(2, 40), Integers("s").check(datetime(1970, 1, 1, 0, 1)), Integers("s").summary("5m")
    (42, 60, 300)
    """

    minimum = 0
    total = True
    identity = 0

    def __init__(self, unit: str = "ns") -> None:
        if unit not in NANOSECONDS:
            raise ConstructionError(f"{unit!r} is not a unit of times: say {', '.join(NANOSECONDS)}")
        self.unit = unit
        self.name = "int" if unit == "ns" else f"int ({unit})"
        self.less_equal = operator.le

    def check(self, time: Time) -> Time:
        if type(time) is not int:
            if is_moment(time):
                found = self._moment(time)
                if found < 0:
                    raise TimeError(
                        f"{time!r} is before 1970, where the times of a dataflow begin: send at a later time, and keep "
                        "the moment itself in the record"
                    )
                return found
            try:
                time = operator.index(time)  # numpy's integers are welcome
            except TypeError:
                raise TimeError(f"{time!r} is not a time of this dataflow: its times are integers") from None
        return time

    def normal(self, time: Time) -> Time:
        if type(time) is int:
            return time
        return self._moment(time) if is_moment(time) else self.check(time)  # one before 1970 has passed

    def holds(self, time: Time) -> bool:
        return type(time) is int and time >= 0 and time.bit_length() <= _BITS

    def _moment(self, time: date | np.datetime64) -> int:
        try:
            return moment(time, self.unit)
        except ValueError as error:
            raise TimeError(str(error)) from None

    def ticks(self, duration: Duration) -> int:
        """A duration in this unit; ValueError if it is no whole number of them."""
        count, rest = divmod(nanoseconds(duration), NANOSECONDS[self.unit])
        if rest:
            raise ValueError(f"{duration!r} is no whole number of {self.unit}, which this dataflow's times count")
        return count

    def summary(self, summary: TimeSummary) -> int:
        if is_duration(summary):
            try:
                summary = self.ticks(summary)
            except ValueError as error:
                raise ConstructionError(f"{summary!r} is not an increment: {error}") from None
        try:
            increment = operator.index(summary)
        except TypeError:
            raise ConstructionError(f"{summary!r} is not an increment: integer times advance by an int") from None
        if increment < 0:
            raise ConstructionError(f"an increment of {increment} would send records back in time")
        return increment

    def results_in(self, summary: int, time: int) -> int:
        return time + summary

    def followed_by(self, first: int, second: int) -> int:
        return first + second

    def summary_less_equal(self, first: int, second: int) -> bool:
        return first <= second


class Product(Domain):
    """Tuples of times, compared component by component. A summary is a tuple of summaries.

    >>> pair = Product(int, int)
    >>> pair.minimum, pair.less_equal((1, 7), (2, 0)), pair.results_in((0, 1), (5, 5))
    ((0, 0), False, (5, 6))
    """

    def __init__(self, *levels: TimeType) -> None:
        if len(levels) < 2:
            raise ConstructionError("a Product needs at least two components")
        self.levels = tuple(domain_of(level) for level in levels)
        self.name = f"({', '.join(level.name for level in self.levels)})"
        self.minimum = tuple(level.minimum for level in self.levels)
        self.identity = tuple(level.identity for level in self.levels)
        self.total = False
        self.less_equal = _product_order(self.levels)

    def check(self, time: Time) -> Time:
        if not isinstance(time, tuple) or len(time) != len(self.levels):
            raise TimeError(f"{time!r} is not a time of this scope: its times are tuples {self.name}")
        return tuple(level.check(t) for level, t in zip(self.levels, time, strict=True))

    def normal(self, time: Time) -> Time:
        if not isinstance(time, tuple) or len(time) != len(self.levels):
            return self.check(time)  # which says what is wrong
        return tuple(level.normal(t) for level, t in zip(self.levels, time, strict=True))

    def holds(self, time: Time) -> bool:
        if type(time) is not tuple or len(time) != len(self.levels):
            return False
        return all(level.holds(t) for level, t in zip(self.levels, time, strict=True))

    def summary(self, summary: TimeSummary) -> TimeSummary:
        if not isinstance(summary, tuple) or len(summary) != len(self.levels):
            raise ConstructionError(f"{summary!r} is not a summary for times {self.name}: give one per component")
        return tuple(level.summary(s) for level, s in zip(self.levels, summary, strict=True))

    def results_in(self, summary: TimeSummary, time: Time) -> Time | None:
        out = tuple(level.results_in(s, t) for level, s, t in zip(self.levels, summary, time, strict=True))
        return None if any(part is None for part in out) else out

    def followed_by(self, first: TimeSummary, second: TimeSummary) -> TimeSummary | None:
        out = tuple(level.followed_by(a, b) for level, a, b in zip(self.levels, first, second, strict=True))
        return None if any(part is None for part in out) else out

    def summary_less_equal(self, first: TimeSummary, second: TimeSummary) -> bool:
        return all(level.summary_less_equal(a, b) for level, a, b in zip(self.levels, first, second, strict=True))


def _product_order(levels: tuple[Domain, ...]) -> Callable[[Time, Time], bool]:
    if len(levels) == 2 and all(isinstance(level, Integers) for level in levels):
        return lambda t, u: bool(t[0] <= u[0] and t[1] <= u[1])  # by far the most frequent: an epoch and a round
    orders = tuple(level.less_equal for level in levels)
    return lambda t, u: all(order(a, b) for order, a, b in zip(orders, t, u, strict=True))


class _Identity:
    """The summary of a path that leaves a user's times alone."""

    def __repr__(self) -> str:
        return "identity"


IDENTITY = _Identity()


class UserDomain(Domain):
    """A user's timestamp class (see `order.Timestamp`) and its summaries (`order.Summary`)."""

    total = False
    identity = IDENTITY

    def __init__(self, cls: type[object]) -> None:
        minimum = getattr(cls, "minimum", None)
        missing = [name for name in ("minimum", "less_equal") if not callable(getattr(cls, name, None))]
        missing += [name for name in ("__lt__", "__eq__") if getattr(cls, name) is getattr(object, name)]
        missing += ["__hash__"] if getattr(cls, "__hash__", None) is None else []
        if missing or minimum is None:
            raise ConstructionError(f"{cls.__name__} cannot be a timestamp: it lacks {', '.join(missing)}")
        self.cls = cls
        self.name = cls.__name__
        self.minimum = minimum()
        self.less_equal = lambda t, u: bool(t.less_equal(u))

    def check(self, time: Time) -> Time:
        if not isinstance(time, self.cls):
            raise TimeError(f"{time!r} is not a time of this scope: its times are {self.name}")
        return time

    def holds(self, time: Time) -> bool:
        if not isinstance(time, self.cls):
            return False
        hash(time)
        return self.less_equal(self.minimum, time) and (time == self.minimum or bool(self.minimum < time))

    def summary(self, summary: TimeSummary) -> TimeSummary:
        missing = [name for name in ("results_in", "followed_by", "less_equal") if not hasattr(summary, name)]
        if summary is not IDENTITY and missing:
            raise ConstructionError(f"{summary!r} cannot be a summary for {self.name}: it lacks {', '.join(missing)}")
        return summary

    def results_in(self, summary: TimeSummary, time: Time) -> Time | None:
        return time if summary is IDENTITY else summary.results_in(time)

    def followed_by(self, first: TimeSummary, second: TimeSummary) -> TimeSummary | None:
        if first is IDENTITY:
            return second
        return first if second is IDENTITY else first.followed_by(second)

    def summary_less_equal(self, first: TimeSummary, second: TimeSummary) -> bool:
        if first is IDENTITY or second is IDENTITY:
            return first is IDENTITY  # a summary never goes back, so the identity is below all
        return bool(first.less_equal(second))


class Checked(Domain):
    """A domain that verifies the laws of its order on the times that pass through it (debug mode).

    Each new time is compared with the last `window` distinct ones: reflexive, antisymmetric, transitive, extended by
    `<`, above the minimum, equal times hash alike; summaries strictly advance and are monotone. Cost: O(window^2) per
    new time.
    """

    def __init__(self, domain: Domain, window: int = 8) -> None:
        self.domain = domain
        self.name, self.minimum, self.total, self.identity = domain.name, domain.minimum, domain.total, domain.identity
        self.less_equal = domain.less_equal
        self._window = window
        self._seen: list[Time] = [domain.minimum]

    def check(self, time: Time) -> Time:
        time = self.domain.check(time)
        self._verify(time)
        return time

    def normal(self, time: Time) -> Time:
        return self.domain.normal(time)

    def holds(self, time: Time) -> bool:
        return self.domain.holds(time)

    def summary(self, summary: TimeSummary) -> TimeSummary:
        return self.domain.summary(summary)

    def results_in(self, summary: TimeSummary, time: Time) -> Time | None:
        out = self.domain.results_in(summary, time)
        if out is None or summary == self.identity:
            return out
        if out == time or not self.less_equal(time, out):
            raise NotAnOrder(f"the summary {summary!r} takes {time!r} to {out!r}, which is not later")
        for other in self._seen:
            if self.less_equal(other, time):
                self._verify_monotone(summary, other, time)
            elif self.less_equal(time, other):
                self._verify_monotone(summary, time, other)
        self._verify(out)
        return out

    def followed_by(self, first: TimeSummary, second: TimeSummary) -> TimeSummary | None:
        return self.domain.followed_by(first, second)

    def summary_less_equal(self, first: TimeSummary, second: TimeSummary) -> bool:
        return self.domain.summary_less_equal(first, second)

    def _verify_monotone(self, summary: TimeSummary, earlier: Time, later: Time) -> None:
        before, after = (self.domain.results_in(summary, time) for time in (earlier, later))
        if after is not None and (before is None or not self.less_equal(before, after)):
            raise NotAnOrder(
                f"the summary {summary!r} is not monotone: {earlier!r} is at or before {later!r}, "
                f"but results in {before!r}, which is not at or before {after!r}"
            )

    def _verify(self, time: Time) -> None:
        if any(time is seen for seen in self._seen):
            return
        le = self.less_equal
        if not le(time, time):
            raise NotAnOrder(f"{self.name}: {time!r} is not less_equal to itself")
        if not le(self.minimum, time):
            raise NotAnOrder(f"{self.name}: the minimum {self.minimum!r} is not less_equal to {time!r}")
        for other in self._seen:
            self._verify_pair(time, other)
        for a in self._seen:
            for b in self._seen:
                self._verify_transitive(time, a, b)
        others = [seen for seen in self._seen[1:] if seen != time]  # distinct, or one time would drive the rest out
        self._seen = [self._seen[0], *others[max(0, len(others) - self._window + 2) :], time]

    def _verify_pair(self, t: Time, u: Time) -> None:
        le = self.less_equal
        if le(t, u) and le(u, t) and t != u:
            raise NotAnOrder(f"{self.name}: {t!r} and {u!r} are less_equal both ways round, and not equal")
        if t == u:
            if hash(t) != hash(u):
                raise NotAnOrder(f"{self.name}: {t!r} and {u!r} are equal, and their hashes differ")
            return
        if (t < u) == (u < t):
            raise NotAnOrder(f"{self.name}: `<` is not a total order: it does not tell {t!r} from {u!r}")
        if (le(t, u) and u < t) or (le(u, t) and t < u):
            raise NotAnOrder(f"{self.name}: `<` does not extend less_equal: see {t!r} and {u!r}")

    def _verify_transitive(self, t: Time, u: Time, v: Time) -> None:
        le = self.less_equal
        for x, y, z in ((t, u, v), (u, t, v), (u, v, t)):
            if le(x, y) and le(y, z) and not le(x, z):
                raise NotAnOrder(f"{self.name}: {x!r} <= {y!r} <= {z!r}, but not {x!r} <= {z!r}: not transitive")


def unit_of(domain: Domain) -> str:
    """What the times of a domain count where they meet the calendar: nanoseconds, if nothing is said."""
    inner = domain.domain if isinstance(domain, Checked) else domain
    return inner.unit if isinstance(inner, Integers) else "ns"


def domain_of(time: TimeType) -> Domain:
    """The domain that a user names: `int`, a Domain such as `Product(int, int)`, or a timestamp class.

    A unit such as "ms" stands for integers that count it; `int` counts nanoseconds, where that matters.

    >>> domain_of(int).name, domain_of("ms").name, domain_of(Product(int, int)).name
    ('int', 'int (ms)', '(int, int)')
    """
    if isinstance(time, Domain):
        return time
    if time is int:
        return Integers()
    if isinstance(time, str) and time in NANOSECONDS:
        return Integers(time)
    if isinstance(time, type):
        return UserDomain(time)
    raise ConstructionError(
        f"{time!r} is not a type of time: give int, a unit such as 'ms', Product(...), or a timestamp class"
    )
