"""Projected costs: the values of the example, and equality with two oracles."""

from __future__ import annotations

import numpy as np
import pytest

from planners.errors import BadRequest, Infeasible
from planners.model import Tasks
from planners.mtm.grids import Grid, coarse
from planners.mtm.policy import Policy, evaluate, evaluate_lasting, follow
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import dense, project
from planners.mtm.transitions import Transitions
from tests.planners import bellman

EXAMPLE = MTMProblem(Tasks(bellman.SIZES, bellman.LOADS), Transitions([2, 3, 4], bellman.TABLE_4), tau=0.5, gamma=0.8)


@pytest.mark.parametrize(
    ("nodes", "cuts", "cost"),
    [
        (2, [0, 3, 10], 9.133329),
        (3, [0, 3, 4, 10], 10.007543),
        (4, [0, 3, 4, 8, 10], 9.294904),
        (4, [0, 2, 5, 8, 10], 21.578914),
    ],
)
@pytest.mark.parametrize("solve", [project, dense])
def test_the_values_of_the_example(solve: object, nodes: int, cuts: list[int], cost: float) -> None:
    solved = solve(EXAMPLE)  # type: ignore[operator]
    rank = EXAMPLE.partitionings(nodes).cuts().tolist().index(cuts)
    assert solved.costs[nodes][rank] == pytest.approx(cost, abs=1e-6)


def random_problem(seed: int) -> MTMProblem:
    rng = np.random.default_rng(seed)
    counts = sorted(rng.choice(np.arange(1, 6), rng.integers(1, 4), replace=False).tolist())
    m = int(rng.integers(3, 8))
    matrix = rng.dirichlet([0.7] * len(counts), len(counts))
    if seed % 3 == 0 and len(counts) > 1:  # changes only: with two counts a matrix that goes to and fro for ever
        matrix = np.eye(len(counts))[np.roll(np.arange(len(counts)), 1)]
    tasks = Tasks(rng.choice([0, 1, 2, 7, 30], m), rng.choice([1, 1, 2, 3], m))
    gamma = float(rng.choice([0.0, 0.5, 0.8, 0.95]))
    return MTMProblem(tasks, Transitions(counts, matrix / matrix.sum(axis=1, keepdims=True)), tau=1.5, gamma=gamma)


@pytest.mark.parametrize("seed", range(30))
def test_projected_costs_solve_the_bellman_equation(seed: int) -> None:
    problem = random_problem(seed)
    if not all(problem.partitionings(nodes).count for nodes in problem.counts):  # a heavy task, and many nodes
        with pytest.raises(Infeasible):
            project(problem)
        return
    solved, exact = project(problem, 1e-12), dense(problem)
    sizes, loads = problem.tasks.sizes.tolist(), problem.tasks.loads.tolist()
    limits = bellman.mean_limits(loads, problem.counts, problem.tau)
    expected = bellman.projected(sizes, loads, problem.transitions.matrix.tolist(), limits, problem.gamma)
    assert sum(map(len, solved.costs.values())) == len(expected)
    for nodes in problem.counts:
        for rank, cuts in enumerate(problem.partitionings(nodes).cuts().tolist()):
            truth = expected[nodes, tuple(cuts)]
            assert exact.costs[nodes][rank] == pytest.approx(truth, abs=1e-9)
            assert solved.costs[nodes][rank] == pytest.approx(truth, abs=1e-9)


def test_the_error_is_a_bound_when_the_iteration_is_cut_short() -> None:
    exact = dense(EXAMPLE)
    for tolerance in (0.5, 0.1, 1e-2, 1e-4):
        rough = project(EXAMPLE, tolerance)
        assert rough.error <= tolerance * EXAMPLE.tasks.total_size
        for nodes in EXAMPLE.counts:
            assert np.abs(rough.costs[nodes] - exact.costs[nodes]).max() <= rough.error + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_a_grid_costs_no_more_than_its_bound(seed: int) -> None:
    """exact(limit) <= grid(limit) <= exact(limit - load_error) + cost_error, on the partitionings of the grid."""
    rng = np.random.default_rng(seed)
    m, counts, gamma, tau = 8, (3, 4), 0.7, 1.6
    tasks = Tasks(rng.integers(0, 6, m), rng.integers(1, 3, m))
    anywhere = Grid([0, *sorted(rng.choice(np.arange(1, m), 5, replace=False).tolist()), m])
    grid = anywhere if seed % 2 else coarse(tasks, 5)
    on_grid = dense(MTMProblem(tasks, Transitions(counts, [[0.4, 0.6], [0.9, 0.1]]), tau, gamma, grid))
    sizes, loads = tasks.sizes.tolist(), tasks.loads.tolist()
    limits = bellman.mean_limits(loads, counts, tau)
    tighter = {nodes: limit - grid.load_error(tasks) for nodes, limit in limits.items()}
    below, above = (
        bellman.projected(sizes, loads, [[0.4, 0.6], [0.9, 0.1]], each, gamma) for each in (limits, tighter)
    )
    compared = 0
    for nodes in counts:
        rows = on_grid.problem.in_tasks(on_grid.problem.partitionings(nodes).cuts()).tolist()
        for cuts, cost in zip(rows, on_grid.costs[nodes].tolist(), strict=True):
            assert below[nodes, tuple(cuts)] <= cost + 1e-9
            if (nodes, tuple(cuts)) in above:
                compared += 1
                assert cost <= above[nodes, tuple(cuts)] + grid.cost_error(tasks, max(counts), gamma) + 1e-9
    assert compared


def test_a_grid_of_every_task_is_exact() -> None:
    fine = Grid(range(11))
    assert fine.load_error(EXAMPLE.tasks) == fine.cost_error(EXAMPLE.tasks, 4, 0.8) == 0
    assert coarse(EXAMPLE.tasks, 10).positions == fine.positions


def test_what_is_no_problem_is_refused() -> None:
    for gamma in (1.0, -0.1, float("nan")):
        with pytest.raises(BadRequest, match="below one"):
            MTMProblem(EXAMPLE.tasks, EXAMPLE.transitions, 0.5, gamma)
    with pytest.raises(BadRequest, match="ends at 9"):
        MTMProblem(EXAMPLE.tasks, EXAMPLE.transitions, 0.5, 0.8, Grid([0, 4, 9]))
    with pytest.raises(BadRequest, match="ascends"):
        Grid([0, 4, 4, 10])


def test_parameters_tell_all_of_a_problem() -> None:
    gridded = MTMProblem(EXAMPLE.tasks, EXAMPLE.transitions, 0.5, 0.8, coarse(EXAMPLE.tasks, 5))
    for problem in (EXAMPLE, gridded):
        assert MTMProblem.of(problem.parameters()) == problem
        assert MTMProblem.of(problem.parameters()).fingerprint == problem.fingerprint
    assert gridded.fingerprint != EXAMPLE.fingerprint


@pytest.mark.parametrize("seed", range(20))
def test_settling_in_parts_is_settling_at_once(seed: int) -> None:
    """`evaluate` against its two halves, of which Spark does the second in parallel."""
    chance = np.random.default_rng(seed)
    sizes = chance.integers(1, 40, 3)
    matrix = chance.dirichlet(np.ones(3), 3)
    policies = [Policy(chance.random(n), np.stack([chance.integers(0, m, n) for m in sizes], 1)) for n in sizes]
    guess = [np.zeros(n) for n in sizes]
    whole = np.concatenate(evaluate(policies, matrix, 0.8, guess))
    firsts = np.cumsum([0, *sizes])
    targets = np.concatenate([policy.targets + firsts[:-1] for policy in policies])
    row, direct = np.repeat(np.arange(3), sizes), np.concatenate([policy.direct for policy in policies])
    ranks = np.unique(targets)
    places = np.searchsorted(ranks, targets)
    lasting = evaluate_lasting(row[ranks], direct[ranks], places[ranks], 0.8 * matrix, np.zeros(len(ranks)))
    found = [follow(direct[row == i], places[row == i], 0.8 * matrix[i], lasting) for i in range(3)]
    assert np.allclose(np.concatenate(found), whole, atol=1e-12)
