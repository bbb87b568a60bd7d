"""Joins of columns on the engine: the cases of rows, and the same oracle of all combinations."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.testing import simulate
from megaphone.plans.columns import kernels, travel
from megaphone.plans.columns.background import StateJob
from megaphone.plans.columns.courses import BinCourse
from megaphone.plans.columns.kernels import combine
from megaphone.plans.columns.rings import Ring
from megaphone.plans.columns.shapes import CourseShape, Keep
from megaphone.plans.columns.store import PlanColumnStore
from megaphone.plans.migrating import METHODS
from megaphone.plans.query import Query
from tests.plans.engine_cases import EngineCase, check_engine_case, in_columns, main, near_columns, random_engine_case
from tests.plans.test_engine import minimal

CASES = 120


@pytest.mark.parametrize("share", range(2))
def test_the_same_results_at_the_same_times(share: int) -> None:
    for seed in range(share, CASES, 2):
        check_engine_case(in_columns(random_engine_case(seed, METHODS)), seed)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_alone(method: str) -> None:
    for seed in range(6000, 6020):
        check_engine_case(in_columns(random_engine_case(seed, (method,))), seed)


def test_compiled_predicates() -> None:
    for seed in range(7000, 7020):
        check_engine_case(in_columns(random_engine_case(seed, METHODS), compiled=True), seed)


def test_the_papers_own_error() -> None:
    for seed in range(20):
        check_engine_case(in_columns(minimal(seed)), seed)


def bin_by_bin(seed: int) -> EngineCase:
    """Bins that change their plan one after the other, in the same way: they differ in their times alone."""
    chance = Random(seed)
    query = Query(tuple("abc"), 6, on=0)
    method = chance.choice(["hybmig", "parallel-track"])
    epochs: Any = [
        {name: [(chance.randrange(12), 0, f"{name}{time}.{i}") for i in range(3)] for name in "abc"}
        for time in range(16)
    ]
    updates: Any = {
        (0, 4 + bin): [megaphone.Replan("a (b c)", method=method, bins=[bin], background=seed % 2 == 0)]
        for bin in range(4)
    }
    return in_columns(EngineCase(query, "(a b) c", 4, 3, 1, [epochs], updates, seed % 3))


def test_bin_by_bin() -> None:
    for seed in range(12):
        check_engine_case(bin_by_bin(seed), seed)


def test_the_cases_have_something_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    begin, install, merge, hold = (
        PlanColumnStore._start, PlanColumnStore._install, StateJob.merge, PlanColumnStore._held,
    )  # fmt: skip

    def start(self: Any, bins: Any, asked: Any, time: int) -> None:
        begin(self, bins, asked, time)
        seen[asked.method] += len(bins)

    def installed(self: Any, bin: int, entries: Any) -> None:
        install(self, bin, entries)
        seen["bins that moved"] += 1
        seen["bins that moved in mid-migration"] += self._courses.of(bin).change is not None
        seen["several shapes"] += len(self._courses.shapes) > 1

    def merged(self: StateJob, now: int) -> None:
        seen["states completed in the background"] += 1
        seen["composites found there"] += sum(map(len, self._collected))
        merge(self, now)

    def held(self: Any, bins: Any, course: Any, time: int) -> Any:
        seen["migrations that ended with the window"] += 1
        return hold(self, bins, course, time)

    monkeypatch.setattr(PlanColumnStore, "_start", start)
    monkeypatch.setattr(PlanColumnStore, "_install", installed)
    monkeypatch.setattr(StateJob, "merge", merged)
    monkeypatch.setattr(PlanColumnStore, "_held", held)
    for seed in range(CASES // 4):
        case = in_columns(random_engine_case(seed, METHODS))
        for out, *_ in simulate(main, case, workers=case.peers, seed=seed):
            seen["results"] += len(out)
    assert len(seen) == 10 and min(seen.values()) > 5, seen


def test_results_that_parallel_track_holds_back() -> None:
    """`order="paper"`: what the new plan makes comes out at the end of the migration, and not before."""
    query = Query(("a", "b", "c"), 4, on=0)
    epochs: Any = [{name: [(0, 0, f"{name}{time}")] for name in query.streams} for time in range(12)]
    replan = megaphone.Replan("a (b c)", method="parallel-track", order="paper")
    case = EngineCase(query, "(a b) c", 2, 5, 1, [epochs], {(0, 3): [replan]})
    ((rows, *_),) = simulate(main, case, workers=1, seed=0)
    ((columns, *_),) = simulate(main, in_columns(case), workers=1, seed=0)
    assert Counter(columns) == Counter(rows)
    late = [result for at, result in columns if at == 7 and int(max(r[2][1:] for r in result)) < 7]
    assert len(late) > 20


def test_state_has_an_end() -> None:
    """A burst, then a trickle: rings give room back; and when nothing comes any more, nothing is left."""
    query = Query(("a", "b", "c"), 5, on="key")
    store = PlanColumnStore("join", 4, query, query.plan("(a b) c"))

    def rows() -> int:
        return sum(map(len, store._joiner.every_ring()))

    def room() -> int:
        return sum(ring.touched for ring in store._joiner.sources)

    for time in range(600):
        keys = np.arange(16_000 if time < 10 else 3) + time % 7
        store.run(time, [[Columns({"key": keys})] for _ in query.streams])
        if time == 10:
            most, widest = rows(), room()
    assert most > 60_000 and rows() < 3 * 6 * 3 * 10 and room() < widest / 8
    time = 600
    while (due := store.least_pending) is not None:
        time = due
        assert not store.run(time, [])
    assert time <= 600 + 5 + 1 and rows() == 0 and not len(store.occupied())


def cannot_compile(one: Any, other: Any) -> bool:
    return one.value in {"a": 1}.values()


def no_field(one: Any, other: Any) -> bool:
    return bool(one.price < other.value)


GOOD = {"key": np.array([1]), "value": np.array([1])}


@pytest.mark.parametrize(
    ("first", "second", "predicate", "complaint"),
    [
        ({"value": np.array([1])}, GOOD, near_columns, "key"),
        ({"key": np.array([1]), "value": np.array(["x"])}, GOOD, near_columns, "cannot be kept in a join: encode"),
        ({"key": np.array([0.5]), "value": np.array([1])}, GOOD, near_columns, "cannot be a key"),
        ({"key": np.array([1])}, GOOD, near_columns, "has the columns key, value, and had key before"),
        ({"key": np.array([1]), "value": np.array([1.5])}, GOOD, near_columns, "the same columns, each with one type"),
        (GOOD, GOOD, cannot_compile, "cannot_compile cannot be compiled"),
        (GOOD, GOOD, no_field, "(?s)no_field cannot be .*line.*one has no field 'price': there are key, value"),
    ],
)
def test_records_that_cannot_be_joined(first: Any, second: Any, predicate: Any, complaint: str) -> None:
    """An error names the operator, and says what to send."""
    query = Query(("a", "b"), 5, on="key", where={("a", "b"): predicate})

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input("control")
            (left, lefts), (right, rights) = scope.input("a"), scope.input("b")
            megaphone.window_join(configuration, {"a": lefts, "b": rights}, query, plan="a b", bins=2)
        for batch in (first, second):
            left.send(batch)
        right.send(GOOD)

    with pytest.raises(Exception, match=complaint):
        simulate(main, workers=1)


def test_keys_of_more_than_two_streams_stay_in_their_bins() -> None:
    for streams, plan in (("ab", "a b"), ("abc", "(a b) c")):
        query = Query(tuple(streams), 5, on="key")

        async def main(worker: dataflow.Worker, query: Query = query, plan: str = plan) -> None:
            with worker.dataflow() as scope:
                control, configuration = scope.input("control")
                inputs = {name: scope.input(name)[1] for name in query.streams}
                megaphone.window_join(configuration, inputs, query, plan=plan, bins=2)
            control.send([megaphone.Pin(7, 0)])

        if len(streams) == 2:
            simulate(main, workers=1)
        else:
            with pytest.raises(megaphone.ControlError, match="no key can be pinned"):
                simulate(main, workers=1)


# ------------------------------------------------------------------------------------------------- broken on purpose


def max_for_span(patch: pytest.MonkeyPatch) -> None:
    """The paper's window: a composite counts from its last component."""
    patch.setattr(kernels, "combine", really_combined)


def really_combined(*arguments: Any) -> None:
    combine(*arguments)
    arguments[-3][:] = arguments[-2]


def no_keep(patch: pytest.MonkeyPatch) -> None:
    """The old plan keeps everything."""
    patch.setattr(Keep, "of", lambda self, streams, delta: delta)


def early_insertion(patch: pytest.MonkeyPatch) -> None:
    """Pairs of one time are made from both sides."""
    patch.setattr(Ring, "start", property(lambda self: self.end, lambda self, value: None), raising=False)


def a_time_late(patch: pytest.MonkeyPatch) -> None:
    """A migration counts what came at its start as old."""
    replanned = BinCourse.replanned
    patch.setattr(BinCourse, "replanned", lambda self, tree, asked, time, q: replanned(self, tree, asked, time + 1, q))


def early_cut_off(patch: pytest.MonkeyPatch) -> None:
    """A state that was completed counts as if it had been at the start of the migration."""
    completed = BinCourse.completed
    patch.setattr(
        BinCourse, "completed", lambda self, number, now, query: completed(self, number, self.change.time, query)
    )


def nothing_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What a bin had stays behind where it left, and where it returns it is there twice."""
    patch.setattr(Ring, "forget", lambda self, bins: self.counts.__setitem__(bins, 0))


def composites_stay_behind(patch: pytest.MonkeyPatch) -> None:
    """A bin travels without its composites."""
    patch.setattr(travel, "_install_composites", lambda *arguments: None)


def starts_are_shared(patch: pytest.MonkeyPatch) -> None:
    """Bins of one shape have one start."""
    note = CourseShape.note

    def noted(self: CourseShape, number: int, course: BinCourse) -> None:
        note(self, number, course)
        if course.change is not None:
            self._starts[:] = course.change.time
            for cuts in self._cuts:
                cuts[:] = cuts[number]

    patch.setattr(CourseShape, "note", noted)


MUTANTS = [
    max_for_span, no_keep, early_insertion, a_time_late, early_cut_off, nothing_forgotten, composites_stay_behind,
    starts_are_shared,
]  # fmt: skip


@pytest.mark.parametrize("break_it", MUTANTS)
def test_a_broken_rule_is_found_out(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    special = (case for seed in range(10) for case in (in_columns(minimal(seed)), bin_by_bin(seed)))
    usual = (in_columns(random_engine_case(seed, METHODS)) for seed in range(CASES))
    assert any(fails(case, number) for number, case in enumerate(itertools.chain(special, usual)))


def fails(case: EngineCase, seed: int) -> bool:
    try:
        check_engine_case(case, seed)
    except (AssertionError, KeyError, IndexError, ValueError):
        return True
    return False
