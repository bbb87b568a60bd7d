"""LLFD, MinTable, MinMig, Mixed and MixedBF (section III): one workflow, with different phases I and different ψ.

| | phase I moves back | ψ, who goes first |
|---|---|---|
| `llfd` | nothing | the highest cost |
| `min_table` | the whole table | the highest cost |
| `min_mig` | nothing | the largest γ = cost^β / state |
| `mixed` | as little as the table's size demands | the largest γ |
| `mixed_bf` | what moves least, of all possible numbers; or the least number that will do | the largest γ |

All of them plan on keys, or with `r` on the compact form (section IV), discretised with R = 2^r; `means=False` for the
paper's representatives (see `vectors`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from numpy.typing import ArrayLike

from planners.rebalance.plan import RebalancePlan
from planners.rebalance.problem import RebalanceProblem, problem
from planners.rebalance.workflow import Attempt, Workflow, by_cost, by_gamma, workflow


def llfd(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    window: int | None = None,
    r: int | None = None,
    means: bool = True,
) -> RebalancePlan:
    """Least-Load Fit Decreasing on the assignment as it is (algorithm 1). The table's size is judged, not heeded.

    The toy example of Figure 4, left: four entries, where `min_table` needs two.

    >>> toy = dict(home=[0, 0, 0, 1, 1, 1], current=[0, 0, 1, 1, 0, 1], instances=2, theta=0.0)
    >>> costs = [7, 4, 2, 1, 5, 1]
    >>> llfd(costs, costs, **toy).loads, llfd(costs, costs, **toy).table.size, min_table(costs, costs, **toy).table.size
    (array([10., 10.]), 4, 2)
    """
    _, work = _begin(cost, state, home, current, instances, theta, table, window, r, means)
    return work.plan(work.attempt(by_cost))


def min_table(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    window: int | None = None,
    r: int | None = None,
    means: bool = True,
) -> RebalancePlan:
    """Few table entries, whatever moves (algorithm 2). The table's size is judged, not heeded."""
    _, work = _begin(cost, state, home, current, instances, theta, table, window, r, means)
    return work.plan(work.attempt(by_cost, work.entries))


def min_mig(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    beta: float = 1.5,
    window: int | None = None,
    r: int | None = None,
    means: bool = True,
) -> RebalancePlan:
    """Little state moved, however large the table grows (algorithm 3). The table's size is judged, not heeded."""
    _, work = _begin(cost, state, home, current, instances, theta, table, window, r, means)
    return work.plan(work.attempt(by_gamma(beta)))


def mixed(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    beta: float = 1.5,
    window: int | None = None,
    r: int | None = None,
    means: bool = True,
) -> RebalancePlan:
    """Little state moved within a table of that size (algorithm 4): MinMig, until the table is too large.

    Each trial moves more entries back, those with the least state first: as many more as the table of the last trial
    was too large by. Once that is the whole table, it is MinTable.
    """
    given, work = _begin(cost, state, home, current, instances, theta, table, window, r, means)
    trials = 0
    for outcome in _ever_cleaner(work, beta, given.table):
        trials += 1
        if given.table is None or outcome.entries <= given.table:
            break
    return work.plan(outcome, trials)


def _begin(
    cost: ArrayLike,
    state: ArrayLike,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float,
    table: int | None,
    window: int | None,
    r: int | None,
    means: bool,
) -> tuple[RebalanceProblem, Workflow]:
    given = problem(
        cost, state, home=home, current=current, instances=instances, theta=theta, table=table, window=window
    )
    return given, workflow(given, r, means)


def _ever_cleaner(work: Workflow, beta: float, table: int | None) -> Iterator[Attempt]:
    back = 0
    while back < work.entries or back == 0:
        outcome = work.attempt(by_gamma(beta), back)
        yield outcome
        back = max(back, outcome.cleaned) + outcome.entries - (table or 0)
    yield work.attempt(by_cost, work.entries)


def mixed_bf(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    beta: float = 1.5,
    window: int | None = None,
    r: int | None = None,
    means: bool = True,
    best: Literal["cheapest", "fewest"] = "cheapest",
) -> RebalancePlan:
    """The brute force of section III-C: Mixed with every number n of entries moved back. The paper does not say which n
    is the optimal one: `best="cheapest"`, that with the least state moved of those in bounds; `"fewest"`, the least n
    in bounds, which is what Mixed looks for in larger strides.

    If none is in bounds, the one that is least above the limit of loads, then with the fewest entries, then the
    cheapest. Costs as many trials as the table has entries (in compact form, vectors of entries); `"fewest"` ends at
    the first that is in bounds.
    """
    if best not in ("cheapest", "fewest"):
        raise ValueError(f"best is 'cheapest' or 'fewest', not {best!r}")
    given, work = _begin(cost, state, home, current, instances, theta, table, window, r, means)
    attempts = [(by_gamma(beta), back) for back in work.cleanings()] + [(by_cost, work.entries)]
    chosen, trials = None, 0
    for psi, back in attempts:
        outcome = work.attempt(psi, back)
        trials += 1
        if chosen is None or outcome.rank(given) < chosen.rank(given):
            chosen = outcome
        if best == "fewest" and chosen.rank(given)[:2] == (0.0, 0):
            break
    assert chosen is not None
    return work.plan(chosen, trials)
