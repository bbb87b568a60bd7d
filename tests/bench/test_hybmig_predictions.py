"""What the optimiser predicts in the setting of the HybMig paper is what the figures count."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bench.experiments.hybmig.clock import Course, run
from bench.experiments.hybmig.counting import Contents
from bench.experiments.hybmig.methods import MovingState, Steady, plan_size
from bench.experiments.hybmig.setting import Setting
from megaphone.plans.trees import Tree
from planners.plans.costs import WorkModel
from planners.plans.orders import Order, nodes_of, read
from planners.plans.search import cheapest
from planners.plans.statistics import Cardinalities, JoinStatistics

SETTING = Setting()
NAMES = tuple(SETTING.names)
OLD, NEW = (read(str(tree), NAMES) for tree in (SETTING.old, SETTING.right_deep))


def known(rare: str) -> JoinStatistics:
    shares = {frozenset(pair): 0.0025 if rare in pair else 0.05 for pair in combinations(NAMES, 2)}
    return JoinStatistics(NAMES, SETTING.window, dict.fromkeys(NAMES, SETTING.rate), shares)


def pairs(statistics: JoinStatistics, order: Order) -> float:
    """Evaluations per second of nested loops."""
    sizes = Cardinalities(statistics)
    sides = list(nodes_of(order))
    return sum(sizes.made(one) * sizes.size(other) + sizes.made(other) * sizes.size(one) for one, other in sides)


def moving_state(tree: Tree, contents: Contents) -> Steady:
    return MovingState(tree, contents, SETTING.right_deep)


@pytest.fixture(scope="module")
def courses() -> list[Course]:
    return [run(SETTING.but(seed=seed), moving_state, 1e6) for seed in range(1, 5)]


def test_filling(courses: list[Course]) -> None:
    """At the start the data are still those of the warm-up: A is rare. At a million evaluations a second, seconds of
    silence are millions of evaluations."""
    counted = float(np.mean([course.silence for course in courses])) * 1e6
    model = WorkModel(Cardinalities(known("A")), nested=True)
    made = sum(model.sizes.size(frozenset(NAMES[first:])) for first in range(1, 5))
    assert model.filling(OLD, NEW) - made == pytest.approx(counted, rel=0.1)


def test_tuples() -> None:
    """Before the migration data are steady. How many records of A are within the domain varies a lot: many seeds."""
    sizes = []
    for seed in range(60):
        contents = Contents(SETTING.names, SETTING.window)
        for arrival in SETTING.but(seed=seed, lead=0.0).arrivals():
            if arrival.time < 0:
                contents.add(arrival)
        sizes.append(plan_size(SETTING.old, contents))
    assert WorkModel(Cardinalities(known("A"))).tuples(OLD) == pytest.approx(np.mean(sizes), rel=0.15)


def test_the_papers_plans_are_nearly_the_cheapest() -> None:
    """They join the rare stream first; a bushy plan is cheaper still, by less than a tenth."""
    for rare, plan in (("A", OLD), ("F", NEW)):
        best = cheapest(known(rare), nested=True)
        model = WorkModel(Cardinalities(known(rare)), nested=True)
        assert best.steps < model.order(plan) < 1.1 * best.steps
        assert any(len(one) > 1 and len(other) > 1 for one, other in nodes_of(best.order))
    assert pairs(known("F"), OLD) > 5 * pairs(known("F"), NEW)
