"""Strategies: how a migration from one assignment of bins to another is cut into steps. Pure values and functions.

A step is a list of moves that take effect at one time. Fewer steps finish sooner; smaller ones disturb less (section
3.3). The same steps change the plans of bins. `matched` puts into one step moves in which each worker sends and
receives at most one bin (section 4.4): such moves do not stand in each other's way.

Bins go in the order of their numbers, or the biggest or hottest first; or the hottest keys of all bins go before any
bin, as in Meces. A byte budget bounds what is in flight: a step
whose bins are larger together is split, and so is a bin that is larger alone, as far as there are finer ones; a finest
bin that is larger goes alone (F sends it in pieces). All but all-at-once have one: what a user asks for, or else
`USUAL`, as far as sizes are known. A step holds records up for as long as its bytes take, so a number of bins alone
promises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dataflow.time.durations import Duration, is_duration, seconds
from megaphone.control.tree import BinTree
from megaphone.control.updates import Move
from megaphone.migration.pacing import MOST

Assignment = Sequence[int]  # by bin, the worker
USUAL = 8 << 20  # bytes of state in flight where nobody says otherwise: some milliseconds of copying
AT_MOST = 1 << 10  # bins of a step whose size follows from the latency
SMALL = 1 << 20  # bytes of state that fluid steps may have in flight together: what is copied in some 100 µs

Order = Literal["biggest", "hottest", "keys"]
ORDERS: tuple[Order, ...] = ("biggest", "hottest", "keys")


@dataclass(frozen=True, slots=True)
class Change:
    """A bin that moves, or changes its plan where it is: the number of its first finest bin, and how many it has."""

    bin: int
    origin: int
    destination: int
    count: int = 1


def changes_between(here: NDArray[np.integer], there: NDArray[np.integer], tree: BinTree) -> list[Change]:
    """The bins that move, where `here` and `there` are by finest bin. A bin of which parts go elsewhere is cut."""
    parts = tree.cut(there)
    firsts, counts = parts.firsts, parts.counts
    moving = here[firsts] != there[firsts]
    columns = (firsts, here[firsts], there[firsts], counts)
    return [Change(*change) for change in zip(*(column[moving].tolist() for column in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class Strategy:
    """How to cut a migration. `gap`: so many more times must pass after a step before the next begins."""

    name: str
    cut: Callable[[list[Change]], list[list[Change]]]
    gap: int = 0
    order: Order | None = None
    budget: int | None = None  # bytes of state in flight, as asked for
    usual: int | None = None  # the same if nobody asks, where sizes are known
    overlap: int = 0  # bytes: steps that are smaller together need not wait for each other's end
    bound: float | None = None  # seconds: steps are as large as the latency allows (see `pacing`)

    def __post_init__(self) -> None:
        _require_integer(self.gap, "a gap is a number of times")
        if self.gap < 0:
            raise ValueError(f"a gap cannot be negative: {self.gap}")
        if self.order not in (None, *ORDERS):
            raise ValueError(
                "the order of bins is 'biggest' or 'hottest' first, or 'keys', the hottest keys and then the hottest "
                f"bins, not {self.order!r}"
            )
        if self.budget is not None:
            _require_integer(self.budget, "a budget is a number of bytes")
            if self.budget < 1:
                raise ValueError(f"a budget is a number of bytes, not {self.budget}")

    @property
    def limit(self) -> int | None:
        """The budget in force, where sizes are known."""
        return self.usual if self.budget is None else self.budget

    @property
    def small(self) -> int:
        """Steps whose bins have fewer bytes together may be under way at the same time: never more than the budget."""
        return self.overlap if self.budget is None else min(self.overlap, self.budget)

    def steps(
        self,
        current: Assignment,
        target: Assignment,
        sizes: Sequence[int] | None = None,
        records: Sequence[int] | None = None,
    ) -> list[list[Move]]:
        """The steps that lead from one assignment to another. `sizes` and `records` by bin: for the order."""
        changes = [Change(b, a, z) for b, (a, z) in enumerate(zip(current, target, strict=True)) if a != z]
        return self.cut_up(changes, sizes, records)

    def cut_up(
        self, changes: list[Change], sizes: Sequence[int] | None = None, records: Sequence[int] | None = None
    ) -> list[list[Move]]:
        """The steps of any changes: bins may stay where they are, if it is their plan that changes."""
        weights = {"biggest": sizes, "hottest": records, "keys": records}.get(self.order or "")
        if weights is not None:  # stable: equal ones stay in the order of numbers
            changes.sort(key=lambda change: -sum(weights[change.bin : change.bin + change.count]))
        return [[Move(c.bin, c.destination, count=c.count) for c in step] for step in self.cut(changes) if step]

    def split(
        self, step: list[Move], sizes: Mapping[int, int] | Sequence[int] | None, budget: int | None = None
    ) -> tuple[list[Move], list[Move]]:
        """The part of a step that goes now, within the budget, and what must wait. Sizes in bytes, by finest bin: one
        whose size is not known (it is below 0) goes alone. None if none will ever be: then bins go one by one if a
        budget was asked for, and all together if not. A bin above the budget is cut in halves until a part fits.
        `budget`: for this time, in the place of the strategy's.

        >>> fluid(budget=100).split([Move(0, 1), Move(1, 1), Move(2, 1)], [60, 60, 10])
        ([Move(bin=0, worker=1)], [Move(bin=1, worker=1), Move(bin=2, worker=1)])
        >>> fluid(budget=100).split([Move(0, 1, count=4)], [60, 30, 60, 10])
        ([Move(bin=0, worker=1, count=2)], [Move(bin=2, worker=1, count=2)])
        """
        budget = self.limit if budget is None else budget
        if budget is None:
            return step, []
        if sizes is None:
            return (step, []) if self.budget is None else (step[:1], step[1:])
        while step and step[0].count > 1 and _weight(step[0], sizes, budget) > budget:
            step = [*step[0].halves(), *step[1:]]
        total = 0
        for count, move in enumerate(step):
            total += _weight(move, sizes, budget)
            if count and total > budget:
                return step[:count], step[count:]
        return step, []


def _weight(move: Move, sizes: Mapping[int, int] | Sequence[int], budget: int) -> int:
    """The bytes of a bin; more than the budget if a part of it is not known."""
    known = [int(sizes[number]) for number in move.numbers]
    return sum(known) if min(known) >= 0 else budget + 1


def all_at_once(gap: int = 0, order: Order | None = None) -> Strategy:
    """Everything in one step.

    >>> all_at_once().steps([0, 0, 1], [1, 0, 0])
    [[Move(bin=0, worker=1), Move(bin=2, worker=0)]]
    """
    return Strategy("all at once", lambda changes: [changes], gap, order)


def fluid(gap: int = 0, order: Order | None = None, budget: int | None = None) -> Strategy:
    """One bin after the other, each at a time of its own. Where bins are small and their sizes known, a bin leaves at
    each time, although those before it have not all arrived: at most `SMALL` bytes together.

    >>> fluid().steps([0, 0, 1], [1, 0, 0])
    [[Move(bin=0, worker=1)], [Move(bin=2, worker=0)]]
    """
    return Strategy("fluid", lambda changes: [[change] for change in changes], gap, order, budget, USUAL, SMALL)


def batched(size: int, gap: int = 0, order: Order | None = None, budget: int | None = None) -> Strategy:
    """So many bins at a time, or fewer where these are more than the budget.

    >>> [len(step) for step in batched(2).steps([0] * 5, [1] * 5)]
    [2, 2, 1]
    """
    _require_integer(size, "a batch is a number of bins")
    if size < 1:
        raise ValueError(f"a batch needs at least one bin, not {size}")
    return Strategy(
        f"batches of {size}",
        lambda changes: [changes[i : i + size] for i in range(0, len(changes), size)],
        gap,
        order,
        budget,
        USUAL,
    )


def matched(gap: int = 0, order: Order | None = None, budget: int | None = None) -> Strategy:
    """In each step, each worker sends and receives at most one bin.

    >>> matched().steps([0, 0, 1, 1], [1, 1, 0, 0])
    [[Move(bin=0, worker=1), Move(bin=2, worker=0)], [Move(bin=1, worker=1), Move(bin=3, worker=0)]]
    """
    return Strategy("matched", _match, gap, order, budget, USUAL)


def within(latency: float | Duration, order: Order | None = None) -> Strategy:
    """Steps as large as they can be while no record waits longer than `latency` (seconds, or a duration): sized by what
    the last ones did, overlapping where they are small. A migration then ends as soon as the bound allows.

    >>> within(0.02).name, within("5ms").bound
    ('within 20 ms', 0.005)
    """
    bound = seconds(latency) if is_duration(latency) else latency
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < float("inf"):
        raise ValueError(f"a bound of the latency is a number of seconds above 0 or a duration, not {latency!r}")

    def cut(changes: list[Change]) -> list[list[Change]]:  # what a step is cut from: sizes are looked up for all of it
        return [changes[i : i + AT_MOST] for i in range(0, len(changes), AT_MOST)]

    return Strategy(f"within {bound * 1000:g} ms", cut, order=order, usual=MOST, bound=float(bound))


def _require_integer(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{what}, not {value!r}")


def _match(changes: list[Change]) -> list[list[Change]]:
    """Colours the edges of the bipartite multigraph of senders and receivers with as few colours as its degree.

    König: a bipartite multigraph needs no more colours than its greatest degree. An edge gets a colour that is free
    at both ends; if there is none, an alternating path from one end is swapped first. O(changes x workers) at worst.
    """
    senders: dict[int, dict[int, int]] = {}  # by worker and colour, the change
    receivers: dict[int, dict[int, int]] = {}
    colours: dict[int, int] = {}
    for number, change in enumerate(changes):
        at_sender = senders.setdefault(change.origin, {})
        at_receiver = receivers.setdefault(change.destination, {})
        free_here, free_there = _free(at_sender), _free(at_receiver)
        if free_here != free_there:
            _swap_path(changes, senders, receivers, colours, change.destination, free_here, free_there)
        _paint(changes, senders, receivers, colours, number, free_here)
    steps: list[list[Change]] = [[] for _ in range(max(colours.values(), default=-1) + 1)]
    for number, change in enumerate(changes):
        steps[colours[number]].append(change)
    return steps


def _free(used: dict[int, int]) -> int:
    colour = 0
    while colour in used:
        colour += 1
    return colour


def _paint(
    changes: list[Change],
    senders: dict[int, dict[int, int]],
    receivers: dict[int, dict[int, int]],
    colours: dict[int, int],
    number: int,
    colour: int,
) -> None:
    change = changes[number]
    senders[change.origin][colour] = number
    receivers[change.destination][colour] = number
    colours[number] = colour


def _swap_path(
    changes: list[Change],
    senders: dict[int, dict[int, int]],
    receivers: dict[int, dict[int, int]],
    colours: dict[int, int],
    start: int,
    wanted: int,
    other: int,
) -> None:
    """Frees the colour `wanted` at a receiver: swaps it with `other` along the path that alternates between them."""
    path = []
    receiver, colour = start, wanted
    while (number := receivers[receiver].get(colour)) is not None:
        path.append(number)
        sender = changes[number].origin
        following = senders[sender].get(wanted + other - colour)
        if following is None:
            break
        path.append(following)
        receiver = changes[following].destination
    for number in path:
        del senders[changes[number].origin][colours[number]]
        del receivers[changes[number].destination][colours[number]]
    for number in path:
        _paint(changes, senders, receivers, colours, number, wanted + other - colours[number])
