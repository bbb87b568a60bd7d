"""What stateful operators mean: one pass over all records in the order of time, with the state in a dictionary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from tests.fuzz.description import PRIME, Bag, Record
from tests.fuzz.functions import paired, when_back

Numbers = tuple[int, ...]


class _Out:
    """Collects what comes out, and has what comes back."""

    def __init__(self, *bags: Bag) -> None:
        self.bag: Bag = defaultdict(list)
        self.back: Bag = defaultdict(list)
        self.right_back: Bag = defaultdict(list)
        self._bags = bags
        self._done: set[int] = set()

    def next_time(self) -> int | None:
        """The least time that has not been seen; more may be put off meanwhile."""
        times = {t for bag in (*self._bags, self.back, self.right_back) for t in bag} - self._done
        if not times:
            return None
        self._done.add(min(times))
        return min(times)


def _running(bags: list[Bag], numbers: Numbers) -> Bag:
    """For each key at each time: the sum of all that it ever had."""
    out, totals = _Out(*bags), Counter[int]()
    while (time := out.next_time()) is not None:
        records = bags[0].get(time, [])
        for k, v in records:
            totals[k] += v
        out.bag[time] = [(k, totals[k] % PRIME) for k in {k for k, _ in records}]
    return dict(out.bag)


def _first(bags: list[Bag], numbers: Numbers) -> Bag:
    """Each key once, with the least value of its first time."""
    out, seen = _Out(*bags), set[int]()
    while (time := out.next_time()) is not None:
        records = bags[0][time]
        fresh = {k for k, _ in records} - seen
        seen |= fresh
        out.bag[time] = [(k, min(v for k2, v in records if k2 == k)) for k in fresh]
    return {time: records for time, records in out.bag.items() if records}


def _totals(bags: list[Bag], numbers: Numbers) -> Bag:
    """The same as `running`, but some records come back later, smaller."""
    out, totals = _Out(*bags), Counter[int]()
    while (time := out.next_time()) is not None:
        records = bags[0].get(time, []) + out.back.get(time, [])
        for k, v in records:
            totals[k] += v
            later = when_back(time, v)
            if later is not None:
                out.back[later].append((k, v % 5 + 1))
        out.bag[time] = [(k, totals[k] % PRIME) for k in {k for k, _ in records}]
    return dict(out.bag)


def _versus(bags: list[Bag], numbers: Numbers) -> Bag:
    """The left adds to a key's total. The right asks for it, and half of those who ask do so again."""
    out, totals = _Out(*bags), Counter[int]()
    while (time := out.next_time()) is not None:
        lefts = bags[0].get(time, []) + out.back.get(time, [])
        rights = bags[1].get(time, []) + out.right_back.get(time, [])
        for k, v in lefts:
            totals[k] += v
            later = when_back(time, v)
            if later is not None:
                out.back[later].append((k, v % 5 + 1))
        for k, v in rights:
            out.bag[time].append((k, (totals[k] + v) % PRIME))
            if v % 2 == 0 and v > 0:
                out.right_back[time + 2].append((k, v - 1))
    return dict(out.bag)


def _machine(bags: list[Bag], numbers: Numbers) -> Bag:
    """Each record with its key's total before this time; some come back. With variant 1 keys are forgotten."""
    return _two_folds([bags[0], {}], numbers)


def _two_folds(bags: list[Bag], numbers: Numbers) -> Bag:
    """The same, with a right side that only counts for keys that exist."""
    forgetful = numbers[0] == 1
    out = _Out(*bags)
    totals: dict[int, int] = {}
    while (time := out.next_time()) is not None:
        before = dict(totals)
        for k, v in bags[0].get(time, []):
            totals[k] = totals.get(k, 0) + v
            out.bag[time].append((k, (v * 3 + before.get(k, 0)) % PRIME))
            later = when_back(time, v)
            if later is not None:
                out.back[later].append((k, v % 5))
        for k, v in bags[1].get(time, []):
            if k in totals:
                totals[k] += 100 * v
                out.bag[time].append((k, (v * 11 + before.get(k, 0)) % PRIME))
        for k, v in out.back.get(time, []):
            totals[k] = totals.get(k, 0) + v
            out.bag[time].append((k, (v * 7 + (0 if forgetful else before.get(k, 0))) % PRIME))
        for k in {k for k, _ in out.back.get(time, [])}:
            if forgetful and (time + k) % 3 == 0:
                del totals[k]
    return {time: records for time, records in out.bag.items() if records}


def _ordered(bags: list[Bag], numbers: Numbers) -> Bag:
    """Running totals, record by record, in the order of their values."""
    out, totals = _Out(*bags), Counter[int]()
    while (time := out.next_time()) is not None:
        for k, v in sorted(bags[0][time], key=lambda r: r[1]):
            totals[k] += v
            out.bag[time].append((k, totals[k] % PRIME))
    return dict(out.bag)


def _row_machine(bags: list[Bag], numbers: Numbers) -> Bag:
    """Each record with its key's total before this time."""
    out, totals = _Out(*bags), Counter[int]()
    while (time := out.next_time()) is not None:
        before = dict(totals)
        for k, v in bags[0][time]:
            totals[k] += v
            out.bag[time].append((k, (v * 3 + before.get(k, 0)) % PRIME))
    return dict(out.bag)


def _pairs(bags: list[Bag], numbers: Numbers) -> Bag:
    """Every pair of records with equal keys, whenever they come, at the later of their times."""
    found: Bag = defaultdict(list)
    for t, lefts in bags[0].items():
        for t2, rights in bags[1].items():
            pairs: list[Record] = [(k, paired(v, v2)) for k, v in lefts for k2, v2 in rights if k == k2]
            if pairs:
                found[max(t, t2)] += pairs
    return dict(found)


MEANINGS: dict[str, Callable[[list[Bag], Numbers], Bag]] = {
    "running": _running, "first": _first, "totals": _totals, "versus": _versus, "machine": _machine,
    "two_folds": _two_folds, "ordered": _ordered, "row_machine": _row_machine, "pairs": _pairs, "batches": _totals,
}  # fmt: skip
