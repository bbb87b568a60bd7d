"""The figures of HybMig count composites; `megaphone.plans` makes them. Both agree, record by record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.experiments.hybmig.boxes import GeneralHybrid, GeneralMovingState, GeneralParallelTrack, MedianBox
from bench.experiments.hybmig.clock import Course, run
from bench.experiments.hybmig.counting import Contents, Extent, climb
from bench.experiments.hybmig.figures import SLOW
from bench.experiments.hybmig.hybrid import Hybrid
from bench.experiments.hybmig.methods import MovingState, ParallelTracks, Steady
from bench.experiments.hybmig.setting import ELSEWHERE, Arrival, Setting
from bench.papers import MEASURED
from bench.registry import figures
from bench.run import Run
from megaphone.plans import migrating
from megaphone.plans.migrating import HybMig, Options, Running
from megaphone.plans.query import Query
from megaphone.plans.trees import Join, Tree, joins, parse
from tests.plans.cases import in_halves, random_tree

WINDOW = 20
METHODS = ["moving-state", "parallel-track", "hybmig", "hybmig without sharing"]


def records(seed: int, names: str) -> Iterator[Arrival]:
    """A record at each time, of few values; some match nothing."""
    chance = Random(seed)
    for time in range(4 * WINDOW):
        yield Arrival(time, chance.randrange(len(names)), chance.choice([0, 0, 1, ELSEWHERE]))


def counted(tree: Tree, new: Tree, method: str, names: str) -> Steady:
    contents = Contents(names, WINDOW)
    if method == "moving-state":
        return MovingState(tree, contents, new)
    if method == "parallel-track":
        return ParallelTracks(tree, contents, new, names)
    return Hybrid(tree, contents, new, sharing=method == "hybmig")


def fetch(made: Running, arrival: Arrival, names: str) -> tuple[int, int]:
    """Evaluations and results of a record, by making composites."""
    before = made.evaluations.count
    value = arrival.value if arrival.value != ELSEWHERE else f"only {arrival.time}"
    results = made.run(int(arrival.time), {names[arrival.stream]: [(value,)]})
    return made.evaluations.count - before, len(results)


def complete_one(made: Running, now: int) -> None:
    """The background completes one state."""
    assert isinstance(made.migration, HybMig)
    task = next(task for task in made.migration.tasks if task.incomplete)
    left = len(task.incomplete)
    while made.migration is not None and len(task.incomplete) == left:
        made.work(1, now)


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_composites(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrating, "_PURGES", WINDOW)  # after every record
    seen = 0
    for seed in range(40 if method == "hybmig" else 15):
        chance = Random(seed)
        names = "ABCDEF"[: chance.choice([3, 4, 5])]
        make = chance.choice([random_tree, in_halves])
        tree, new = make(chance, list(names)), make(chance, list(names))
        made, counts = Running(Query(tuple(names), WINDOW, on=0), tree), counted(tree, new, method, names)
        start = 2 * WINDOW - 5
        background = {start + at for at in chance.sample(range(1, WINDOW), 2)} if "hybmig" in method else set()
        for arrival in records(seed, names):
            now = int(arrival.time)
            if now == start and tree != new:
                before = made.evaluations.count
                made.replan(new, method.split()[0], now, Options(share=method != METHODS[-1]))
                assert counts.start(now) == made.evaluations.count - before
            if now in background and isinstance(made.migration, HybMig) and made.migration.owes:
                assert isinstance(counts, Hybrid)
                counts.contents.expire(now)
                complete_one(made, now)
                counts.complete(next(task for task in counts.tasks if task.incomplete))
                if not any(task.incomplete for task in counts.tasks):
                    counts._finish(now)
            evaluations, results = fetch(made, arrival, names)
            done = counts.arrive(arrival)
            assert done.evaluations == evaluations, (seed, now)
            assert done.results + done.held == results, (seed, now)
            counts.contents.expire(now + 1)
            assert counts.tuples == made.tuples, (seed, now)
            seen += results
    assert seen > 1000


def test_without_sharing_results_are_the_same() -> None:
    """Each plan alone is restricted by the same chains; together they make what one plan makes."""
    for seed in range(12):
        chance = Random(seed)
        names = "ABCDEF"[: chance.choice([4, 5, 6])]
        tree, new = in_halves(chance, list(names)), in_halves(chance, list(names))
        plain, counts = Steady(tree, Contents(names, WINDOW)), Hybrid(tree, Contents(names, WINDOW), new, sharing=False)
        for arrival in records(seed, names):
            if arrival.time == 30:
                counts.start(30)
            assert counts.arrive(arrival).results == plain.arrive(arrival).results, (seed, arrival)
            assert counts.tuples >= plain.contents.size(frozenset(names[0]))


@pytest.mark.parametrize("kind", [GeneralMovingState, GeneralParallelTrack, GeneralHybrid])
def test_a_general_method_ends_with_the_states_of_the_new_plan(kind: Any) -> None:
    for seed in range(6):
        chance = Random(seed)
        names = "ABCD"
        tree, new = random_tree(chance, list(names)), random_tree(chance, list(names))
        moved, fresh = kind(tree, Contents(names, WINDOW), new, names), MedianBox(new, Contents(names, WINDOW))
        for arrival in records(seed, names):
            if arrival.time == 30:
                moved.start(30)
            moved.background(chance.randrange(60), arrival.time)
            done, plain = moved.arrive(arrival), fresh.arrive(arrival)
            assert done.results == plain.results
            if moved.ended is not None and arrival.time >= 30:
                assert moved.tuples == fresh.tuples and done.evaluations == plain.evaluations
        assert moved.ended is not None


def test_bushy_and_right_deep_plans_are_the_papers() -> None:
    setting = Setting(streams=5)
    assert setting.old == parse("(((A B) C) D) E", "ABCDE")
    assert setting.right_deep == parse("A (B (C (D E)))", "ABCDE")
    assert setting.sharing == parse("((A B) C) (D E)", "ABCDE")
    for streams in (4, 5, 6, 7):
        tree = setting.but(streams=streams).bushy
        assert isinstance(tree, Join) and len(list(joins(tree))) == streams - 1


def test_selectivities_are_the_papers() -> None:
    arrivals = Setting(minutes=60).arrivals()
    after = [arrival for arrival in arrivals if arrival.time >= 0]
    inside = {stream: [a.value < ELSEWHERE for a in after if a.stream == stream] for stream in range(6)}
    assert all(all(inside[stream]) for stream in range(5))
    assert 0.03 < sum(inside[5]) / len(inside[5]) < 0.07


# ----------------------------------------------------------------------------------------------------------- the clock


def small(capacity: float, kind: str = "moving-state") -> Course:
    setting = Setting(minutes=0.5, streams=4)
    return run(setting, lambda tree, contents: counted_in(tree, contents, setting, kind), capacity)


def counted_in(tree: Tree, contents: Contents, setting: Setting, kind: str) -> Steady:
    if kind == "moving-state":
        return MovingState(tree, contents, setting.right_deep)
    return Hybrid(tree, contents, setting.right_deep, in_background=kind == "background")


def test_capacity_changes_when_but_not_what() -> None:
    unlimited, slow = small(math.inf), small(400.0)
    assert slow.total == unlimited.total and slow.peak == unlimited.peak
    assert max(unlimited.delays) == 0.0 == unlimited.silence
    assert slow.silence > 1 and max(slow.delays) >= slow.silence
    silent = slice(-slow.begin + 1, -slow.begin + int(slow.silence))
    assert slow.results[silent].sum() == 0 < unlimited.results[silent].sum()
    assert slow.evaluations.max() <= 400 * 1.000001


def test_at_the_slow_capacity_moving_state_takes_as_long_as_in_the_paper() -> None:
    setting = Setting()

    def moving_state(tree: Tree, contents: Contents) -> Steady:
        return MovingState(tree, contents, setting.right_deep)

    seen = [run(setting.but(seed=seed), moving_state, SLOW).silence for seed in range(1, 5)]
    assert 45 < sum(seen) / len(seen) < 55


def test_work_in_the_background_uses_what_is_left() -> None:
    busy, idle, none = small(1_500.0, "background"), small(1e9, "background"), small(1e9, "hybmig")
    assert idle.duration < 1 < busy.duration <= none.duration == pytest.approx(30, abs=1)


def test_extent_of_everything() -> None:
    contents = Contents("AB", 10)
    for time, stream in enumerate((0, 0, 1)):
        contents.add(Arrival(time, stream, 3))
    assert climb(parse("A B", "AB"), Arrival(3, 1, 3), Extent(contents)) == (2, 2)
    assert climb(parse("A B", "AB"), Arrival(3, 1, ELSEWHERE), Extent(contents)) == (2, 0)


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    name = "hybmig-5.8"
    run_ = Run(quick=True, folder=tmp_path)
    run_.begin(name)
    (found,) = figures.select([name])
    found.body(run_)
    assert [path.name for path in run_.pictures] == [f"{name}.png"] and run_.results


def test_all_figures_of_the_paper_are_there() -> None:
    assert all(f"hybmig-{number}" in figures for number in MEASURED["hybmig"])
