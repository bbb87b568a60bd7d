"""aggregate, reduce, count and join: each against a dictionary per time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.harness import Run, outcome, repeatable, timed

WORDS = [["a", "b", "a"], [], ["c", "a"], ["b", "b", "b", "b"]]

runs = st.builds(Run, st.integers(1, 3), st.none() | st.integers(0, 1000), st.just(False))
pairs = st.tuples(st.integers(0, 4), st.integers(-9, 9))
epochs = st.lists(st.lists(pairs, max_size=6), min_size=1, max_size=4)


def groups(records: list[Any]) -> dict[Any, list[Any]]:
    """The records by their first component."""
    out: dict[Any, list[Any]] = {}
    for record in records:
        out.setdefault(record[0], []).append(record)
    return out


def test_count_by_key(run: Run) -> None:
    assert outcome(run, lambda s: s.count(lambda w: w), WORDS) == timed(*(Counter(e).items() for e in WORDS))


def test_count_without_key_is_one_number_per_time_with_records(run: Run) -> None:
    assert outcome(run, lambda s: s.count(), WORDS) == [(0, 3), (2, 2), (3, 4)]


def test_count_without_key_comes_out_on_worker_0(together: Run) -> None:
    where: list[int] = []

    def build(stream: Any) -> Any:
        worker = stream.scope.worker
        return stream.count().inspect(lambda *_: where.append(worker))

    outcome(together, build, WORDS)
    assert set(where) == {0}


def test_aggregate_with_and_without_emit(run: Run) -> None:
    def total(s: Any, **options: Any) -> Any:
        return s.aggregate(len, list, lambda state, word: [*state, word], **options)

    words = [["a", "bb", "c"], ["dd"]]
    assert outcome(run, lambda s: total(s).map(lambda kv: (kv[0], sorted(kv[1]))), words) == timed(
        [(1, ["a", "c"]), (2, ["bb"])], [(2, ["dd"])]
    )
    assert outcome(run, lambda s: total(s, emit=lambda key, state: (key, len(state))), words) == timed(
        [(1, 2), (2, 1)], [(2, 1)]
    )


def test_aggregate_starts_afresh_at_each_time_and_key(run: Run) -> None:
    def build(stream: Any) -> Any:
        return stream.aggregate(lambda w: w, list, lambda words, w: words.append(w) or words)

    out = outcome(run, build, [["a"], ["a"], ["b"]])
    assert out == timed([("a", ["a"])], [("a", ["a"])], [("b", ["b"])])


def test_reduce_may_give_no_record_or_several(run: Run) -> None:
    out = outcome(run, lambda s: s.reduce(lambda w: w, lambda k, ws: [k] * (len(ws) - 1)), WORDS)
    assert out == timed(["a"], [], [], ["b"] * 3)


def test_join_pairs_equal_keys_at_equal_times_only(run: Run) -> None:
    left = [[(1, "x"), (1, "y"), (2, "z")], [(1, "later")]]
    right = [[(1, "p"), (1, "q"), (3, "r")], [], [(1, "too late")]]
    out = outcome(run, lambda a, b: a.join(b, lambda r: r[0]), left, right)
    assert out == timed([(1, (1, x), (1, y)) for x in "xy" for y in "pq"])


def test_join_with_different_keys_and_emit(run: Run) -> None:
    def build(a: Any, b: Any) -> Any:
        return a.join(b, len, lambda n: n, emit=lambda key, left, right: f"{key}{left}{right}")

    out = outcome(run, build, [["a", "bb"]], [[2, 1, 7]])
    assert out == timed(["1a1", "2bb2"])


def test_join_of_a_stream_with_itself(run: Run) -> None:
    assert outcome(run, lambda s: s.join(s, lambda n: n % 2), [[1, 2, 3]]) == timed(
        [(1, 1, 1), (1, 1, 3), (1, 3, 1), (1, 3, 3), (0, 2, 2)]
    )


def test_keys_that_are_equal_meet_whatever_their_type(run: Run) -> None:
    assert outcome(run, lambda s: s.count(lambda n: n), [[1, 1.0, True, 2]]) == timed([(1, 3), (2, 1)])


@repeatable
@given(run=runs, data=epochs)
def test_aggregate_is_a_sum_per_key(run: Run, data: Any) -> None:
    out = outcome(run, lambda s: s.aggregate(lambda r: r[0], int, lambda n, r: n + r[1]), data)
    assert out == timed(*([(k, sum(n for _, n in rs)) for k, rs in groups(e).items()] for e in data))


@repeatable
@given(run=runs, data=epochs)
def test_reduce_sees_all_records_of_a_key(run: Run, data: Any) -> None:
    out = outcome(run, lambda s: s.reduce(lambda r: r[0], lambda k, rs: [(k, tuple(sorted(rs)))]), data, wait=False)
    assert out == timed(*([(k, tuple(sorted(rs))) for k, rs in groups(e).items()] for e in data))


@repeatable
@given(run=runs, left=epochs, right=epochs)
def test_join_is_a_nested_loop(run: Run, left: Any, right: Any) -> None:
    out = outcome(run, lambda a, b: a.join(b, lambda r: r[0]), left, right)
    both = zip(left, right, strict=False)
    assert out == timed(*([(x[0], x, y) for x in xs for y in ys if x[0] == y[0]] for xs, ys in both))


@repeatable
@given(run=runs, data=epochs)
def test_count_counts(run: Run, data: Any) -> None:
    assert outcome(run, lambda s: s.count(), data) == timed(*([len(e)] if e else [] for e in data))
