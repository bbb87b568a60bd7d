"""Antichains: sets of mutually incomparable times, which is what a frontier is.

`Antichain` is the plain set. `MutableAntichain` maintains the minimal elements of a multiset under insertions and
removals; counts may be negative for a while, as they are when a worker hears that a message was consumed before it
hears that the message was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

from dataflow.time.order import Time, less_equal

Order = Callable[[Time, Time], bool]


class Antichain:
    """A set of mutually incomparable times.

    Costs, with F elements: `insert`, `less_equal`, `less_than` O(F).

    >>> Antichain([(0, 5), (2, 1), (2, 7)])
    Antichain([(0, 5), (2, 1)])
    >>> Antichain([3]).less_equal(4), Antichain([3]).less_equal(2), Antichain().less_equal(0)
    (True, False, False)
    """

    __slots__ = ("_elements", "_order")

    def __init__(self, times: Iterable[Time] = (), order: Order = less_equal) -> None:
        self._order = order
        self._elements: list[Time] = []  # invariant: mutually incomparable; see _check()
        for time in times:
            self.insert(time)

    @property
    def elements(self) -> tuple[Time, ...]:
        """The elements, in the total order."""
        return tuple(sorted(self._elements))

    def insert(self, time: Time) -> bool:
        """Adds a time unless an element is at or before it; drops the elements after it. True if it was added."""
        if self.less_equal(time):
            return False
        order = self._order
        self._elements = [t for t in self._elements if not order(time, t)]
        self._elements.append(time)
        return True

    def less_equal(self, time: Time) -> bool:
        """Whether some element is at or before `time`: that time may still be seen."""
        order = self._order
        return any(order(t, time) for t in self._elements)

    def less_than(self, time: Time) -> bool:
        """Whether some element is strictly before `time`."""
        order = self._order
        return any(t != time and order(t, time) for t in self._elements)

    def dominates(self, other: Antichain) -> bool:
        """Whether every element of `other` is at or after one of this: `other` is not behind."""
        return all(self.less_equal(time) for time in other)

    def _check(self) -> None:
        for i, t in enumerate(self._elements):
            for u in self._elements[i + 1 :]:
                assert not self._order(t, u) and not self._order(u, t), (t, u)

    def __iter__(self) -> Iterator[Time]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Antichain):
            return NotImplemented
        return len(self) == len(other) and all(time in other._elements for time in self._elements)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Antichain({sorted(self._elements)!r})"


class MutableAntichain:
    """The minimal elements among times with positive counts, for any partial order.

    Each time that is not minimal hangs under one that is at or before it, so that the minimal elements are the roots
    of trees. When a root goes, its children are paired up, as in a pairing heap, before they become roots or hang
    elsewhere.

    Costs, with F minimal elements: an update that does not remove a minimal element O(F); one that does
    O(children (log children + F)). Where times mostly compare, as epochs do, that is O(log n + F) amortised.

    >>> m = MutableAntichain()
    >>> m.update(3, +1), m.update(5, +1), m.update(3, -1)
    ([(3, 1)], [], [(3, -1), (5, 1)])
    """

    __slots__ = ("_children", "_counts", "_minimal", "_order", "_parent")

    def __init__(self, order: Order = less_equal) -> None:
        self._order = order
        self._counts: dict[Time, int] = {}  # invariant: no zeros
        self._minimal: dict[Time, None] = {}  # invariant: the minimal elements; an ordered set
        self._parent: dict[Time, Time] = {}  # invariant: of all others; at or before them
        self._children: dict[Time, set[Time]] = {}  # invariant: the inverse of _parent

    def update(self, time: Time, diff: int) -> list[tuple[Time, int]]:
        """Adds `diff` to the count of `time`; returns how the frontier changed: (time, +1 or -1), ..."""
        before = self._counts.get(time, 0)
        after = before + diff
        if after:
            self._counts[time] = after
        elif before:
            del self._counts[time]
        if before <= 0 < after:
            return self._appear(time)
        if after <= 0 < before:
            return self._vanish(time)
        return []

    def _appear(self, time: Time) -> list[tuple[Time, int]]:
        """A time that is new, or a tree that has lost its root."""
        order = self._order
        for minimal in self._minimal:
            if order(minimal, time):
                self._hang(time, minimal)
                return []
        displaced = [minimal for minimal in self._minimal if order(time, minimal)]
        for minimal in displaced:
            del self._minimal[minimal]
            self._hang(minimal, time)
        self._minimal[time] = None
        return [(minimal, -1) for minimal in displaced] + [(time, +1)]

    def _vanish(self, time: Time) -> list[tuple[Time, int]]:
        children = self._children.pop(time, set())
        if time not in self._minimal:
            parent = self._parent.pop(time)
            self._children[parent].discard(time)
            for child in children:
                self._hang(child, parent)
            return []
        del self._minimal[time]
        changes = [(time, -1)]
        for root in self._pair_up(sorted(children)):
            changes += self._appear(root)
        return changes

    def _pair_up(self, times: list[Time]) -> list[Time]:
        """Hangs what it can of these times under each other; returns those that are left, mutually incomparable.

        They come in the total order, so the earlier of two is never after the later.
        """
        order = self._order
        for time in times:
            del self._parent[time]
        winners = []
        for i in range(0, len(times), 2):
            first, second = times[i], times[min(i + 1, len(times) - 1)]
            winners.append(first)
            if second is not first:
                if order(first, second):
                    self._hang(second, first)
                else:
                    winners.append(second)
        roots: list[Time] = []
        for time in reversed(winners):
            free = []
            for root in roots:
                if order(time, root):
                    self._hang(root, time)
                else:
                    free.append(root)
            roots = [*free, time]
        return roots[::-1]

    def _hang(self, time: Time, parent: Time) -> None:
        self._parent[time] = parent
        self._children.setdefault(parent, set()).add(time)

    @property
    def frontier(self) -> Antichain:
        """The minimal elements. O(F^2), for looking at."""
        return Antichain(self._minimal, self._order)

    def less_equal(self, time: Time) -> bool:
        """Whether some minimal element is at or before `time`. O(F)."""
        order = self._order
        return any(order(minimal, time) for minimal in self._minimal)

    @property
    def counts(self) -> dict[Time, int]:
        """The multiset itself (a copy), with its negative counts."""
        return dict(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def _check(self) -> None:
        present = {t for t, n in self._counts.items() if n > 0}
        minimal = {t for t in present if not any(u != t and self._order(u, t) for u in present)}
        assert set(self._minimal) == minimal, (self._minimal, minimal)
        assert 0 not in self._counts.values()
        assert present - minimal == set(self._parent)
        for u, parent in self._parent.items():
            assert parent in present and u in self._children[parent] and self._order(parent, u), (u, parent)
        assert sum(map(len, self._children.values())) == len(self._parent)


class TotalAntichain:
    """`MutableAntichain` for total orders: a heap with lazy deletion, so that an update costs O(log n) amortised.

    A SortedDict would be shorter, and cost 5 to 17 times as much for a time that comes and goes (1.7 to 2.8 µs;
    `python -m bench run ordered`); a tracker of a loop has two of these for each location.

    >>> m = TotalAntichain()
    >>> m.update(3, +1), m.update(5, +1), m.update(3, -1)
    ([(3, 1)], [], [(3, -1), (5, 1)])
    """

    __slots__ = ("_counts", "_heap", "_least")

    def __init__(self) -> None:
        self._counts: dict[Time, int] = {}  # invariant: no zeros
        self._heap: list[Time] = []  # invariant: holds every time with a positive count, perhaps others
        self._least: Time | None = None  # invariant: the least time with a positive count

    def update(self, time: Time, diff: int) -> list[tuple[Time, int]]:
        """Adds `diff` to the count of `time`; returns how the frontier changed."""
        before = self._counts.get(time, 0)
        after = before + diff
        if after:
            self._counts[time] = after
        elif before:
            del self._counts[time]
        least = self._least
        if before <= 0 < after:
            self._push(time)
            if least is None or time < least:
                self._least = time
                return [(time, +1)] if least is None else [(least, -1), (time, +1)]
        elif after <= 0 < before and time == least:
            self._least = least = self._find_least()
            return [(time, -1)] if least is None else [(time, -1), (least, +1)]
        return []

    def _push(self, time: Time) -> None:
        if len(self._heap) > 2 * len(self._counts) + 16:  # a time that comes and goes must not fill the heap
            self._heap = sorted(t for t, n in self._counts.items() if n > 0)
        else:
            heappush(self._heap, time)

    def _find_least(self) -> Time | None:
        heap, counts = self._heap, self._counts
        while heap and counts.get(heap[0], 0) <= 0:
            heappop(heap)
        return heap[0] if heap else None

    @property
    def frontier(self) -> Antichain:
        """The least element, if there is one."""
        return Antichain(() if self._least is None else (self._least,))

    def less_equal(self, time: Time) -> bool:
        """Whether the least element is at or before `time`. O(1)."""
        return self._least is not None and bool(self._least <= time)

    @property
    def counts(self) -> dict[Time, int]:
        """The multiset itself (a copy), with its negative counts."""
        return dict(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def _check(self) -> None:
        present = [t for t, n in self._counts.items() if n > 0]
        assert self._least == (min(present) if present else None), (self._least, present)
        assert set(present) <= set(self._heap)
        assert 0 not in self._counts.values()
