"""Any planner in the form that the loop takes: from an `Observation` and a tolerance to a `Proposal`. Pure.

Three kinds: `by_bins` and `by_keys` ask a rebalancing planner, the latter about heavy keys on their own;
`by_intervals` asks an interval planner, and chooses the number of workers by their load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from planners.errors import NothingBalanced, PlannerError
from planners.intervals.ssm import ssm
from planners.loop.observation import Floats, Ints, Observation, Proposal
from planners.loop.steering import Key
from planners.model import Assignment, BinMap, Plan
from planners.rebalance.heuristics import mixed
from planners.rebalance.plan import RebalancePlan

Rebalancer: TypeAlias = Callable[..., RebalancePlan]  # called as `mixed` is; what options there are differs
IntervalPlanner: TypeAlias = Callable[..., Plan]  # called as `ssm` is
Planning: TypeAlias = Callable[[Observation, float], Proposal]  # the float: how far above the mean a load may be then
TABLE = 3_000  # A_max, the most entries of a routing table: the default of the paper's Table II
TIGHTENINGS = 3  # of the bound, where keys stayed behind when their bins moved; then it is 0


@dataclass(frozen=True)
class LoopPlanner:
    """A planner, how many workers it wants for a load, and what it calls balanced."""

    name: str
    plan: Planning
    tolerance: float
    wanted: Callable[[float, int], int] | None = None  # of the load and the workers in use; None: all of them
    prepare: Callable[[], object] | None = None  # compiles what there is to compile

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < float("inf"):
            raise ValueError(f"a tolerance is how far a load may be above the mean, so it cannot be {self.tolerance}")


def by_bins(
    planner: Rebalancer = mixed, theta: float = 0.08, table: int | None = TABLE, **options: object
) -> LoopPlanner:
    """A rebalancing planner over bins. Keys that live apart stay where they are.

    `table` is the bound on the routing table (N_A): a bin's home is where it is now, so that a plan's entries are the
    bins that it moves. None: no bound, and then `mixed` is `min_mig`.
    """
    asked = {"table": _checked(table), **options}

    def plan(seen: Observation, aim: float) -> Proposal:
        apart = seen.apart
        fixed = np.bincount(seen.key_places[apart], seen.key_cost[apart], seen.workers)
        cost, state = np.append(seen.cost, fixed), np.append(seen.bytes, np.full(seen.workers, 1e18))
        current = np.append(seen.places, np.arange(seen.workers))  # what is fixed: an item of each, too big to move
        found = planner(cost, state, home=current, current=current, instances=seen.workers, theta=aim, **asked)
        to = found.assignment[: len(seen.cost)].astype(np.int64)
        return _proposal(seen, to, {})

    return LoopPlanner(_name(planner, "bins"), plan, theta, prepare=lambda: _try(planner, asked))


def by_keys(
    planner: Rebalancer = mixed,
    theta: float = 0.08,
    table: int | None = TABLE,
    heavy: int | None = None,
    **options: object,
) -> LoopPlanner:
    """A rebalancing planner over bins and, on their own, the heaviest keys (`heavy` of them; all that are reported).

    `table` is the bound on the routing table (N_A), which planners are given: `mixed` and `mixed_bf` heed it. A key's
    home is where its bin is, a bin's where it is now, so that a plan's entries are the keys that live apart and the
    bins that it moves. A key that stays behind when its bin moves lives apart, too, which planners do not know of: if
    the bound is exceeded by these, it asks again with a tighter one. None: no bound, and then `mixed` is `min_mig`.
    """
    if heavy is not None and heavy < 0:
        raise ValueError(f"`heavy` is how many keys are planned on their own, so it cannot be {heavy}")

    def plan(seen: Observation, aim: float) -> Proposal:
        first = np.argsort(-seen.key_cost, kind="stable")[:heavy]
        given = _with_keys(seen, first)

        def ask(bound: int | None) -> tuple[Ints, Ints, int]:
            """Where bins and keys should be, and how many keys live apart then."""
            places = {"home": given.home, "current": given.current, "instances": seen.workers}
            found = planner(given.cost, given.state, **places, theta=aim, table=bound, **options)
            to, there = np.split(found.assignment.astype(np.int64), [len(seen.cost)])
            return to, there, int((there != to[seen.key_bins[first]]).sum())

        (to, there, apart), bound, trial = ask(table), table, 0
        while table is not None and apart > table and bound:
            trial += 1
            bound = max(0, bound - (apart - table)) if trial <= TIGHTENINGS else 0
            (to, there, apart), before = ask(bound), (to, there)
            if np.array_equal(to, before[0]) and np.array_equal(there, before[1]):
                break  # it does not heed the bound
        over = table is not None and apart > table
        note = f", after which {apart} keys live apart and no more than {table} should" if over else ""
        return _proposal(seen, to, _pins(seen, first, to, there), note)

    asked = {"table": _checked(table), **options}
    return LoopPlanner(_name(planner, "bins and heavy keys"), plan, theta, prepare=lambda: _try(planner, asked))


def _checked(table: int | None) -> int | None:
    """Refuses a bound that makes no sense, when the loop is made and not when something is to move."""
    if table is not None and table < 0:
        raise ValueError(f"a routing table of size {table} makes no sense; None is no bound")
    return table


class _Given(NamedTuple):
    """What a rebalancing planner is given: bins, and after them the keys that are planned on their own."""

    cost: Floats
    state: Floats
    home: Ints
    current: Ints


def _with_keys(seen: Observation, first: Ints) -> _Given:
    inside = first[~seen.apart[first]]
    rest = seen.cost.copy()
    np.subtract.at(rest, seen.key_bins[inside], seen.key_cost[inside])  # estimates may be above what there was
    rest = np.maximum(rest, 0.0)
    bins = seen.key_bins[first]
    state = np.append(seen.bytes, _key_bytes(seen)[first])
    home = np.append(seen.places, seen.places[bins])  # of a key: where its bin is
    current = np.append(seen.places, seen.key_places[first])
    return _Given(np.append(rest, seen.key_cost[first]), state, home, current)


def _key_bytes(seen: Observation) -> Floats:
    """By heavy key, about how much state it has: nobody reports that, so it has its share of the load of its bin."""
    share = seen.key_cost / np.maximum(seen.cost[seen.key_bins], seen.key_cost + 1e-9)
    return np.asarray(seen.bytes[seen.key_bins] * share, float)


def _name(planner: Callable[..., object], what: str) -> str:
    while isinstance(planner, partial):
        planner = planner.func
    return f"{getattr(planner, '__name__', type(planner).__name__)} on {what}"


def _try(planner: Rebalancer, options: Mapping[str, object]) -> None:
    """Has a planner plan something, so that it is compiled by the time it is needed."""
    there = np.zeros(4, np.int64)
    planner(np.array([4.0, 2.0, 1.0, 1.0]), np.ones(4), home=there, current=there, instances=2, theta=0.0, **options)


def _pins(seen: Observation, chosen: Ints, to: Ints, there: Ints) -> dict[Key, int | None]:
    """The pins that change. A key is pinned if it should live elsewhere than its bin, and goes back to its bin if not,
    or if it is not heavy any more."""
    pins: dict[Key, int | None] = {}
    keys, bins = seen.keys[chosen].tolist(), seen.key_bins[chosen].tolist()
    for key, bin, worker in zip(keys, bins, there.tolist(), strict=True):
        if worker != to[bin]:
            if seen.pinned.get(key) != worker:
                pins[key] = worker
        elif key in seen.pinned:
            pins[key] = None
    return pins | {key: None for key in seen.pinned if key not in set(keys)}


def _proposal(seen: Observation, to: Ints, pins: dict[Key, int | None], more: str = "", by: str = "") -> Proposal:
    loads = np.bincount(to, seen.cost, seen.workers).astype(float)
    for key, bin, cost in zip(seen.keys.tolist(), seen.key_bins.tolist(), seen.key_cost.tolist(), strict=True):
        before, after = seen.pinned.get(key), pins.get(key, seen.pinned.get(key))
        if after is not None:
            loads[after] += cost
        if before is None and after is not None:
            loads[to[bin]] -= min(cost, loads[to[bin]])
        elif before is not None and after is None:
            loads[to[bin]] += cost
    note = f"{int((to != seen.places).sum())} bins and {len(pins)} keys{more}"
    return Proposal(to, pins, loads, _moved(seen, to, pins), note, by)


def _moved(seen: Observation, to: Ints, pins: Mapping[Key, int | None]) -> float:
    """Bytes that change their worker: of bins, and about those of heavy keys that move without their bin. A key that
    stays where it is while its bin leaves is taken off what the bin has."""
    total = float(seen.bytes[to != seen.places].sum())
    for key, bin, size in zip(seen.keys.tolist(), seen.key_bins.tolist(), _key_bytes(seen).tolist(), strict=True):
        pin = seen.pinned.get(key)
        after = pins.get(key, pin)
        before, goes_to = (int(seen.places[bin]) if pin is None else pin), (int(to[bin]) if after is None else after)
        with_its_bin = pin is None and to[bin] != seen.places[bin]
        total += size * (int(before != goes_to) - int(with_its_bin))
    return total


def by_intervals(
    planner: IntervalPlanner = ssm,
    tau: float = 0.2,
    *,
    capacity: float,
    low: float = 0.6,
    least: int = 1,
    otherwise: IntervalPlanner | None = None,
) -> LoopPlanner:
    """An interval planner, and as many workers as the load needs: `capacity` is what one of them can do in an interval.

    More workers are used as soon as those in use have more load than they can do; fewer only when the fewer would have
    less than `low` of what they can do. Where bins are too coarse for what the loop aims at, the planner is asked for
    `tau`.

    If the planner refuses that too, its error is raised; in a loop, if nothing is balanced within tau, the decision is
    to stay, and says so. If `otherwise` names a second planner, that one decides instead, and the decision says that it
    did, and why. Bins start scattered over workers, and interval planners refuse scattered bins: lay them in intervals
    first, or name `planners.storm`, which takes any map.
    """

    if not (0 < capacity < float("inf") and 0 < low <= 1 and least >= 1):
        raise ValueError(
            f"a worker's capacity is above 0, of which `low` is a share, and at least one worker is used: not capacity "
            f"{capacity}, low {low}, least {least}"
        )

    def wanted(load: float, now: int) -> int:
        needed = max(least, ceil(load / capacity))
        if needed >= now:
            return needed
        return min(now, max(least, ceil(load / (capacity * low))))

    def plan(seen: Observation, aim: float) -> Proposal:
        used = sorted(set(seen.places.tolist()))
        nodes = min(seen.workers, wanted(float(seen.cost.sum()), len(used)))
        bins = BinMap(seen.places, used)
        current: Assignment = bins.intervals() if bins.consecutive else bins
        try:
            found, by = _within(planner, current, nodes, seen, (aim, tau)), ""
        except PlannerError as why:
            if otherwise is None:
                raise
            by = f"{_name(otherwise, 'intervals')}, because {_name(planner, 'intervals')} refused ({why}),"
            found = _within(otherwise, current, nodes, seen, (aim, tau))
        return _proposal(seen, np.asarray(found.map(), np.int64), {}, by=by)

    return LoopPlanner(_name(planner, "intervals"), plan, tau, wanted)


def _within(
    planner: IntervalPlanner, current: Assignment, nodes: int, seen: Observation, bounds: tuple[float, float]
) -> Plan:
    """The plan within the first bound, which is aimed at, or, if nothing is balanced within that, within the second."""
    aim, tau = bounds
    try:
        return planner(current, nodes=nodes, sizes=seen.bytes, loads=seen.cost, tau=aim)
    except NothingBalanced:
        if aim >= tau:
            raise
        return planner(current, nodes=nodes, sizes=seen.bytes, loads=seen.cost, tau=tau)
