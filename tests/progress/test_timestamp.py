"""Time domains: the laws hold for ours, and `Checked` finds a user's type that breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.errors import ConstructionError, NotAnOrder, TimeError
from dataflow.progress import paths
from dataflow.time.order import less_equal, less_than
from dataflow.time.timestamp import IDENTITY, Checked, Domain, Integers, Product, UserDomain, domain_of
from tests.oracles.progress import apply, before
from tests.progress.pairs import Pair, Shift

laws = settings(deadline=None, derandomize=True, max_examples=80)
small = st.integers(0, 4)
shifts = st.builds(Shift, small, small, st.none() | st.integers(0, 6)).filter(lambda s: s.dx + s.dy > 0)


@dataclass(frozen=True)
class Subject:
    """A domain, and how to make its times and summaries."""

    domain: Domain
    times: st.SearchStrategy[Any]
    summaries: st.SearchStrategy[Any]


SUBJECTS = {
    "integers": Subject(Integers(), small, small),
    "product": Subject(Product(int, int), st.tuples(small, small), st.tuples(small, small)),
    "mixed": Subject(
        Product(int, Pair),
        st.tuples(small, st.builds(Pair, small, small)),
        st.tuples(small, shifts | st.just(IDENTITY)),
    ),
    "nested product": Subject(
        Product(int, Product(int, int)),
        st.tuples(small, st.tuples(small, small)),
        st.tuples(small, st.tuples(small, small)),
    ),
    "user": Subject(UserDomain(Pair), st.builds(Pair, small, small), shifts | st.just(IDENTITY)),
}
subjects = pytest.mark.parametrize("name", SUBJECTS)


@subjects
def test_the_order_is_an_order(name: str) -> None:
    subject = SUBJECTS[name]
    le = subject.domain.less_equal

    @laws
    @given(subject.times, subject.times, subject.times)
    def check(t: Any, u: Any, v: Any) -> None:
        assert le(t, t)
        assert not (le(t, u) and le(u, t)) or t == u
        assert not (le(t, u) and le(u, v)) or le(t, v)
        assert le(subject.domain.minimum, t)
        assert le(t, u) == before(t, u) == less_equal(t, u)
        assert less_than(t, u) == (before(t, u) and t != u)
        if t != u:
            assert (t < u) != (u < t)  # total
            assert not le(t, u) or t < u  # and an extension
        if subject.domain.total:
            assert le(t, u) or le(u, t)

    check()


@subjects
def test_summaries_act_as_paths(name: str) -> None:
    subject = SUBJECTS[name]
    domain = subject.domain

    @laws
    @given(subject.summaries, subject.summaries, subject.times, subject.times)
    def check(a: Any, b: Any, t: Any, u: Any) -> None:
        assert domain.results_in(domain.identity, t) == t
        once = domain.results_in(a, t)
        assert once == apply(a, t)
        assert once is None or before(t, once)
        both = domain.followed_by(a, b)
        twice = None if once is None else domain.results_in(b, once)
        assert (None if both is None else domain.results_in(both, t)) == twice
        other = domain.results_in(b, t)
        if domain.summary_less_equal(a, b) and other is not None:
            assert once is not None
            assert before(once, other)
        later = domain.results_in(a, u)
        if before(t, u) and later is not None:  # monotone
            assert once is not None
            assert before(once, later)

    check()


@subjects
def test_the_identity_is_neutral_and_least(name: str) -> None:
    subject = SUBJECTS[name]
    domain = subject.domain

    @laws
    @given(subject.summaries)
    def check(a: Any) -> None:
        assert domain.followed_by(a, domain.identity) == a
        assert domain.followed_by(domain.identity, a) == a
        assert domain.summary_less_equal(a, a)
        assert domain.summary_less_equal(domain.identity, a) or _has_limit(a)

    check()


def _has_limit(summary: Any) -> bool:
    """Whether nothing may come out: such a summary may be below others only where something does."""
    return "limit" in repr(summary)


@subjects
def test_a_checked_domain_lets_good_times_and_summaries_pass(name: str) -> None:
    subject = SUBJECTS[name]

    @laws
    @given(st.lists(subject.times, max_size=12), st.lists(subject.summaries, max_size=3))
    def check(times: list[Any], summaries: list[Any]) -> None:
        checked = Checked(subject.domain)
        for time in times:
            assert checked.check(time) == time
            for summary in summaries:
                assert checked.results_in(summary, time) == apply(summary, time)

    check()


# ----------------------------------------------------------------------------------------------- what users get wrong


@pytest.mark.parametrize(
    ("domain", "time", "says"),
    [
        (Integers(), "3", "its times are integers"),
        (Integers(), 3.0, "its times are integers"),
        (Integers(), (1, 2), "its times are integers"),
        (Product(int, int), 3, r"tuples \(int, int\)"),
        (Product(int, int), (1, 2, 3), r"tuples \(int, int\)"),
        (Product(int, int), [1, 2], r"tuples \(int, int\)"),
        (Product(int, int), (1, "2"), "its times are integers"),
        (UserDomain(Pair), (1, 2), "its times are Pair"),
        (Checked(UserDomain(Pair)), 7, "its times are Pair"),
    ],
)
def test_a_time_of_the_wrong_kind(domain: Domain, time: Any, says: str) -> None:
    with pytest.raises(TimeError, match=says):
        domain.check(time)


def test_numbers_that_are_integers_become_integers() -> None:
    class Seven:
        def __index__(self) -> int:
            return 7

    assert type(Integers().check(Seven())) is int
    assert Product(int, int).check((Seven(), 1)) == (7, 1)
    assert type(Integers().check(True)) is int


@pytest.mark.parametrize(
    ("domain", "summary", "says"),
    [
        (Integers(), "1", "not an increment"),
        (Integers(), 1.5, "not an increment"),
        (Integers(), -1, "back in time"),
        (Product(int, int), 1, "one per component"),
        (Product(int, int), (1,), "one per component"),
        (Product(int, int), (0, -1), "back in time"),
        (UserDomain(Pair), 1, "it lacks results_in, followed_by, less_equal"),
        (Checked(Integers()), -1, "back in time"),
    ],
)
def test_a_summary_of_the_wrong_kind(domain: Domain, summary: Any, says: str) -> None:
    with pytest.raises(ConstructionError, match=says):
        domain.summary(summary)


def test_summaries_in_their_normal_form() -> None:
    assert Integers().summary(2) == 2
    assert Product(int, int).summary((0, 1)) == (0, 1)
    assert UserDomain(Pair).summary(Shift(1, 0)) == Shift(1, 0)
    assert UserDomain(Pair).summary(IDENTITY) is IDENTITY


def test_a_class_that_cannot_be_a_timestamp() -> None:
    class Bare:
        pass

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(ConstructionError, match=r"Bare .* lacks minimum, less_equal, __lt__, __eq__"):
        UserDomain(Bare)
    with pytest.raises(ConstructionError, match="__hash__"):
        UserDomain(Unhashable)


def test_what_names_a_domain() -> None:
    assert domain_of(int).name == "int"
    assert domain_of(Pair).name == "Pair"
    assert domain_of(Product(int, Pair)).name == "(int, Pair)"
    for bad in (3, "int", None):
        with pytest.raises(ConstructionError, match="not a type of time"):
            domain_of(bad)
    with pytest.raises(ConstructionError, match="at least two"):
        Product(int)


# ----------------------------------------------------------------------------------------------- orders that are none


@dataclass(frozen=True)
class Number:
    """A good timestamp; each class below spoils one law."""

    n: int

    @classmethod
    def minimum(cls) -> Any:
        return cls(0)

    def less_equal(self, other: Any) -> bool:
        return self.n <= other.n

    def __lt__(self, other: Any) -> bool:
        return self.n < other.n


class Irreflexive(Number):
    def less_equal(self, other: Any) -> bool:
        return self.n < other.n


class TwoWays(Number):
    def less_equal(self, other: Any) -> bool:
        return self.n // 2 <= other.n // 2  # 2 and 3 are each before the other


class Intransitive(Number):
    def less_equal(self, other: Any) -> bool:
        return self.n == 0 or self.n <= other.n <= self.n + 2  # 1 <= 3 <= 5, but not 1 <= 5


class NotLeast(Number):
    @classmethod
    def minimum(cls) -> Any:
        return cls(3)


class Backwards(Number):
    def __lt__(self, other: Any) -> bool:
        return self.n > other.n


class Ties(Number):
    def __lt__(self, other: Any) -> bool:
        return self.n // 2 < other.n // 2


class HashesApart(Number):
    __eq__ = Number.__eq__

    def __hash__(self) -> int:
        return id(self)


def check_all(checked: Checked, make: Callable[[int], Any], numbers: Iterable[int]) -> None:
    for n in numbers:
        checked.check(make(n))


def move_all(checked: Checked, summary: Any, numbers: Iterable[int]) -> None:
    for n in numbers:
        checked.results_in(summary, checked.check(Number(n)))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Irreflexive, "not less_equal to itself"),
        (TwoWays, "both ways round"),
        (Intransitive, "not transitive"),
        (NotLeast, "the minimum .* is not less_equal"),
        (Backwards, "does not extend less_equal"),
        (Ties, "not a total order"),
        (HashesApart, "hashes differ"),
    ],
)
def test_checked_finds_a_broken_order(broken: type, says: str) -> None:
    checked = Checked(UserDomain(broken))
    with pytest.raises(NotAnOrder, match=says):
        check_all(checked, broken, (1, 2, 3, 4, 5, 5))


@pytest.mark.parametrize("numbers", [(1, 3, 5), (5, 3, 1), (3, 5, 1), (3, 1, 5), (5, 1, 3), (1, 5, 3)])
def test_checked_finds_an_intransitive_order_in_any_order(numbers: tuple[int, ...]) -> None:
    checked = Checked(UserDomain(Intransitive))
    with pytest.raises(NotAnOrder, match="not transitive"):
        check_all(checked, Intransitive, numbers)


def test_checked_accepts_the_good_ones() -> None:
    checked = Checked(UserDomain(Number))
    for n in (5, 1, 3, 3, 0, 2, 4, 9, 8, 7, 6, 5):
        checked.check(Number(n))


@dataclass(frozen=True)
class Moves:
    """A summary that is given as a table."""

    table: tuple[int, ...]

    def results_in(self, time: Number) -> Number:
        return Number(self.table[time.n])

    def followed_by(self, other: Any) -> Any:
        raise AssertionError("not needed")

    def less_equal(self, other: Any) -> bool:
        raise AssertionError("not needed")


@pytest.mark.parametrize("table", [(1, 1, 3), (1, 2, 2), (1, 0, 3)])
def test_checked_finds_a_summary_that_does_not_advance(table: tuple[int, ...]) -> None:
    checked = Checked(UserDomain(Number))
    with pytest.raises(NotAnOrder, match="which is not later"):
        move_all(checked, Moves(table), (0, 1, 2))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_checked_finds_a_summary_that_is_not_monotone(order: tuple[int, int]) -> None:
    """It takes 1 to 9 and 2 to 3, whichever is met first."""
    checked = Checked(UserDomain(Number))
    with pytest.raises(NotAnOrder, match="not monotone"):
        move_all(checked, Moves((1, 9, 3)), order)


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_checked_remembers_no_more_than_its_window(window: int) -> None:
    checked = Checked(UserDomain(Number), window)
    for n in range(50):
        checked.check(Number(n))
    assert len(checked._seen) <= max(window, 2)  # the minimum, and the newest


def test_checked_remembers_distinct_times() -> None:
    """A time that comes again and again must not drive the others out, or broken pairs are never compared."""
    checked = Checked(UserDomain(Intransitive))
    with pytest.raises(NotAnOrder, match="not transitive"):
        check_all(checked, Intransitive, (1, 3, *[20] * 20, 5))


class Blunt:
    """A timestamp whose `__eq__` expects its own kind, as many are written."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def minimum(cls) -> Blunt:
        return cls(0)

    def less_equal(self, other: Blunt) -> bool:
        return self.n <= other.n

    def __lt__(self, other: Blunt) -> bool:
        return self.n < other.n

    def __eq__(self, other: Any) -> bool:
        return bool(self.n == other.n)

    def __hash__(self) -> int:
        return hash(self.n)


def test_a_users_time_is_compared_with_its_own_kind_only() -> None:
    levels = (UserDomain(Blunt), Integers())
    assert paths.identity(levels).results_in((Blunt(1), 2)) == (Blunt(1), 2)
    pair = Product(Blunt, int)
    assert pair.results_in(pair.identity, (Blunt(1), 2)) == (Blunt(1), 2)


def test_the_order_on_small_tuples_by_hand() -> None:
    grid = list(product(range(3), repeat=2))
    for t, u in product(grid, repeat=2):
        assert less_equal(t, u) == (t[0] <= u[0] and t[1] <= u[1])
    assert not less_equal((1,), (1, 2))  # of different scopes: never before
