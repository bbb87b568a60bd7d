"""What HybMig computes in the background (BSC): what the lowest incomplete state of a bin's new plan lacks.

Everything that is looked at is from before the cut-offs, so a job may take many steps while the stream flows. It is no
state: where a bin arrives, its job is begun again.
"""

from __future__ import annotations

import numpy as np

from megaphone.plans.chains import ending_in
from megaphone.plans.columns.courses import BinCourse
from megaphone.plans.columns.joiner import Joiner, LowTimes
from megaphone.plans.columns.rings import Delta
from megaphone.plans.columns.shapes import Keep, cuts_of
from megaphone.plans.trees import joins


class StateJob:
    """One state of one bin. `number`: of the stage to which it belongs."""

    def __init__(self, joiner: Joiner, bin: int, course: BinCourse, now: int) -> None:
        assert course.change is not None
        change, self._joiner, self._streams = course.change, joiner, course.tree.streams
        self.number = next(number for number, stage in enumerate(change.stages) if stage.incomplete)
        stage = change.stages[self.number]
        self._streams = stage.incomplete[0]
        node = next(node for node in joins(stage.cut.new) if node.streams == self._streams)
        sides = {**dict(course.sides), **dict(change.sides)}
        self._into = joiner.ring(self._streams, sides[self._streams])
        self._one, self._other = node.left.streams, node.right.streams
        mine = joiner.ring(self._one, sides.get(self._one, 0))
        self._theirs = joiner.ring(self._other, sides.get(self._other, 0))
        chains = tuple(ending_in(stage.chains, self._streams))
        everyone = np.zeros(len(mine.counts), np.int32)
        self._keep = Keep(joiner, everyone, cuts_of(chains, len(joiner.query.streams))[None])
        wanted = np.zeros(len(mine.counts), np.bool_)
        wanted[bin] = True
        some = mine.fetch(mine.numbers(wanted, now - joiner.window))
        self._some = self._keep.of(self._one, some)
        self._start = 0
        self._collected: list[Delta] = []

    def work(self, budget: int, now: int) -> int:
        """Looks at about so many pairs; at how many it was."""
        if self.is_done:
            return 0
        self._live(now)
        low = LowTimes(now - self._joiner.window)
        met = self._joiner.stored(self._one, self._some, self._other, self._theirs, low, self._start, budget)
        done = met.stopped - self._start + met.pairs
        self._start = met.stopped
        self._collected.append(self._keep.of(self._streams, met.delta))
        return done

    def _live(self, now: int) -> None:
        """Leaves out what has expired since: its components may have been forgotten."""
        rest = self._some.take(np.arange(self._start, len(self._some)))
        self._some, self._start = rest.take(rest.first >= now - self._joiner.window), 0

    @property
    def is_done(self) -> bool:
        """Whether everything has been looked at."""
        return self._start == len(self._some)

    def merge(self, now: int) -> None:
        """Puts what was found into the state, without what has expired."""
        for delta in self._collected:
            self._into.add(delta.take(delta.first >= now - self._joiner.window), now - 1)
