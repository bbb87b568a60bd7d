"""Times of the user's own: partial orders with their summaries, and orders that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import pytest

import dataflow
from dataflow import Product, Timestamp
from dataflow.errors import ConstructionError, NotAnOrder, UnadvancedCycle
from tests.engine.harness import Run, bag


@dataclass(frozen=True, slots=True)
class Version(Timestamp):
    """Sets of letters, ordered by inclusion: {a} and {b} are incomparable, {a, b} is after both."""

    letters: frozenset[str]

    @classmethod
    def minimum(cls) -> Self:
        return cls(frozenset())

    def less_equal(self, other: Self) -> bool:
        return self.letters <= other.letters

    def __lt__(self, other: Self) -> bool:
        return (len(self.letters), sorted(self.letters)) < (len(other.letters), sorted(other.letters))


def version(letters: str = "") -> Version:
    return Version(frozenset(letters))


@dataclass(frozen=True, slots=True)
class Ticks(Timestamp):
    """An integer of the user's own."""

    n: int

    @classmethod
    def minimum(cls) -> Self:
        return cls(0)

    def less_equal(self, other: Self) -> bool:
        return self.n <= other.n

    def __lt__(self, other: Self) -> bool:
        return self.n < other.n


@dataclass(frozen=True, slots=True)
class Later:
    """A summary for Ticks: so many later, and nothing at all after a limit."""

    by: int
    limit: int = 1000

    def results_in(self, time: Ticks) -> Ticks | None:
        return Ticks(time.n + self.by) if time.n + self.by <= self.limit else None

    def followed_by(self, other: Later) -> Later:
        return Later(self.by + other.by, min(self.limit, other.limit))

    def less_equal(self, other: Later) -> bool:
        return self.by <= other.by


def test_a_partially_ordered_dataflow(run: Run) -> None:
    counts: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Version) as scope:
            handle, stream = scope.unordered_input()
            probe = stream.count(len).inspect(lambda t, r: counts.append((t, r))).probe()
        if worker.index == 0:
            for letters in ("ab", "a", "b"):
                with handle.capability.delayed(version(letters)) as capability:
                    handle.send(["x", "y", "zz"], capability)
        handle.close()
        await probe.wait_done()

    run(main)
    assert bag(counts) == bag((version(v), c) for v in ("ab", "a", "b") for c in ((1, 2), (2, 1)))


def test_frontiers_of_incomparable_times() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow(time=Version) as scope:
            handle, stream = scope.unordered_input()
            probe = stream.map(str).probe()
        a, b = handle.capability.delayed(version("a")), handle.capability.delayed(version("bc"))
        handle.capability.drop()
        await probe.wait_passed(version("c"))
        first = set(probe.frontier)
        a.drop()
        await probe.wait_passed(version("a"))
        return first, set(probe.frontier), probe.passed(version("b")), b.live

    for debug in (False, True):
        (out,) = Run(1, seed=0, debug=debug)(main)
        assert out == ({version("a"), version("bc")}, {version("bc")}, True, True)


def test_a_loop_at_the_root_with_the_user_s_summary(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Ticks) as scope:
            handle, stream = scope.input()
            loop, back = scope.feedback(Later(3))
            both = stream.concat(back).inspect(lambda t, n: seen.append((t.n, n)))
            both.filter(lambda n: n > 0).map(lambda n: n - 1).exchange(lambda n: n).connect_loop(loop)
        if worker.index == 0:
            handle.send([2])
            handle.send([1], at=Ticks(1))

    run(main)
    assert sorted(seen) == [(0, 2), (1, 1), (3, 1), (4, 0), (6, 0)]


def test_a_loop_in_a_scope_whose_rounds_are_the_user_s_times(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            with scope.nested(time=Ticks) as inner:
                loop, back = inner.feedback(Later(2))
                both = stream.enter(inner).concat(back).inspect(lambda t, n: seen.append((t[0], t[1].n, n)))
                both.filter(lambda n: n > 0).map(lambda n: n - 1).exchange(lambda n: n).connect_loop(loop)
                probe = both.leave().probe()
        if worker.index == 0:
            handle.send([2])
        for time in (1, 2):
            handle.advance_to(time)
            await probe.wait_passed(time - 1)

    run(main)
    assert sorted(seen) == [(0, 0, 2), (0, 2, 1), (0, 4, 0)]


def test_iterate_in_a_dataflow_with_the_user_s_times(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Version) as scope:
            handle, stream = scope.unordered_input()
            halved = stream.iterate(lambda s: (s.filter(lambda n: n > 1).map(lambda n: n // 2), s))
            halved.inspect(lambda t, n: seen.append((t, n)))
        if worker.index == 0:
            handle.send([4], handle.capability.delayed(version("a")))
            handle.send([2], handle.capability.delayed(version("b")))

    run(main)
    assert bag(seen) == bag([*((version("a"), n) for n in (4, 2, 1)), *((version("b"), n) for n in (2, 1))])


def test_records_for_which_a_summary_has_no_time_end_their_loop(run: Run) -> None:
    times: list[int] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Ticks) as scope:
            handle, stream = scope.input()
            loop, back = scope.feedback(Later(3, limit=5))
            stream.concat(back).inspect(lambda t, _: times.append(t.n)).connect_loop(loop)
        if worker.index == 0:
            handle.send(["round and round"])

    run(main)
    assert times == [0, 3]


def test_products_at_the_root(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Product(int, int)) as scope:
            handle, stream = scope.unordered_input()
            loop, back = scope.feedback((1, 0))
            both = stream.concat(back)
            both.filter(lambda n: n > 0).map(lambda n: n - 1).connect_loop(loop)
            both.count().inspect(lambda t, n: seen.append((t, n)))
        if worker.index == 0:
            for time in ((0, 1), (1, 0)):
                with handle.capability.delayed(time) as capability:
                    handle.send([1, 0], capability)

    run(main)
    assert sorted(seen) == [((0, 1), 2), ((1, 0), 2), ((1, 1), 1), ((2, 0), 1)]


def test_a_nested_scope_in_a_dataflow_with_products(run: Run) -> None:
    times: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Product(int, int)) as scope:
            handle, stream = scope.input()
            stream.inspect(lambda t, n: times.append(t)).iterate(
                lambda s: s.inspect(lambda t, n: times.append(t)).filter(lambda n: n > 0).map(lambda n: n - 1)
            )
        if worker.index == 0:
            handle.advance_to((1, 2))
            handle.send([2])

    run(main)
    assert times[0] == (1, 2) and sorted(times[1:]) == [((1, 2), 0), ((1, 2), 1), ((1, 2), 2)]


def test_products_of_the_user_s_times(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Product(int, Version)) as scope:
            handle, stream = scope.input()
            stream.count().inspect(lambda t, n: seen.append((t, n)))
        if worker.index == 0:
            handle.send(["x"])
            handle.advance_to((1, version("a")))
            handle.send(["y", "z"])

    run(main)
    assert bag(seen) == bag([((0, version()), 1), ((1, version("a")), 2)])


def test_what_is_no_time_of_the_class_is_refused() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Version) as scope:
            handle, _ = scope.input()
        with pytest.raises(dataflow.TimeError, match="5 is not a time of this scope: its times are Version"):
            handle.advance_to(5)

    Run()(main)


def test_what_is_no_summary_is_refused() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Version) as scope:
            scope.feedback(1)

    with pytest.raises(ConstructionError, match="1 cannot be a summary for Version: it lacks results_in, followed_by"):
        Run()(main)


def test_a_loop_without_a_summary_of_the_user_s_is_refused() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Ticks) as scope:
            _, stream = scope.input()
            loop, back = scope.feedback(None)
            stream.concat(back).connect_loop(loop)

    with pytest.raises(UnadvancedCycle):
        Run()(main)


def test_a_class_that_lacks_something_is_told_what() -> None:
    @dataclass  # neither frozen nor hashable, and no order
    class Half:
        n: int

        @classmethod
        def minimum(cls) -> Half:
            return cls(0)

        def less_equal(self, other: Half) -> bool:
            return self.n <= other.n

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=Half) as scope:
            scope.input()

    with pytest.raises(ConstructionError, match="Half cannot be a timestamp: it lacks __lt__, __hash__"):
        Run()(main)


# Orders that are none, found in debug mode


class Number:
    """An integer with the laws broken one by one."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def minimum(cls) -> Self:
        return cls(0)

    def less_equal(self, other: Self) -> bool:
        return self.n <= other.n

    def __lt__(self, other: Self) -> bool:
        return self.n < other.n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.n == other.n

    def __hash__(self) -> int:
        return hash(self.n)

    def __repr__(self) -> str:
        return f"t{self.n}"


class Irreflexive(Number):
    def less_equal(self, other: Self) -> bool:
        return self.n < other.n


class Symmetric(Number):
    def less_equal(self, other: Self) -> bool:
        return True


class Intransitive(Number):
    def less_equal(self, other: Self) -> bool:
        return self.n in (0, other.n, other.n - 1)


class Bottomless(Number):
    def less_equal(self, other: Self) -> bool:
        return self.n == other.n


class Backwards(Number):
    def __lt__(self, other: Self) -> bool:
        return self.n > other.n


class Undecided(Number):
    def __lt__(self, other: Self) -> bool:
        return False


class Unhashed(Number):
    def __hash__(self) -> int:
        return id(self)


def sending(cls: type[Number], *times: int, debug: bool = True, **loop: Any) -> None:
    """Sends a record at each of these times."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=cls) as scope:
            handle, stream = scope.input()
            if loop:
                end, back = scope.feedback(loop["summary"])
                stream.concat(back).filter(lambda _: False).connect_loop(end)
        for time in times:
            handle.send(["x"], at=cls(time))

    Run(1, seed=0, debug=debug)(main)


@pytest.mark.parametrize(
    ("cls", "complaint"),
    [
        (Irreflexive, "t1 is not less_equal to itself"),
        (Symmetric, "both ways round, and not equal"),
        (Intransitive, "not transitive"),
        (Bottomless, "the minimum t0 is not less_equal to t1"),
        (Backwards, "`<` does not extend less_equal"),
        (Undecided, "`<` is not a total order"),
        (Unhashed, "their hashes differ"),
    ],
)
def test_an_order_that_is_none_is_found_in_debug_mode(cls: type[Number], complaint: str) -> None:
    with pytest.raises(NotAnOrder, match=complaint) as failure:
        sending(cls, 1, 2, 3, 3)
    assert cls.__name__ in str(failure.value)


def test_an_order_that_is_one_is_not_complained_about() -> None:
    sending(Number, 5, 1, 3, 2, 9, 9, 4, 8, 0, 7)


@dataclass(frozen=True)
class Move:
    """A summary that may break the laws."""

    function: Any
    size: int = 1

    def results_in(self, time: Number) -> Number:
        return type(time)(self.function(time.n))

    def followed_by(self, other: Move) -> Move:
        return Move(lambda n: other.function(self.function(n)), self.size + other.size)

    def less_equal(self, other: Move) -> bool:
        return self.size <= other.size


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda n: n, "which is not later"),
        (lambda n: n - 1, "not later|not less_equal"),
        (lambda n: 10 if n == 0 else n + 1, "not monotone"),
    ],
    ids=["stays", "goes back", "not monotone"],
)
def test_a_summary_that_breaks_the_laws_is_found_in_debug_mode(function: Any, complaint: str) -> None:
    with pytest.raises(NotAnOrder, match=complaint):
        sending(Number, 1, 2, summary=Move(function))


def test_the_complaint_about_a_summary_that_is_not_monotone_reads_right() -> None:
    with pytest.raises(NotAnOrder, match=r"t0 is (at or )?before t1"):
        sending(Number, 1, 2, summary=Move(lambda n: 10 if n == 0 else n + 1))
