"""What a bin does: the plan that it runs, and while it migrates the next one and what the old one still owes. Pure.

Bins that do the same have one course. A state is an edge of a plan and a *side*: of one set of streams there may be two
states while a bin migrates, the old plan's and the new one's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from megaphone.plans.bins import Asked
from megaphone.plans.chains import Chain, Condition, ending_in
from megaphone.plans.query import Query
from megaphone.plans.trees import Cut, Join, Leaf, Streams, Tree, decompose, joins, lowest, parents

Side: TypeAlias = tuple[Streams, int]
Sides: TypeAlias = frozenset[Side]
"""Which state each edge of a plan has, without the streams themselves: these have one each."""


@dataclass(frozen=True, slots=True)
class TaskStage:
    """A task of HybMig: the trees of a cut, what the old one still owes, and which states of the new one lack
    something, lower ones first."""

    cut: Cut
    chains: tuple[Chain, ...]
    incomplete: tuple[Streams, ...]


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A migration that began at a time."""

    tree: Tree
    sides: Sides
    method: str
    time: int
    share: bool
    background: bool
    paper: bool
    stages: tuple[TaskStage, ...]

    @property
    def owes(self) -> bool:
        """Whether the old plan of HybMig still has something to do."""
        return any(stage.chains for stage in self.stages)

    def shape(self) -> PlanChange:
        """The same without its times."""
        stages = tuple(replace(stage, chains=tuple(map(_timeless, stage.chains))) for stage in self.stages)
        return replace(self, time=0, stages=stages)


def _timeless(chain: Chain) -> Chain:
    return Chain(tuple(replace(condition, before=0) for condition in chain.conditions))


@dataclass(frozen=True, slots=True)
class BinCourse:
    """A plan at work, and perhaps its way to the next."""

    tree: Tree
    sides: Sides
    change: PlanChange | None = None

    @property
    def states(self) -> Sides:
        """All states that it has, besides those of the streams."""
        if self.change is None:
            return self.sides
        held = {(self.tree.streams, 0)} if self.change.paper and self.change.method == "parallel-track" else set()
        return self.sides | self.change.sides | held

    def shape(self) -> BinCourse:
        """The same without its times: bins of one shape are joined together."""
        return self if self.change is None else replace(self, change=self.change.shape())

    def ended(self) -> BinCourse:
        """The course when its migration is over."""
        assert self.change is not None
        return BinCourse(self.change.tree, self.change.sides)

    def moved(self, tree: Tree) -> tuple[BinCourse, list[Join]]:
        """The course after moving state, and the nodes whose states are to be filled, lower ones first."""
        old = dict(self.sides)
        sides = frozenset((node.streams, old.get(node.streams, 0)) for node in inner(tree))
        return BinCourse(tree, sides), [node for node in inner(tree) if node.streams not in old]

    def replanned(self, tree: Tree, asked: Asked, time: int, query: Query) -> BinCourse:
        """The course as of the start of parallel track or HybMig."""
        old, paper = dict(self.sides), asked.order == "paper"
        if asked.method == "parallel-track":
            stages: tuple[TaskStage, ...] = ()
            own = {node.streams for node in inner(tree)}
        else:
            cuts = decompose(self.tree, tree) if asked.share else [Cut(tree.streams, self.tree, tree)]
            stages = tuple(_stage(cut, time, query) for cut in cuts)
            own = {streams for stage in stages for streams in stage.incomplete}
        sides = frozenset(
            (node.streams, _other(old.get(node.streams)) if node.streams in own else old[node.streams])
            for node in inner(tree)
        )
        change = PlanChange(tree, sides, asked.method, time, asked.share, asked.background, paper, stages)
        return replace(self, change=change)

    def completed(self, number: int, now: int, query: Query) -> BinCourse:
        """The course when the lowest incomplete state of a stage has all that it lacked, as of now: chains that end in
        its node go on with the node above. When nothing is owed any more, the migration is over."""
        assert self.change is not None
        stage = self.change.stages[number]
        streams, *rest = stage.incomplete
        above = parents(stage.cut.new)[streams]
        ended = ending_in(stage.chains, streams)
        chains = [chain for chain in stage.chains if chain not in ended]
        if above.streams != stage.cut.streams:
            chains += [chain.extended(condition(query, above.streams, now)) for chain in ended]
        stages = list(self.change.stages)
        stages[number] = TaskStage(stage.cut, tuple(chains), tuple(rest))
        course = replace(self, change=replace(self.change, stages=tuple(stages)))
        return course if course.change is not None and course.change.owes else course.ended()


def first_course(tree: Tree) -> BinCourse:
    """The course of a bin that has nothing but a plan."""
    return BinCourse(tree, frozenset((node.streams, 0) for node in inner(tree)))


def inner(tree: Tree) -> list[Join]:
    """The nodes that have a state: all but the root, children before parents."""
    return [node for node in joins(tree) if node.streams != tree.streams]


def condition(query: Query, streams: Streams, before: int) -> Condition:
    """Components of these streams are from before a time."""
    return Condition(streams, tuple(sorted(map(query.slot, streams))), before)


def _other(side: int | None) -> int:
    return 0 if side is None else 1 - side


def _stage(cut: Cut, time: int, query: Query) -> TaskStage:
    if cut.is_shared:
        return TaskStage(cut, (), ())
    chains = tuple(Chain((condition(query, node.streams, time),)) for node in lowest(cut.new))
    return TaskStage(cut, chains, tuple(node.streams for node in inner(cut.new)))


__all__ = ["BinCourse", "Leaf", "PlanChange", "Side", "Sides", "TaskStage", "condition", "first_course", "inner"]
