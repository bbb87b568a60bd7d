"""mtm_aware: the choice of the example, SSM without a future, tables on disk, and what it refuses."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from planners.errors import BadRequest, Infeasible
from planners.intervals.ssm import ssm
from planners.model import Intervals, Tasks
from planners.mtm import tables as stored
from planners.mtm.choice import Tables, mtm_aware, mtm_choice
from planners.mtm.grids import coarse
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Projected, project
from planners.mtm.transitions import Transitions
from tests.planners import bellman
from tests.planners.test_mtm_projection import EXAMPLE

NOW = Intervals([0, 4, 7, 10])


@pytest.fixture(scope="module")
def projected() -> Projected:
    return project(EXAMPLE, 1e-12)


@pytest.fixture(params=["in memory", "mapped"])
def tables(request: pytest.FixtureRequest, projected: Projected, tmp_path: Path) -> Tables:
    if request.param == "in memory":
        return Tables.of(projected)
    stored.write(tmp_path, projected)
    return Tables.open(tmp_path)


def test_the_choice_of_the_example(tables: Tables) -> None:
    choice = mtm_choice(NOW, nodes=4, tables=tables)
    assert choice.plan.assignment == Intervals([0, 3, 7, 10, 10])
    assert choice.total == pytest.approx(8.514526, abs=1e-6)
    assert choice.plan.cost == 1 and choice.total == pytest.approx(1 + 0.8 * choice.projected)
    assert tables.cost(4, [0, 3, 4, 8, 10]) == pytest.approx(9.294904, abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_the_choice_is_the_best_of_all(seed: int, projected: Projected) -> None:
    rng = np.random.default_rng(seed)
    nodes, tau = int(rng.integers(2, 5)), float(rng.choice([0.3, 0.4, 0.5]))
    now = Intervals([0, *sorted(rng.integers(0, 11, rng.integers(0, 5)).tolist()), 10])
    costs = bellman.projected(bellman.SIZES, bellman.LOADS, bellman.TABLE_4, _limits(0.5), 0.8) if seed == 0 else None
    choice = mtm_choice(now, nodes=nodes, tables=Tables.of(projected), tau=tau)
    allowed = bellman.cut_lists(bellman.LOADS, nodes, _limits(tau)[nodes])
    ranks = {tuple(row): rank for rank, row in enumerate(EXAMPLE.partitionings(nodes).cuts().tolist())}
    value = {cuts: costs[nodes, cuts] if costs else projected.costs[nodes][ranks[cuts]] for cuts in allowed}
    totals = [bellman.cost(now.cuts, cuts, bellman.SIZES) + 0.8 * value[cuts] for cuts in allowed]
    assert choice.total == pytest.approx(min(totals), abs=1e-9)
    assert choice.plan.met and choice.plan.tau == tau


def _limits(tau: float) -> dict[int, float]:
    return bellman.mean_limits(bellman.LOADS, (2, 3, 4), tau)


@pytest.mark.parametrize("seed", range(40))
def test_without_a_future_it_is_ssm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(6, 20))
    sizes, loads = rng.integers(0, 9, m), rng.integers(1, 4, m)
    matrix = Transitions([2, 3, 4], np.full((3, 3), 1 / 3))
    tables = Tables.of(project(MTMProblem(Tasks(sizes, loads), matrix, tau=1.0, gamma=0.0)))
    for tau in (1.0, 0.8):
        for nodes in (2, 3, 4):
            now = Intervals([0, *sorted(rng.integers(0, m + 1, rng.integers(0, 6)).tolist()), m])
            try:
                expected = ssm(now, nodes=nodes, sizes=sizes, loads=loads, tau=tau)
            except Infeasible as why:
                with pytest.raises(Infeasible, match=f"{why.smallest_tau:.3f}"[:4]):
                    mtm_aware(now, nodes=nodes, tables=tables, tau=tau)
                continue
            plan = mtm_aware(now, nodes=nodes, tables=tables, tau=tau)
            assert plan.cost == expected.cost and plan.met
            assert len(plan.assignment.nodes) == nodes


def test_nodes_keep_their_names_and_new_ones_are_new() -> None:
    tables = Tables.of(project(EXAMPLE))
    now = Intervals([0, 4, 7, 10], nodes=[7, 2, 9])
    plan = mtm_aware(now, nodes=4, tables=tables)
    assert {7, 2, 9} < set(plan.assignment.nodes)
    assert plan.cost == sum(bellman.SIZES[task] for task, _, _ in plan.moves)
    assert set(mtm_aware(now, nodes=2, tables=tables).assignment.nodes) < {7, 2, 9}


def test_projected_costs_grow_with_the_state(projected: Projected) -> None:
    before = mtm_choice(NOW, nodes=4, tables=Tables.of(projected))
    after = mtm_choice(NOW, nodes=4, tables=Tables.of(projected), sizes=[3 * size for size in bellman.SIZES])
    assert after.plan.assignment == before.plan.assignment
    assert after.total == pytest.approx(3 * before.total)


def test_other_loads_narrow_the_choice(projected: Projected) -> None:
    tables = Tables.of(projected)
    flat = mtm_aware(NOW, nodes=3, tables=tables, loads=[1] * 10, tau=0.2)
    assert max(flat.loads.values()) <= 4
    with pytest.raises(BadRequest, match=r"none of the tables' partitionings.*ssm"):
        mtm_aware(NOW, nodes=2, tables=tables, loads=[50, 50, 0, 0, 0, 0, 0, 0, 0, 0], tau=0.5)
    with pytest.raises(Infeasible, match="tau = 1"):
        mtm_aware(NOW, nodes=2, tables=tables, loads=[50, 0, 0, 0, 0, 0, 0, 0, 0, 0], tau=0.5)


def test_what_the_tables_do_not_know_is_refused(projected: Projected) -> None:
    tables = Tables.of(projected)
    with pytest.raises(BadRequest, match=r"for \[2, 3, 4\] nodes, not for 5"):
        mtm_aware(NOW, nodes=5, tables=tables)
    with pytest.raises(BadRequest, match="greatest tau"):
        mtm_aware(NOW, nodes=4, tables=tables, tau=0.6)
    with pytest.raises(BadRequest, match="for 10 tasks, and there are 3"):
        mtm_aware(Intervals([0, 3]), nodes=2, tables=tables, sizes=[1] * 3, loads=[1] * 3)
    with pytest.raises(BadRequest, match="not among the balanced"):
        tables.cost(2, [0, 1, 10])


def test_what_is_no_table_is_refused(projected: Projected, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"no parameters\.json"):
        Tables.open(tmp_path)
    (tmp_path / "parameters.json").write_text("{")
    with pytest.raises(BadRequest, match="not JSON"):
        Tables.open(tmp_path)
    (tmp_path / "parameters.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(BadRequest, match="another format"):
        Tables.open(tmp_path)
    stored.write(tmp_path, projected)
    for part in (tmp_path / "costs" / "nodes=3").iterdir():
        part.unlink()
    with pytest.raises(BadRequest, match="no table for 3 nodes"):
        Tables.open(tmp_path)


def test_only_the_cheap_end_of_a_table_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "ROW_GROUP", 20)
    tasks = Tasks([1] * 12, [1] * 12)
    solved = project(MTMProblem(tasks, Transitions([2, 6], [[0.5, 0.5], [0.5, 0.5]]), tau=1.0, gamma=0.9))
    stored.write(tmp_path, solved)
    tables, read = Tables.open(tmp_path), []
    groups = [stored.CostRows(g.least, lambda g=g: read.append(g) or g.read()) for g in tables.rows(6)]  # type: ignore[misc,func-returns-value]
    watched = Tables(tables.problem, tables.error, {6: groups})
    best = min(solved.costs[6])
    rank = int(np.argmin(solved.costs[6]))
    now = Intervals(solved.problem.partitionings(6).cuts()[rank].tolist())  # to stay costs nothing
    assert mtm_choice(now, nodes=6, tables=watched).total == pytest.approx(0.9 * best)
    assert 0 < len(read) < len(groups)


# Tables on a grid


@pytest.mark.parametrize("seed", range(12))
def test_off_the_grid_a_walk_costs_no_more_than_on_it(seed: int) -> None:
    """By what all later steps cost on average, from every partitioning there is, going by these choices for ever; and
    never less than the exact optimum, which is what the choice promises at most."""
    rng = np.random.default_rng(seed)
    m, gamma, tau = int(rng.integers(6, 9)), 0.8, float(rng.choice([0.6, 1.0]))
    tasks = Tasks(rng.integers(1, 9, m), rng.integers(2, 5, m))
    matrix = Transitions([2, 3], [[0.3, 0.7], [0.6, 0.4]])
    gridded = MTMProblem(tasks, matrix, tau, gamma, coarse(tasks, m - 2))
    exact = project(MTMProblem(tasks, matrix, tau, gamma), 1e-12)
    tables = Tables.of(project(gridded, 1e-12))
    states = [(n, tuple(row)) for n in (2, 3) for row in exact.problem.partitionings(n).cuts().tolist()]
    promised = dict.fromkeys(states, 0.0)
    for _ in range(200):  # the costs of going by these choices, by repetition
        promised = {
            (n, cuts): sum(
                matrix.probability(n, then) * (price + gamma * promised[then, chosen])
                for then, price, chosen in _choices(cuts, tables)
            )
            for n, cuts in states
        }
    for n in (2, 3):
        lists = gridded.in_tasks(gridded.partitionings(n).cuts()).tolist()
        for cuts in lists:
            assert promised[n, tuple(cuts)] <= tables.cost(n, cuts) + 1e-6, (n, cuts)
        for rank, row in enumerate(exact.problem.partitionings(n).cuts().tolist()):
            assert promised[n, tuple(row)] >= exact.costs[n][rank] - 1e-6
    _choices.cache_clear()


@cache
def _choices(cuts: tuple[int, ...], tables: Tables) -> list[tuple[int, float, tuple[int, ...]]]:
    """By next node count: what the step costs, and where it leads."""
    made = []
    for then in (2, 3):
        choice = mtm_choice(Intervals(cuts), nodes=then, tables=tables)
        assert choice.plan.met and choice.total == pytest.approx(choice.plan.cost + 0.8 * choice.projected)
        ends = choice.plan.assignment.intervals().cuts
        m = ends[-1]
        distinct = sorted({*ends})
        made.append((then, choice.plan.cost, (*distinct, *[m] * (then + 1 - len(distinct)))))
    return made
