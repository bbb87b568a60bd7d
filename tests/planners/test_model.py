"""Values of the model: what they accept, what they refuse, and that they cannot be changed."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import planners
from planners import BadRequest, BinMap, Infeasible, Intervals, Limits, Plan, Tasks
from planners.model import members

EXAMPLE = """
from planners import Infeasible, Intervals, ssm
sizes, loads = [5, 6, 9, 1, 8, 4, 1, 3, 2, 6], [8, 4, 7, 9, 2, 4, 1, 4, 7, 5]
plan = ssm(Intervals([0, 4, 7, 10]), nodes=5, sizes=sizes, loads=loads, tau=0.5)
print(plan.cost, plan.assignment.cuts, plan.assignment.nodes, plan.moves)
try:
    ssm(Intervals([0, 4, 7, 10]), nodes=4, sizes=sizes, loads=loads, tau=0.2)
except Infeasible as why:
    print(why.smallest_tau)
"""


def test_the_example_runs_as_it_stands() -> None:
    done = subprocess.run([sys.executable, "-c", EXAMPLE], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "9 (0, 1, 3, 4, 8, 10) (3, 0, 4, 1, 2) [(0, 0, 3), (3, 0, 4), (7, 2, 1)]"
    assert float(second) == pytest.approx(0.254902, abs=1e-6)


@given(some.lists(some.integers(0, 5), min_size=1, max_size=12), some.integers(0, 3))
def test_maps_and_intervals_say_the_same(lengths: list[int], first: int) -> None:
    """From intervals to a map and back: the same owner of each task, and the same nodes, idle ones included."""
    cuts = np.cumsum([0, *lengths]).tolist()
    if cuts[-1] == 0:
        return
    nodes = list(range(first, first + len(lengths)))[::-1]
    intervals = Intervals(cuts, nodes)
    again = intervals.bins().intervals()
    assert again.map().tolist() == intervals.map().tolist()
    assert set(again.nodes) == set(nodes)
    assert again.bins() == intervals.bins()
    for node, begin, end in zip(nodes, cuts, cuts[1:], strict=False):
        assert intervals.map()[begin:end].tolist() == [node] * (end - begin)


def test_values_cannot_be_changed() -> None:
    tasks = Tasks([1, 2], [3, 4])
    with pytest.raises(ValueError, match="read-only"):
        tasks.sizes[0] = 5
    with pytest.raises(AttributeError):
        tasks.sizes = np.ones(2)
    plan = Plan.between("x", Intervals([0, 2]), Intervals([0, 1, 2]), tasks)
    for value, field in ((plan, "cost"), (plan.assignment, "cuts"), (Limits(1, 0), "tau"), (BinMap([0]), "owners")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, 0)


def test_what_was_given_can_be_changed_afterwards() -> None:
    sizes = np.array([1, 2])
    tasks = Tasks(sizes, [1, 1])
    sizes[0] = 100
    assert tasks.sizes.tolist() == [1, 2]


def test_equal_values_are_equal_and_survive_pickling() -> None:
    plans = [Plan.between("x", Intervals([0, 2]), Intervals([0, 1, 2]), Tasks([1, 2], [3, 4])) for _ in range(2)]
    assert plans[0] == plans[1] and hash(plans[0]) == hash(plans[1])
    assert Tasks([1, 2], [3, 4]) != Tasks([1, 2], [3, 5]) and Tasks([1], [1]) != "tasks"
    assert pickle.loads(pickle.dumps(plans[0])) == plans[0]  # noqa: S301 (our own bytes: Spark sends values so)
    error = pickle.loads(pickle.dumps(Infeasible(3, 0.1, 0.2)))  # noqa: S301
    assert (error.nodes, error.tau, error.smallest_tau) == (3, 0.1, 0.2)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Intervals([1, 2]), "begin with 0"),
        (lambda: Intervals([0]), "begin with 0"),
        (lambda: Intervals([0, 3, 2]), "never descend"),
        (lambda: Intervals([0, 1.5]), "whole numbers"),  # type: ignore[list-item]
        (lambda: Intervals([0, 1], [1, 2]), "there are 2 nodes"),
        (lambda: Intervals([0, 1, 2], [1, 1]), "different numbers"),
        (lambda: Intervals([0, 1], [-1]), "zero or more"),
        (lambda: BinMap([]), "at least one task"),
        (lambda: BinMap([0, 3], [0, 1]), r"at the nodes \[3\], which are not among"),
        (lambda: BinMap([0, 1, 0]).intervals(), "tasks of node 0 are not consecutive"),
        (lambda: Tasks([], []), "at least one task"),
        (lambda: Tasks([[1]], [1]), "one number for each task"),
        (lambda: Tasks([1, 2], [1]), "2 sizes and 1 loads"),
        (lambda: Tasks([1, -2], [1, 1]), "sizes are zero or more: task 1 has -2"),
        (lambda: Tasks([1], [float("nan")]), "loads are zero or more: task 0 has nan"),
        (lambda: Tasks(["x"], [1]), "sizes are numbers"),
        (lambda: Limits(0, 1), "one node or more"),
        (lambda: Limits(1, -0.1), "zero or more"),
        (lambda: Limits(1, float("nan")), "zero or more"),
        (lambda: Plan.between("x", Intervals([0, 2]), Intervals([0, 3]), Tasks([1], [1])), "2 tasks before, 3 after"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, complaint: str) -> None:
    assert callable(make)
    with pytest.raises(BadRequest, match=complaint):
        make()


def test_a_map_is_no_start_for_an_interval_planner() -> None:
    with pytest.raises(BadRequest, match=r"has \.intervals\(\)"):
        planners.ssm(BinMap([0, 1]), nodes=2, sizes=[1, 1], loads=[1, 1], tau=0)  # type: ignore[arg-type]


def test_whole_sizes_give_whole_costs() -> None:
    whole = planners.ssm(Intervals([0, 4]), nodes=2, sizes=[1, 2, 3, 4], loads=[1] * 4, tau=0)
    assert type(whole.cost) is int and whole.cost == 3
    real = planners.ssm(Intervals([0, 4]), nodes=2, sizes=[1.5, 2, 3, 4], loads=[1] * 4, tau=0)
    assert type(real.cost) is float and real.cost == 3.5


def test_no_load_at_all_is_balanced() -> None:
    plan = planners.ssm(Intervals([0, 2]), nodes=3, sizes=[1, 1], loads=[0, 0], tau=0)
    assert plan.balance == 0 and plan.cost == 0 and plan.met


def test_new_nodes_get_free_numbers() -> None:
    assert members(Intervals([0, 1, 2], [1, 3]), 5) == (1, 3, 0, 2, 4)
    assert members(Intervals([0, 1, 2, 3], [1, 3, 5]), 2, stay=[5]) == (5, 1)


def test_the_front_door() -> None:
    assert all(getattr(planners, name).__doc__ for name in planners.__all__)
    assert sorted(planners.__all__) == planners.__all__


def test_planning_needs_neither_spark_nor_matplotlib() -> None:
    script = "import sys, planners.cli.command; print(sorted({'pyspark', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
