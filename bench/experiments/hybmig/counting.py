"""How many composites there are, without making them.

All records of a result have the same value, and everything in a state is within the window. So the composites of some
streams with a value are as many as the product of the streams' records with that value, and there is no need to make
them: at the paper's parameters that would be tens of millions. A migration divides records into *phases* (old, new,
and a further one whenever the background completes a state), and what a plan has or lacks are unions of *boxes*: in a
box, records of stream i are from before phase `cuts[i]`. `tests/bench/test_hybmig.py` compares all counts, record by
record, with `megaphone.plans`, which does make the composites.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.experiments.hybmig.setting import ELSEWHERE, VALUES, Arrival
from megaphone.plans.trees import Join, Leaf, Streams, Tree, joins, leaves

Box: TypeAlias = tuple[int, ...]
Boxes: TypeAlias = Sequence[Box]
Counts: TypeAlias = NDArray[np.int64]

_PHASES = 16  # more than any migration has


class Contents:
    """The records in the window, counted by stream, phase and value."""

    def __init__(self, names: str, window: float) -> None:
        self.window = window
        self.phase = 0  # of what arrives now
        self._index = {name: i for i, name in enumerate(names)}
        self._upto = np.zeros((len(names), _PHASES + 1, VALUES + 1), np.int64)  # [i, c]: from before phase c
        self._queue: deque[tuple[float, int, int, int]] = deque()
        self.everything: Box = (_PHASES,) * len(names)

    def add(self, arrival: Arrival) -> None:
        """A record comes into the window."""
        self._queue.append((arrival.time, arrival.stream, self.phase, arrival.value))
        self._upto[arrival.stream, self.phase + 1 :, arrival.value] += 1

    def expire(self, now: float) -> None:
        """Records that are more than a window old leave."""
        while self._queue and self._queue[0][0] < now - self.window:
            _, stream, phase, value = self._queue.popleft()
            self._upto[stream, phase + 1 :, value] -= 1

    def begin_phase(self) -> int:
        """What comes from now on is of a new phase."""
        self.phase += 1
        assert self.phase < _PHASES
        return self.phase

    def slots(self, streams: Iterable[str]) -> list[int]:
        """The numbers of streams."""
        return [self._index[name] for name in streams]

    def size(self, streams: Streams, boxes: Boxes | None = None) -> int:
        """How many composites of these streams there are, in a union of boxes."""
        slots = self.slots(streams)
        within = [self.everything] if boxes is None else boxes
        return sum(sign * int(self._product(slots, box).sum()) for sign, box in _terms(within))

    def new(self, streams: Streams, arrival: Arrival, boxes: Boxes | None = None) -> int:
        """How many composites of these streams a record makes that arrives now, in a union of boxes."""
        slots = [slot for slot in self.slots(streams) if slot != arrival.stream]
        if slots and arrival.value == ELSEWHERE:
            return 0
        within = [self.everything] if boxes is None else [box for box in boxes if box[arrival.stream] > self.phase]
        return sum(
            sign * int(np.prod([self._upto[slot, box[slot], arrival.value] for slot in slots], dtype=np.int64))
            for sign, box in _terms(within)
        )

    def _product(self, slots: list[int], box: Box) -> Counts:
        counts: Counts = self._upto[slots[0], box[slots[0]]]
        if len(slots) == 1:
            return counts
        counts = counts[:ELSEWHERE]  # what is elsewhere matches nothing
        for slot in slots[1:]:
            counts = counts * self._upto[slot, box[slot], :ELSEWHERE]
        return counts


def _terms(boxes: Boxes) -> list[tuple[int, Box]]:
    """A union as a sum of boxes with signs: inclusion and exclusion."""
    if len(boxes) == 1:
        return [(1, boxes[0])]
    found = []
    for size in range(1, len(boxes) + 1):
        for some in combinations(boxes, size):
            found.append(((-1) ** (size + 1), tuple(map(min, zip(*some, strict=True)))))
    return found


class Extent:
    """Which composites a plan has in its states and makes: all of them. Others narrow it."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    def fed(self, source: Streams, arrival: Arrival) -> int:
        """What a record makes at a source of the plan."""
        return self.contents.new(source, arrival)

    def made(self, streams: Streams, arrival: Arrival) -> int:
        """What a record makes at a node."""
        return self.contents.new(streams, arrival)

    def size(self, streams: Streams) -> int:
        """How much is in the state of a node."""
        return self.contents.size(streams)


def climb(tree: Tree, arrival: Arrival, extent: Extent) -> tuple[int, int]:
    """What a record does in a plan, from its source to the root: predicate evaluations of nested loops, and results."""
    path = _path(tree, arrival.stream, extent.contents)
    delta, evaluations = extent.fed(path[0][0], arrival), 0
    for node, sibling in path[1:]:
        if not delta:
            break
        assert sibling is not None
        is_source = isinstance(sibling, Leaf)
        evaluations += delta * (extent.contents.size(sibling.streams) if is_source else extent.size(sibling.streams))
        delta = extent.made(node, arrival)
    return evaluations, delta


def _path(tree: Tree, stream: int, contents: Contents) -> list[tuple[Streams, Tree | None]]:
    """From a stream's source to the root: a node, and what is joined there with what comes from below."""
    if isinstance(tree, Leaf):
        return [(tree.streams, None)]
    inside, sibling = (
        (tree.left, tree.right) if stream in contents.slots(tree.left.streams) else (tree.right, tree.left)
    )
    return [*_path(inside, stream, contents), (tree.streams, sibling)]


def sources(tree: Tree) -> set[Streams]:
    """The sources of a plan."""
    return {leaf.streams for leaf in leaves(tree)}


def inner(tree: Tree) -> list[Join]:
    """The nodes that have a state of their own: all but the root."""
    return [node for node in joins(tree) if node.streams != tree.streams]
