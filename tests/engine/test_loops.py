"""Nested scopes and loops."""

from __future__ import annotations

from typing import Any

import dataflow
from tests.engine.harness import Run, bag, outcome, timed


def collatz(n: int) -> int:
    """How many steps it takes from n to 1."""
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


def test_enter_and_leave_change_nothing(run: Run) -> None:
    times: list[Any] = []

    def build(stream: Any) -> Any:
        with stream.scope.nested() as inner:
            return stream.enter(inner).inspect(lambda t, _: times.append(t)).leave()

    assert outcome(run, build, [["a"], ["b", "c"]]) == timed(["a"], ["b", "c"])
    assert sorted(set(times)) == [(0, 0), (1, 0)]


def test_two_levels_of_scopes(run: Run) -> None:
    times: list[Any] = []

    def build(stream: Any) -> Any:
        with stream.scope.nested() as outer, outer.nested() as inner:
            return stream.enter(outer).enter(inner).inspect(lambda t, _: times.append(t)).leave().leave()

    assert outcome(run, build, [[], ["a"]]) == timed([], ["a"])
    assert times == [(1, 0, 0)]


def test_feedback_at_the_root_moves_records_to_later_epochs(run: Run) -> None:
    def build(stream: Any) -> Any:
        loop, cycle = stream.scope.feedback(3)
        both = stream.concat(cycle)
        both.map(lambda n: n - 1).filter(lambda n: n > 0).connect_loop(loop)
        return both

    assert outcome(run, build, [[3, 1], [2]], wait=False) == bag([(0, 3), (3, 2), (6, 1), (0, 1), (1, 2), (4, 1)])


def test_iterate_until_nothing_goes_round(run: Run) -> None:
    def body(pairs: Any) -> Any:
        done, going = pairs.branch(lambda p: p[1] == 1)
        again = going.map(lambda p: (p[0], p[1] // 2 if p[1] % 2 == 0 else 3 * p[1] + 1, p[2] + 1))
        return again.exchange(lambda p: p[1]), done

    def build(stream: Any) -> Any:
        return stream.map(lambda n: (n, n, 0)).iterate(body).map(lambda p: (p[0], p[2]))

    epochs = [[1, 2, 3], [], [6, 7]]
    assert outcome(run, build, epochs) == timed(*([(n, collatz(n)) for n in epoch] for epoch in epochs))


def test_iterate_with_one_stream_lets_it_go_round_and_out(run: Run) -> None:
    out = outcome(run, lambda s: s.iterate(lambda n: n.map(lambda x: x - 1).filter(lambda x: x > 0)), [[3], [1, 2]])
    assert out == timed([2, 1], [1])


def test_rounds_are_counted_in_the_inner_time(run: Run) -> None:
    rounds: list[Any] = []

    def body(numbers: Any) -> Any:
        numbers.inspect(lambda t, n: rounds.append((t, n)))
        return numbers.filter(lambda n: n > 0).map(lambda n: n - 1), numbers

    outcome(run, lambda s: s.iterate(body, summary=2), [[], [2]])
    assert sorted(rounds) == [((1, 0), 2), ((1, 2), 1), ((1, 4), 0)]


def test_other_streams_are_brought_into_a_loop(run: Run) -> None:
    def build(numbers: Any, others: Any) -> Any:
        def body(inner: Any) -> Any:
            both = inner.concat(others.enter(inner.scope))
            return inner.filter(lambda n: n < 3).map(lambda n: n + 1), both.filter(lambda n: n >= 3)

        return numbers.iterate(body)

    assert outcome(run, build, [[0, 1]], [[5], [7]]) == timed([3, 3, 5], [7])


def test_a_loop_that_gets_no_records_ends(run: Run) -> None:
    assert outcome(run, lambda s: s.iterate(lambda n: n.map(lambda x: x)), [[], []]) == []


def test_a_loop_within_a_loop(run: Run) -> None:
    def inner(pairs: Any) -> Any:  # (outer, n): counts n down to nothing
        return pairs.filter(lambda p: p[1] > 0).map(lambda p: (p[0], p[1] - 1)), pairs.filter(lambda p: p[1] == 0)

    def outer(pairs: Any) -> Any:  # starts the inner countdown again, one lower
        again = pairs.filter(lambda p: p[0] > 0).iterate(inner).map(lambda p: (p[0] - 1, p[0] - 1))
        return again, pairs.filter(lambda p: p[0] == 0)

    out = outcome(run, lambda s: s.map(lambda n: (n, n)).iterate(outer), [[2, 0], [1]])
    assert out == timed([(0, 0), (0, 0)], [(0, 0)])


def test_a_notification_in_a_loop_comes_once_per_round(run: Run) -> None:
    def body(numbers: Any) -> Any:
        total = numbers.aggregate(lambda _: 0, int, lambda a, n: a + n, emit=lambda _, a: a)
        return total.filter(lambda n: n < 50).flat_map(lambda n: [n, n]), total

    assert outcome(run, lambda s: s.iterate(body), [[1, 2], [60]]) == timed([3, 6, 12, 24, 48, 96], [60])


def test_a_probe_inside_a_loop_has_the_inner_times() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            with scope.nested() as inner:
                probe = stream.enter(inner).map(str).probe()
        handle.advance_to(2)
        await probe.wait_passed((1, 10**9))
        return list(probe.frontier)

    assert Run(1, seed=0)(main) == [[(2, 0)]]
