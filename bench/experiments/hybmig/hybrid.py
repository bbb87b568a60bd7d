"""HybMig, counted: with and without sharing of sub-plans, with and without work in the background (BSC)."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.experiments.hybmig.counting import Box, Boxes, Contents, Extent, climb, inner, sources
from bench.experiments.hybmig.methods import Effect, Steady
from bench.experiments.hybmig.setting import Arrival
from megaphone.plans.trees import Cut, Join, Streams, Tree, decompose, lowest, parents


@dataclass(frozen=True, slots=True)
class ChainBox:
    """A chain of `megaphone.plans.chains` as a box: the node in which it ends, and by stream the cut-off."""

    end: Streams
    box: Box


@dataclass
class CountedTask:
    """One task: its trees, what the old one owes, and the states of the new one that lack something."""

    cut: Cut
    chains: list[ChainBox]
    incomplete: list[Join]
    spent: float = 0.0  # evaluations for the first of them
    past: list[Box] = field(default_factory=list)  # what ended chains had the old plan keep: it still has that


class _Owed(Extent):
    """The old plan of a task: what satisfies a chain; its states also have what satisfied one that has ended."""

    def __init__(self, contents: Contents, task: CountedTask) -> None:
        super().__init__(contents)
        self._boxes: Boxes = [chain.box for chain in task.chains]
        self._had: Boxes = [*self._boxes, *task.past]

    def fed(self, source: Streams, arrival: Arrival) -> int:
        return self.contents.new(source, arrival, self._boxes)

    def made(self, streams: Streams, arrival: Arrival) -> int:
        return self.contents.new(streams, arrival, self._boxes)

    def size(self, streams: Streams) -> int:
        return self.contents.size(streams, self._had)


class _Able(Extent):
    """The new plan of a task: all but what satisfies a chain that ends at a node or below it."""

    def __init__(self, contents: Contents, task: CountedTask) -> None:
        super().__init__(contents)
        self._chains = task.chains

    def _lacking(self, streams: Streams) -> Boxes:
        return [chain.box for chain in self._chains if chain.end <= streams]

    def made(self, streams: Streams, arrival: Arrival) -> int:
        return self.contents.new(streams, arrival) - self.contents.new(streams, arrival, self._lacking(streams))

    def size(self, streams: Streams) -> int:
        return self.contents.size(streams) - self.contents.size(streams, self._lacking(streams))


class Hybrid(Steady):
    """HybMig. `sharing=False` takes the two plans as one task, whatever they have in common."""

    def __init__(
        self, tree: Tree, contents: Contents, new: Tree, sharing: bool = True, in_background: bool = False
    ) -> None:
        super().__init__(tree, contents)
        self._new = new
        self._sharing = sharing
        self._in_background = in_background
        self.tasks: list[CountedTask] = []

    def start(self, now: float) -> int:
        cuts = decompose(self.tree, self._new)
        if not self._sharing:
            cuts = [Cut(self._new.streams, self.tree, self._new)]
        phase = self.contents.begin_phase()
        self.tasks = [self._task(cut, phase) for cut in cuts]
        return super().start(now)

    def _task(self, cut: Cut, phase: int) -> CountedTask:
        if cut.is_shared:
            return CountedTask(cut, [], [])
        chains = [ChainBox(node.streams, self._before(node.streams, phase)) for node in lowest(cut.new)]
        return CountedTask(cut, chains, inner(cut.new))

    def _before(self, streams: Streams, phase: int, box: Box | None = None) -> Box:
        """A box with one more condition."""
        slots = self.contents.slots(streams)
        cuts = box or self.contents.everything
        return tuple(min(cut, phase) if slot in slots else cut for slot, cut in enumerate(cuts))

    def arrive(self, arrival: Arrival) -> Effect:
        if self.tasks and self.is_past(arrival):
            self._finish(arrival.time)
        return super().arrive(arrival)

    def _finish(self, now: float) -> None:
        self.tree, self.tasks, self.ended = self._new, [], now

    def step(self, arrival: Arrival) -> Effect:
        if not self.tasks:
            return super().step(arrival)
        evaluations, results = 0, 0
        for task in self.tasks:
            if arrival.stream not in self.contents.slots(task.cut.streams):
                continue
            if task.cut.is_shared or not task.chains:
                more, results = climb(task.cut.new, arrival, Extent(self.contents))
                evaluations += more
                continue
            by_old, owed = climb(task.cut.old, arrival, _Owed(self.contents, task))
            by_new, able = climb(task.cut.new, arrival, _Able(self.contents, task))
            evaluations, results = evaluations + by_old + by_new, owed + able
        return Effect(evaluations, results)

    @property
    def tuples(self) -> int:
        if not self.tasks:
            return super().tuples
        shared = {source for task in self.tasks for source in sources(task.cut.new) | sources(task.cut.old)}
        total = sum(map(self.contents.size, shared))
        for task in self.tasks:
            able, owed = _Able(self.contents, task), _Owed(self.contents, task)
            total += sum(able.size(node.streams) for node in inner(task.cut.new))
            if not task.cut.is_shared:
                total += sum(owed.size(node.streams) for node in inner(task.cut.old))
        return total

    # In the background

    def background(self, budget: float, now: float) -> float:
        """Pairs are taken in the order of their earlier record, the latest first: what expires meanwhile is never
        looked at (Figure 3.10). So a state is complete once as many pairs were looked at as have not expired."""
        if not (self._in_background and self.tasks):
            return 0.0
        self.contents.expire(now)
        spent = 0.0
        while task := next((task for task in self.tasks if task.incomplete), None):
            need = max(0.0, self.pairs(task) - task.spent)
            if spent + need > budget:
                task.spent += budget - spent
                return budget
            spent += need
            self.complete(task)
        self._finish(now)
        return spent

    def pairs(self, task: CountedTask) -> int:
        """How many pairs the first incomplete state of a task needs."""
        node = task.incomplete[0]
        boxes = [chain.box for chain in task.chains if chain.end == node.streams]
        return self.contents.size(node.left.streams, boxes) * self.contents.size(node.right.streams, boxes)

    def complete(self, task: CountedTask) -> None:
        """The first incomplete state has what it lacked: chains that end there go on with the node above."""
        node, phase = task.incomplete.pop(0), self.contents.begin_phase()
        above = parents(task.cut.new)[node.streams]
        ended = [chain for chain in task.chains if chain.end == node.streams]
        task.chains = [chain for chain in task.chains if chain not in ended]
        if above.streams != task.cut.streams:
            task.chains += [ChainBox(above.streams, self._before(above.streams, phase, c.box)) for c in ended]
        else:
            task.past += [self._before(self._new.streams, phase, chain.box) for chain in ended]
        task.spent = 0.0
