"""The courses of all bins of a store, and what bins of one shape do at a time, all at once.

A shape is a course without its times. Times differ from bin to bin where a plan changes bin by bin: they are in arrays,
by the number of the course. So a migration in a thousand steps has a few shapes, each of which is joined in one go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataflow.state.arrays import Ints
from megaphone.plans.chains import Chain
from megaphone.plans.columns.courses import BinCourse, PlanChange, Sides, TaskStage
from megaphone.plans.columns.joiner import ALWAYS, Joiner, LowTimes
from megaphone.plans.columns.rings import Delta, merged
from megaphone.plans.trees import Join, Streams, Tree, joins, leaves

Made = dict[Streams, Delta]


def cuts_of(chains: tuple[Chain, ...], slots: int) -> Ints:
    """By chain and slot, the time before which a component must be."""
    cuts = np.full((len(chains), slots), ALWAYS, np.int64)
    for number, chain in enumerate(chains):
        for condition in chain.conditions:
            for slot in condition.slots:
                cuts[number, slot] = min(cuts[number, slot], condition.before)
    return cuts


class CourseShape:
    """Courses that differ in their times only."""

    def __init__(self, course: BinCourse, joiner: Joiner) -> None:
        self.course = course
        self.members = 0  # courses
        self._joiner = joiner
        self._slots = len(joiner.query.streams)
        self._starts: Ints = np.zeros(0, np.int64)
        self._cuts: list[Ints] = []  # of each stage, by number of course

    def note(self, number: int, course: BinCourse) -> None:
        """A course of this shape has a number."""
        self.members += 1
        change = course.change
        if change is None:
            return
        if number >= len(self._starts):
            self._grow(2 * number + 16, change)
        self._starts[number] = change.time
        for cuts, stage in zip(self._cuts, change.stages, strict=True):
            cuts[number] = cuts_of(stage.chains, self._slots)

    def _grow(self, size: int, change: PlanChange) -> None:
        starts = np.zeros(size, np.int64)
        starts[: len(self._starts)] = self._starts
        cuts = [np.zeros((size, len(stage.chains), self._slots), np.int64) for stage in change.stages]
        for new, old in zip(cuts, self._cuts, strict=False):
            new[: len(old)] = old
        self._starts, self._cuts = starts, cuts

    def step(self, made: Made, courses: NDArray[np.int32], now: int) -> Ints:
        """The components of what comes out at a time. `made` has what is new at the streams, which is in their rings
        already."""
        course, change = self.course, self.course.change
        low = LowTimes(now - self._joiner.window)
        if change is None:
            return self._steady(course.tree, course.sides, made, now, low)
        if change.method == "parallel-track":
            return self._parallel(change, made, courses, now, low).parts
        whole = course.tree.streams
        new = dict(made)
        for number, stage in enumerate(change.stages):
            found = [self._run(stage.cut.new, change.sides, new, now, low)]
            if stage.chains:
                found.append(self._old(number, stage, made, courses, now))
            streams = stage.cut.streams
            made[streams] = new[streams] = merged(found, len(streams))
            if streams != whole:
                self._joiner.ring(streams, dict(change.sides)[streams]).add(new[streams], now)
        return new[whole].parts

    def _steady(self, tree: Tree, sides: Sides, made: Made, now: int, low: LowTimes) -> Ints:
        """A plan that does not change. Its results are in no state, and nobody asks for their times."""
        if not isinstance(tree, Join):
            return made[tree.streams].parts
        by = dict(sides)
        for below in (tree.left, tree.right):
            if isinstance(below, Join):
                delta = self._run(below, sides, made, now, low)
                self._joiner.ring(below.streams, by[below.streams]).add(delta, now)
        one, other = tree.left.streams, tree.right.streams
        rings = self._joiner.ring(one, by.get(one, 0)), self._joiner.ring(other, by.get(other, 0))
        return self._joiner.meet_last(one, made[one], other, made[other], rings, low)

    def _run(self, tree: Tree, sides: Sides, made: Made, now: int, low: LowTimes, keep: Keep | None = None) -> Delta:
        """Adds to `made` what is new at each node of a tree, and to the rings; what is new at its root."""
        joiner, by = self._joiner, dict(sides)
        for node in joins(tree):
            one, other = node.left.streams, node.right.streams
            rings = joiner.ring(one, by.get(one, 0)), joiner.ring(other, by.get(other, 0))
            delta = joiner.meet(one, made[one], other, made[other], rings, low)
            if keep is not None:
                delta = keep.of(node.streams, delta)
            made[node.streams] = delta
            if node.streams != tree.streams:
                joiner.ring(node.streams, by[node.streams]).add(delta, now)
        return made[tree.streams]

    def _parallel(
        self, change: PlanChange, made: Made, courses: NDArray[np.int32], now: int, low: LowTimes
    ) -> Delta:
        """Both plans run. The old one's results without an old part are discarded at its root (section 2.2)."""
        course, joiner = self.course, self._joiner
        fresh = dict(made)
        old = self._run(course.tree, course.sides, made, now, low)
        late = LowTimes(now - joiner.window, self._starts, courses, joiner.shift)
        new = self._run(change.tree, change.sides, fresh, now, late)
        if len(old):
            old = old.take(old.first < late.of(old))
        if not change.paper:
            return merged([old, new], len(course.tree.streams))
        joiner.ring(course.tree.streams, 0).add(new, now)
        return old

    def _old(self, number: int, stage: TaskStage, made: Made, courses: NDArray[np.int32], now: int) -> Delta:
        """What the old plan of a stage makes, as far as it owes it. What it would discard whatever it meets is not even
        fed to it."""
        keep = Keep(self._joiner, courses, self._cuts[number])
        fed = dict(made)
        for leaf in leaves(stage.cut.old):
            fed[leaf.streams] = keep.of(leaf.streams, made[leaf.streams])
        low = LowTimes(now - self._joiner.window)
        return self._run(stage.cut.old, self.course.sides, fed, now, low, keep)


class Keep:
    """Which composites the old plan keeps (section 3.3)."""

    def __init__(self, joiner: Joiner, courses: NDArray[np.int32], cuts: Ints) -> None:
        self._joiner = joiner
        self._courses = courses
        self._cuts = cuts

    def of(self, streams: Streams, delta: Delta) -> Delta:
        """Those that satisfy some chain."""
        return self._joiner.kept(streams, delta, self._courses, self._cuts)


class Courses:
    """By bin its course, by number. Courses that no bin has are forgotten."""

    def __init__(self, bins: int, first: BinCourse, joiner: Joiner) -> None:
        self.of_bin: NDArray[np.int32] = np.zeros(bins, np.int32)
        self.shape_of: NDArray[np.int32] = np.zeros(16, np.int32)  # by course
        self.shapes: dict[int, CourseShape] = {}
        self._joiner = joiner
        self._courses: dict[int, BinCourse] = {}
        self._members: dict[int, int] = {}
        self._numbers: dict[BinCourse, int] = {}
        self._shape_numbers: dict[BinCourse, int] = {}
        self._free: list[int] = []
        self._free_shapes: list[int] = []
        self._make(first)
        self._members[0] = bins

    def of(self, bin: int) -> BinCourse:
        """The course of a bin."""
        return self._courses[int(self.of_bin[bin])]

    def changing(self) -> dict[int, PlanChange]:
        """By number, the migrations that are under way."""
        return {number: course.change for number, course in self._courses.items() if course.change is not None}

    def __getitem__(self, number: int) -> BinCourse:
        return self._courses[number]

    def set(self, bins: Ints, course: BinCourse) -> int:
        """Some bins have another course from now on; its number."""
        number = self._make(course) if course not in self._numbers else self._numbers[course]
        self._members[number] += len(bins)
        before, counts = np.unique(self.of_bin[bins], return_counts=True)
        self.of_bin[bins] = number
        for old, count in zip(before.tolist(), counts.tolist(), strict=True):
            self._members[old] -= count
            if not self._members[old] and old:
                self._forget(old)
        return number

    def _make(self, course: BinCourse) -> int:
        number = self._free.pop() if self._free else len(self._courses)
        shape = course.shape()
        if shape not in self._shape_numbers:
            place = self._free_shapes.pop() if self._free_shapes else len(self.shapes)
            self._shape_numbers[shape] = place
            self.shapes[place] = CourseShape(shape, self._joiner)
        place = self._shape_numbers[shape]
        self.shapes[place].note(number, course)
        self._courses[number], self._numbers[course], self._members[number] = course, number, 0
        if number >= len(self.shape_of):
            self.shape_of = np.concatenate([self.shape_of, np.zeros_like(self.shape_of)])
        self.shape_of[number] = place
        return number

    def _forget(self, number: int) -> None:
        course = self._courses.pop(number)
        del self._numbers[course], self._members[number]
        self._free.append(number)
        place = int(self.shape_of[number])
        shape = self.shapes[place]
        shape.members -= 1
        if not shape.members:
            del self.shapes[place], self._shape_numbers[shape.course]
            self._free_shapes.append(place)
