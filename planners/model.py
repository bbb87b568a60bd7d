"""The model of the interval planners: tasks, limits, assignments and plans. Plain frozen values.

Tasks are 0..m-1 (the bins of `megaphone`). A task has a size, that of its state, and a load, the work that it makes. An
assignment says which node has which task: `Intervals` gives each node one interval of tasks, possibly empty (a node may
idle), and is what the papers' planners speak of; `BinMap` is any map from tasks to nodes. Nodes are numbers of the
caller's choice, such as the indices of workers. The cost of going from one assignment to another is the size of the
state that changes node; an assignment is balanced when no node's load exceeds (1 + tau) * W / n', the mean load of n'
nodes with some leeway (section 4.1 of the live version, 3.1 of the other).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.errors import BadRequest

Amounts: TypeAlias = NDArray[np.integer | np.floating]  # by task: whole numbers stay whole
TaskMoves: TypeAlias = list[tuple[int, int, int]]  # (task, from, to)

# Sums of floats come out differently in different orders, so a load may exceed the limit by this share and still be
# within it. Without it, the smallest tau that an error names could be refused when it is asked for.
SLACK = 1e-9


class Tasks:
    """Sizes and loads by task: arrays that cannot be written to, with their prefix sums.

    >>> tasks = Tasks([5, 6, 9], [8, 4, 7])
    >>> len(tasks), tasks.total_size, tasks.total_load
    (3, 20, 19)
    """

    __slots__ = ("loads", "sizes")
    sizes: Amounts
    loads: Amounts

    def __init__(self, sizes: ArrayLike, loads: ArrayLike) -> None:
        object.__setattr__(self, "sizes", _amounts("sizes", sizes))
        object.__setattr__(self, "loads", _amounts("loads", loads))
        if len(self.sizes) != len(self.loads):
            raise BadRequest(f"{len(self.sizes)} sizes and {len(self.loads)} loads: each task needs one of each")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"tasks are values: make new ones instead of setting {name}")

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tasks):
            return NotImplemented
        return np.array_equal(self.sizes, other.sizes) and np.array_equal(self.loads, other.loads)

    def __hash__(self) -> int:
        return hash((tuple(self.sizes.tolist()), tuple(self.loads.tolist())))

    def __repr__(self) -> str:
        return f"Tasks({len(self)} of size {self.total_size} and load {self.total_load})"

    def __reduce__(self) -> tuple[type[Tasks], tuple[Amounts, Amounts]]:
        return Tasks, (self.sizes, self.loads)

    @property
    def total_size(self) -> int | float:
        """The size of all state."""
        return _number(self.sizes.sum())

    @property
    def total_load(self) -> int | float:
        """W, the work of all tasks."""
        return _number(self.loads.sum())

    def size_prefix(self) -> NDArray[np.float64]:
        """At i, the size of the tasks before i: an interval [a, b) has size prefix[b] - prefix[a]."""
        return prefix(self.sizes)

    def load_prefix(self) -> NDArray[np.float64]:
        """At i, the load of the tasks before i."""
        return prefix(self.loads)


def prefix(amounts: Amounts) -> NDArray[np.float64]:
    """Prefix sums, from zero.

    >>> prefix(np.array([5, 6, 9])).tolist()
    [0.0, 5.0, 11.0, 20.0]
    """
    sums = np.zeros(len(amounts) + 1, np.float64)
    np.cumsum(amounts, out=sums[1:], dtype=np.float64)
    return sums


@dataclass(frozen=True, slots=True)
class Limits:
    """How many nodes there shall be, and how far above the mean the load of one may be.

    >>> round(Limits(nodes=4, tau=0.4).load(20), 6)
    7.0
    """

    nodes: int
    tau: float

    def __post_init__(self) -> None:
        nodes, tau = real(self.nodes), real(self.tau)
        if isinstance(self.nodes, bool) or nodes < 1 or nodes != math.floor(nodes):
            raise BadRequest(f"an operator runs on one node or more, not on {self.nodes!r}")
        if not tau >= 0:
            raise BadRequest(f"tau is how far a load may be above the mean, zero or more, not {self.tau!r}")
        object.__setattr__(self, "nodes", int(nodes))
        object.__setattr__(self, "tau", tau)

    def load(self, total: float) -> float:
        """The greatest load that a node may have, of a total (Definition 3.1), with the slack for rounding."""
        return (1 + self.tau) * float(total) / self.nodes * (1 + SLACK)


@dataclass(frozen=True, slots=True, init=False)
class Intervals:
    """Each node has one interval of tasks: `nodes[i]` has the tasks from `cuts[i]` up to, not including, `cuts[i + 1]`.

    >>> Intervals([0, 4, 7, 10])
    Intervals(cuts=(0, 4, 7, 10), nodes=(0, 1, 2))
    >>> Intervals([0, 2, 2, 3], nodes=[7, 8, 9]).map()
    array([7, 7, 9])
    """

    cuts: tuple[int, ...]
    nodes: tuple[int, ...]

    def __init__(self, cuts: Iterable[int], nodes: Iterable[int] | None = None) -> None:
        checked = integers("cuts", cuts)
        if len(checked) < 2 or checked[0] != 0:
            raise BadRequest(f"cuts begin with 0 and end with the number of tasks, and {list(checked)} does not")
        if any(b < a for a, b in pairwise(checked)):
            raise BadRequest(f"cuts never descend, and {list(checked)} does; an empty interval has equal cuts")
        named = tuple(range(len(checked) - 1)) if nodes is None else integers("nodes", nodes)
        if len(named) != len(checked) - 1:
            raise BadRequest(f"{len(checked)} cuts make {len(checked) - 1} intervals, and there are {len(named)} nodes")
        _check_nodes(named)
        object.__setattr__(self, "cuts", checked)
        object.__setattr__(self, "nodes", named)

    @property
    def tasks(self) -> int:
        """How many tasks there are: m."""
        return self.cuts[-1]

    def map(self) -> NDArray[np.int64]:
        """By task, the node: what a controller migrates to."""
        return np.repeat(np.array(self.nodes, np.int64), np.diff(self.cuts))

    def bins(self) -> BinMap:
        """The same as a map; idle nodes stay known."""
        return BinMap(self.map().tolist(), self.nodes)

    def intervals(self) -> Intervals:
        """Itself: see `BinMap.intervals`."""
        return self


@dataclass(frozen=True, slots=True, init=False)
class BinMap:
    """A map from tasks to nodes, in any order: task i is at `owners[i]`. `nodes` are all nodes, those that idle too.

    >>> BinMap([1, 1, 0]).intervals()
    Intervals(cuts=(0, 2, 3), nodes=(1, 0))
    """

    owners: tuple[int, ...]
    nodes: tuple[int, ...]

    def __init__(self, owners: Iterable[int], nodes: Iterable[int] | None = None) -> None:
        checked = integers("owners", owners)
        if not checked:
            raise BadRequest("a map needs at least one task")
        present = set(checked)
        named = tuple(sorted(present)) if nodes is None else integers("nodes", nodes)
        _check_nodes(named)
        if missing := present - set(named):
            raise BadRequest(f"tasks are at the nodes {sorted(missing)}, which are not among the nodes {list(named)}")
        object.__setattr__(self, "owners", checked)
        object.__setattr__(self, "nodes", tuple(sorted(named)))

    @property
    def tasks(self) -> int:
        """How many tasks there are: m."""
        return len(self.owners)

    def map(self) -> NDArray[np.int64]:
        """By task, the node."""
        return np.array(self.owners, np.int64)

    def bins(self) -> BinMap:
        """Itself: see `Intervals.bins`."""
        return self

    @property
    def consecutive(self) -> bool:
        """Whether the tasks of each node are consecutive: only then `intervals` has an answer."""
        busy = [node for i, node in enumerate(self.owners) if i == 0 or node != self.owners[i - 1]]
        return len(set(busy)) == len(busy)

    def intervals(self) -> Intervals:
        """The same as intervals, if each node's tasks are consecutive; idle nodes get empty intervals at the end."""
        starts = [i for i in range(self.tasks) if i == 0 or self.owners[i] != self.owners[i - 1]]
        busy = [self.owners[start] for start in starts]
        if len(set(busy)) < len(busy):
            scattered = next(node for node in busy if busy.count(node) > 1)
            raise BadRequest(
                f"the tasks of node {scattered} are not consecutive, so this map is not one interval for each node. "
                "Migrate to intervals first (planners.storm takes any map), or use a rebalancing planner."
            )
        idle = [node for node in self.nodes if node not in set(busy)]
        return Intervals([*starts, *[self.tasks] * (len(idle) + 1)], busy + idle)


Assignment: TypeAlias = Intervals | BinMap


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to go from an assignment, and what that costs. `Plan.between` fills in the figures."""

    planner: str
    current: Assignment
    assignment: Assignment
    tasks: Tasks
    tau: float | None  # what was asked for; None if the planner knows no such bound
    cost: int | float  # the size of the state that changes node
    balance: float  # how far the greatest load is above the mean of all nodes: the least tau that this satisfies

    @classmethod
    def between(
        cls, planner: str, current: Assignment, assignment: Assignment, tasks: Tasks, tau: float | None = None
    ) -> Plan:
        """The plan that leads from one assignment to another."""
        if not current.tasks == assignment.tasks == len(tasks):
            raise BadRequest(f"{current.tasks} tasks before, {assignment.tasks} after, and {len(tasks)} sizes")
        cost = _number(tasks.sizes[current.map() != assignment.map()].sum())
        return cls(planner, current, assignment, tasks, tau, cost, balance(assignment, tasks))

    @property
    def moves(self) -> TaskMoves:
        """What moves, as (task, from, to), in the order of tasks."""
        before, after = self.current.map(), self.assignment.map()
        moved = np.flatnonzero(before != after)
        return list(zip(moved.tolist(), before[moved].tolist(), after[moved].tolist(), strict=True))

    @property
    def loads(self) -> dict[int, int | float]:
        """By node, its load afterwards."""
        return node_loads(self.assignment, self.tasks.loads)

    @property
    def met(self) -> bool:
        """Whether the result is as balanced as was asked for."""
        if self.tau is None:
            return True
        limit = Limits(len(self.assignment.nodes), self.tau).load(self.tasks.total_load)
        return max(self.loads.values()) <= limit

    @property
    def share(self) -> float:
        """The cost as a share of all state, as the papers' figures show it."""
        return self.cost / self.tasks.total_size if self.tasks.total_size else 0.0

    def map(self) -> NDArray[np.int64]:
        """By task, the node afterwards: `controller.migrate(to=plan.map(), strategy=...)`."""
        return self.assignment.map()


def node_loads(assignment: Assignment, amounts: Amounts) -> dict[int, int | float]:
    """By node, the sum of an amount over its tasks.

    >>> node_loads(Intervals([0, 1, 3, 3]), np.array([8, 4, 7]))
    {0: 8, 1: 11, 2: 0}
    """
    sums = np.zeros(len(assignment.nodes), amounts.dtype)
    order = np.argsort(assignment.nodes)
    np.add.at(sums, order[np.searchsorted(assignment.nodes, assignment.map(), sorter=order)], amounts)
    return dict(zip(assignment.nodes, sums.tolist(), strict=True))


def balance(assignment: Assignment, tasks: Tasks) -> float:
    """How far the greatest load is above the mean over all nodes; 0 is perfect.

    >>> balance(Intervals([0, 1, 3]), Tasks([1, 1, 1], [1, 1, 2]))
    0.5
    """
    if not tasks.total_load:
        return 0.0
    mean = tasks.total_load / len(assignment.nodes)
    return float(max(node_loads(assignment, tasks.loads).values()) / mean - 1)


def members(current: Assignment, count: int, stay: Sequence[int] = ()) -> tuple[int, ...]:
    """Which nodes there are when there shall be `count`: `stay` for certain, then those there are, then new numbers.

    >>> members(Intervals([0, 1, 2, 3], nodes=[4, 0, 6]), 2, stay=[6])
    (6, 4)
    >>> members(Intervals([0, 1, 3]), 4)
    (0, 1, 2, 3)
    """
    chosen = [*stay, *(node for node in current.nodes if node not in set(stay))][:count]
    taken, number = set(current.nodes), 0
    while len(chosen) < count:
        if number not in taken:
            chosen.append(number)
        number += 1
    return tuple(chosen)


def real(value: object) -> float:
    """A finite number as a float; -inf for anything else, which every check refuses."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return -math.inf
    return number if math.isfinite(number) and not isinstance(value, str | bytes) else -math.inf


def _amounts(what: str, values: ArrayLike) -> Amounts:
    try:
        array = np.array(values)
    except (TypeError, ValueError):
        raise BadRequest(f"{what} are a list with one number for each task") from None
    if array.ndim != 1 or len(array) == 0:
        raise BadRequest(f"{what} are a list with one number for each task, and at least one task")
    if array.dtype.kind not in "iuf":
        raise BadRequest(f"{what} are numbers, not {array.dtype}")
    if not np.isfinite(array).all() or (array < 0).any():
        bad = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0)))[0])
        raise BadRequest(f"{what} are zero or more: task {bad} has {array[bad]}")
    array.flags.writeable = False
    return array


def integers(what: str, values: Iterable[int]) -> tuple[int, ...]:
    """Whole numbers of any integer type as Python's own; BadRequest, which says what they are for, if one is not."""
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise BadRequest(f"{what} are whole numbers") from None


def _check_nodes(nodes: tuple[int, ...]) -> None:
    if not nodes:
        raise BadRequest("an assignment needs at least one node")
    if len(set(nodes)) < len(nodes) or min(nodes) < 0 or max(nodes) >= 2**63:
        raise BadRequest(f"nodes are different numbers, zero or more and below 2^63, and {list(nodes)} are not")


def _number(value: np.integer | np.floating) -> int | float:
    """A plain Python number: whole ones stay whole."""
    return value.item()
