"""What the loop sees of an operator in one interval, and what may be done about it. Pure.

A planner for the loop is anything that maps an `Observation` and a tolerance to a `Proposal`. Three kinds: `by_bins`
and `by_keys` ask a rebalancing planner, the latter about heavy keys on their own; `by_intervals` asks an interval
planner, and chooses the number of workers by their load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from megaphone.keys.keyspace import as_objects
from planners.errors import NothingBalanced, PlannerError
from planners.intervals.ssm import ssm
from planners.model import Assignment, BinMap
from planners.model import Plan as IntervalPlan
from planners.rebalance import mixed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TABLE = 3_000  # A_max, the most entries of a routing table: the default of the paper's Table II
TIGHTENINGS = 3  # of the bound, where keys stayed behind when their bins moved; then it is 0


@dataclass(frozen=True, eq=False)
class Observation:
    """Loads of an interval. Bins' loads are without those of keys that live apart from them."""

    workers: int
    places: Ints  # by bin, its worker
    cost: Floats  # by bin
    bytes: Floats  # by bin
    keys: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))  # heavy ones, each once; of any type
    key_cost: Floats = field(default_factory=lambda: np.empty(0))
    key_bins: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    pinned: Mapping[Any, int] = field(default_factory=dict)  # by key that lives apart, its worker

    @property
    def key_places(self) -> Ints:
        """Where the heavy keys are."""
        home = self.places[self.key_bins] if len(self.keys) else self.keys
        pins = [self.pinned.get(key, -1) for key in self.keys.tolist()]
        return np.where(np.array(pins, np.int64) >= 0, pins, home).astype(np.int64)

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which heavy keys live apart."""
        return np.array([key in self.pinned for key in self.keys.tolist()], bool)

    def loads(self, places: Ints, key_places: Ints | None = None) -> Floats:
        """By worker, if bins and the keys that live apart were so."""
        there = self.key_places if key_places is None else key_places
        apart = self.apart
        bins = np.bincount(places, self.cost, self.workers)
        return np.asarray(bins + np.bincount(there[apart], self.key_cost[apart], self.workers), float)


def combine(seen: Sequence[Observation]) -> Observation:
    """Several intervals in which everything was where it was in the last one, as one: means of loads."""
    last, count = seen[-1], len(seen)
    if count == 1:
        return last
    costs: dict[Any, float] = {}
    bins: dict[Any, int] = {}
    for one in seen:
        for key, cost, bin in zip(one.keys.tolist(), one.key_cost.tolist(), one.key_bins.tolist(), strict=True):
            costs[key] = costs.get(key, 0.0) + cost / count
            bins[key] = bin
    mean: Floats = np.sum([one.cost for one in seen], axis=0) / count
    keys, key_cost, key_bins = as_objects(costs), np.array([*costs.values()]), np.array([*bins.values()], np.int64)
    return replace(last, cost=mean, keys=keys, key_cost=key_cost, key_bins=key_bins)


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where everything should be, and the loads that follow."""

    to: Ints  # by bin, its worker
    pins: dict[Any, int | None]  # by key whose place changes, its worker, or None: in its bin
    loads: Floats  # by worker, afterwards
    moved: float  # bytes of bins that change their worker
    note: str = ""
    by: str = ""  # who made it and why, if that was not the planner that was asked first


Plan = Callable[[Observation, float], Proposal]  # the float: how far above the mean a load may be then


@dataclass(frozen=True)
class ForTheLoop:
    """A planner, how many workers it wants for a load, and what it calls balanced."""

    name: str
    plan: Plan
    tolerance: float
    wanted: Callable[[float, int], int] | None = None  # of the load and the workers in use; None: all of them
    prepare: Callable[[], object] | None = None  # compiles what there is to compile

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < float("inf"):
            raise ValueError(f"a tolerance is how far a load may be above the mean, so it cannot be {self.tolerance}")


def spread(loads: Floats, workers: int | None = None) -> float:
    """How far the greatest load is above the mean of so many workers (of all, unless told); 0 without load."""
    total = float(loads.sum())
    return float(loads.max()) * (workers or len(loads)) / total - 1.0 if total else 0.0


def by_bins(
    planner: Callable[..., Any] = mixed, theta: float = 0.08, table: int | None = TABLE, **options: Any
) -> ForTheLoop:
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

    return ForTheLoop(_name(planner, "bins"), plan, theta, prepare=lambda: _try(planner, asked))


def by_keys(
    planner: Callable[..., Any] = mixed,
    theta: float = 0.08,
    table: int | None = TABLE,
    heavy: int | None = None,
    **options: Any,
) -> ForTheLoop:
    """A rebalancing planner over bins and, on their own, the heaviest keys (`heavy` of them; all that are told).

    `table` is the bound on the routing table (N_A), which planners are given: `mixed` and `mixed_bf` heed it. A key's
    home is where its bin is, a bin's where it is now, so that a plan's entries are the keys that live apart and the
    bins that it moves. A key that stays behind when its bin moves lives apart, too, and no planner knows of bins: if
    the bound is exceeded by these, it asks again with a tighter one. None: no bound, and then `mixed` is `min_mig`.
    """
    if heavy is not None and heavy < 0:
        raise ValueError(f"`heavy` is how many keys are planned on their own, so it cannot be {heavy}")

    def plan(seen: Observation, aim: float) -> Proposal:
        first = np.argsort(-seen.key_cost, kind="stable")[:heavy]
        given = _with_keys(seen, first)

        def ask(bound: int | None) -> tuple[Ints, Ints, int]:
            """Where bins and keys should be, and how many keys live apart then."""
            found = planner(*given.amounts, **given.places, theta=aim, table=bound, **options)
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
    return ForTheLoop(_name(planner, "bins and heavy keys"), plan, theta, prepare=lambda: _try(planner, asked))


def _checked(table: int | None) -> int | None:
    """Now rather than when something is to move."""
    if table is not None and table < 0:
        raise ValueError(f"a routing table of size {table} makes no sense; None is no bound")
    return table


@dataclass(frozen=True, eq=False)
class _Given:
    """What a rebalancing planner is given: bins, and after them the keys that are planned on their own."""

    amounts: tuple[Floats, Floats]  # cost, state
    places: dict[str, Any]  # home, current, instances


def _with_keys(seen: Observation, first: Ints) -> _Given:
    inside = first[~seen.apart[first]]
    rest = seen.cost.copy()
    np.subtract.at(rest, seen.key_bins[inside], seen.key_cost[inside])  # estimates may be above what there was
    rest = np.maximum(rest, 0.0)
    bins = seen.key_bins[first]
    share = seen.key_cost[first] / np.maximum(seen.cost[bins], seen.key_cost[first] + 1e-9)
    state = np.append(seen.bytes, seen.bytes[bins] * share)
    home = np.append(seen.places, seen.places[bins])  # of a key: where its bin is
    current = np.append(seen.places, seen.key_places[first])
    places = {"home": home, "current": current, "instances": seen.workers}
    return _Given((np.append(rest, seen.key_cost[first]), state), places)


def _name(planner: Callable[..., Any], what: str) -> str:
    while isinstance(planner, partial):
        planner = planner.func
    return f"{getattr(planner, '__name__', type(planner).__name__)} on {what}"


def _try(planner: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Has a planner plan something, so that it is compiled by the time it is needed."""
    there = np.zeros(4, np.int64)
    planner(np.array([4.0, 2.0, 1.0, 1.0]), np.ones(4), home=there, current=there, instances=2, theta=0.0, **options)


def _pins(seen: Observation, chosen: Ints, to: Ints, there: Ints) -> dict[Any, int | None]:
    """What changes: keys whose bin is elsewhere are pinned, those whose bin is where they should be are not, nor those
    that are not heavy any more."""
    pins: dict[Any, int | None] = {}
    keys, bins = seen.keys[chosen].tolist(), seen.key_bins[chosen].tolist()
    for key, bin, worker in zip(keys, bins, there.tolist(), strict=True):
        if worker != to[bin]:
            if seen.pinned.get(key) != worker:
                pins[key] = worker
        elif key in seen.pinned:
            pins[key] = None
    return pins | {key: None for key in seen.pinned if key not in set(keys)}


def _proposal(seen: Observation, to: Ints, pins: dict[Any, int | None], more: str = "", by: str = "") -> Proposal:
    loads = np.bincount(to, seen.cost, seen.workers).astype(float)
    for key, bin, cost in zip(seen.keys.tolist(), seen.key_bins.tolist(), seen.key_cost.tolist(), strict=True):
        before, after = seen.pinned.get(key), pins.get(key, seen.pinned.get(key))
        if after is not None:
            loads[after] += cost
        if before is None and after is not None:
            loads[to[bin]] -= min(cost, loads[to[bin]])
        elif before is not None and after is None:
            loads[to[bin]] += cost
    changed = to != seen.places
    note = f"{int(changed.sum())} bins and {len(pins)} keys{more}"
    return Proposal(to, pins, loads, float(seen.bytes[changed].sum()), note, by)


def by_intervals(
    planner: Callable[..., IntervalPlan] = ssm,
    tau: float = 0.2,
    *,
    capacity: float,
    low: float = 0.6,
    least: int = 1,
    otherwise: Callable[..., IntervalPlan] | None = None,
) -> ForTheLoop:
    """An interval planner, and as many workers as the load needs: `capacity` is what one of them can do in an interval.

    One more than there are is taken when they have more than they can do; fewer only when those would have less than
    `low` of what they can. Where bins are too coarse for what the loop aims at, the planner is asked for `tau`.

    What the planner refuses then is an error (in a loop, if nothing is balanced within tau, the decision is to stay,
    and says so), unless a planner is named that decides `otherwise`; the decision says that it did, and why. Bins start
    scattered over workers, and interval planners refuse that: lay them in intervals first, or name `planners.storm`,
    which takes any map.
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
        request: dict[str, Any] = {"nodes": nodes, "sizes": seen.bytes, "loads": seen.cost}
        bins = BinMap(seen.places, used)
        current: Assignment = bins.intervals() if bins.consecutive else bins
        try:
            found, by = _within(planner, current, aim, tau, request), ""
        except PlannerError as why:
            if otherwise is None:
                raise
            by = f"{_name(otherwise, 'intervals')}, because {_name(planner, 'intervals')} refused ({why}),"
            found = _within(otherwise, current, aim, tau, request)
        return _proposal(seen, np.asarray(found.map(), np.int64), {}, by=by)

    return ForTheLoop(_name(planner, "intervals"), plan, tau, wanted)


def _within(
    planner: Callable[..., IntervalPlan], current: Assignment, aim: float, tau: float, request: Mapping[str, Any]
) -> IntervalPlan:
    """The plan within what is aimed at, or, if nothing is balanced within that, within tau."""
    try:
        return planner(current, tau=aim, **request)
    except NothingBalanced:
        if aim >= tau:
            raise
        return planner(current, tau=tau, **request)
