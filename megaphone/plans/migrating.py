"""A plan at work in one bin, and its way from one plan to the next: moving state, parallel track, HybMig.

Times are integers, and everything at a time is done at once, when it is complete: *old* is what came before the time T
at which a migration starts, on all workers alike. Results come out at the latest time of their parts, so that all
methods give the same results at the same times. After T + window nothing old is left, and the old plan is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dataflow.state.values import Key, Record
from megaphone.plans.chains import Chain, Condition, ending_in, keeps
from megaphone.plans.composites import Composite, earliest, of_component, records
from megaphone.plans.query import Query
from megaphone.plans.states import State
from megaphone.plans.tree_step import Delta, Evaluations, States, fill, insert, step
from megaphone.plans.trees import Cut, Join, Leaf, Streams, Tree, decompose, joins, leaves, lowest, parents

Arrivals = Mapping[str, list[Record]]
METHODS = ("moving-state", "parallel-track", "hybmig")
_PURGES = 4  # in the length of a window: joins look at times themselves, so that purging only bounds memory


@dataclass(frozen=True, slots=True)
class Options:
    """How a method goes about it. `share`: HybMig leaves alone what both plans have in common (section 3.2).
    `background`: it computes states when idle. `paper`: parallel track holds its new results until its end."""

    share: bool = True
    background: bool = True
    paper: bool = False


_USUAL = Options()


def empty_states(tree: Tree) -> States:
    """A state for each edge of a tree; the root has none."""
    edges = [leaf.streams for leaf in leaves(tree)] + [node.streams for node in joins(tree)]
    return {streams: State() for streams in edges if streams != tree.streams}


class Running:
    """A plan and its states. `run` does everything at a time; times come in their order. `phase`: plans of different
    phases purge at different times, so that not all of them do it at once."""

    def __init__(self, query: Query, tree: Tree, phase: int = 0) -> None:
        self.query = query
        self.tree = tree
        self.phase = phase
        self.states = empty_states(tree)
        self.migration: PlanMigration | None = None
        self.evaluations = Evaluations()
        self.purge_at = 0  # the next time at which expired composites are forgotten

    def run(self, time: int, arrivals: Arrivals) -> list[tuple[Record, ...]]:
        """The results at a time, each the tuple of its records in the order of the streams."""
        held = self.end(time)
        made = self._made(time, arrivals)
        results = self._step(made) if self.migration is None else self.migration.step(self, made)
        self._purge(time)
        return [*held, *(records(composite) for composites in results.values() for composite in composites)]

    def end(self, now: int) -> list[tuple[Record, ...]]:
        """Ends a migration that is over before anything at `now` is done; the results that it held back."""
        if self.migration is None or not self.migration.is_over(now):
            return []
        held = self.migration.held
        self._finish()
        return held

    def _made(self, time: int, arrivals: Arrivals) -> dict[Streams, Delta]:
        made: dict[Streams, Delta] = {}
        slots = len(self.query.streams)
        key_of = self.query.key_of if self.query.key is None else self.query.key
        for slot, stream in enumerate(self.query.streams):
            delta: Delta = {}
            for record in arrivals.get(stream, ()):
                delta.setdefault(key_of(record), []).append(of_component(slot, slots, (time, record)))
            made[frozenset((stream,))] = delta
        return made

    def _step(self, made: dict[Streams, Delta]) -> Delta:
        results = step(self.tree, self.query, made, self.states, self.evaluations)
        insert(made, self.states)
        return results

    def replan(self, tree: Tree, method: str, time: int, options: Options = _USUAL) -> None:
        """Begins a migration at a time of which nothing has been done."""
        assert self.migration is None, "a second migration waits for the first"
        if tree == self.tree:
            return
        if method == "moving-state":
            self._move_state(tree, time)
        elif method == "parallel-track":
            self.migration = ParallelTrack(self.query, tree, time, options)
        else:
            self.migration = HybMig(self, tree, time, options)

    def work(self, budget: int, now: int) -> int:
        """Does some of what can be done in the background, about so many pairs, before anything at `now` is done; how
        many it did. A migration that this ends is over."""
        if not isinstance(self.migration, HybMig):
            return 0
        done = self.migration.work(self, budget, now)
        if not self.migration.owes:
            self._finish()
        return done

    @property
    def can_work(self) -> bool:
        """Whether there is something to do in the background."""
        return isinstance(self.migration, HybMig) and self.migration.options.background

    def _finish(self) -> None:
        assert self.migration is not None
        self.tree, self.states, self.migration = self.migration.tree, self.migration.final_states(self), None

    def _move_state(self, tree: Tree, time: int) -> None:
        """States that both plans have are kept; the others are filled, from below (section 2.2)."""
        old, self.states = self.states, empty_states(tree)
        for state in old.values():
            state.purge(time - self.query.window)
        for streams in self.states:
            if streams in old:
                self.states[streams] = old[streams]
        for node in joins(tree):
            if node.streams != tree.streams and node.streams not in old:
                fill(node, self.query, self.states, self.states[node.streams], self.evaluations)
        self.tree = tree

    def _purge(self, time: int) -> None:
        if time >= self.purge_at:
            every = max(1, self.query.window // _PURGES)
            offset = self.phase % every
            self.purge_at = ((time - offset) // every + 1) * every + offset
            for state in self.every_state():
                state.purge(time - self.query.window + 1)

    def every_state(self) -> list[State]:
        """All states, shared ones once."""
        own = self.migration.states.values() if self.migration is not None else ()
        return [*self.states.values(), *own]

    @property
    def tuples(self) -> int:
        """How many composites all states have, shared ones once."""
        return sum(map(len, self.every_state()))


class PlanMigration(ABC):
    """The way to another plan, from a time on."""

    def __init__(self, query: Query, tree: Tree, time: int, options: Options) -> None:
        self.query = query
        self.tree = tree  # the new one
        self.time = time
        self.options = options
        self.states: States = {}  # of the new plan, those that are not among the running plan's
        self.held: list[tuple[Record, ...]] = []  # results that come out at the end

    @property
    def ends(self) -> int:
        """The time at which nothing from before the start can be part of a result any more."""
        return self.time + self.query.window

    def is_over(self, now: int) -> bool:
        """Whether it ends before anything at a time is done."""
        return now >= self.ends

    @abstractmethod
    def step(self, running: Running, made: dict[Streams, Delta]) -> Delta:
        """The results at a time."""

    @abstractmethod
    def final_states(self, running: Running) -> States:
        """The states of the new plan, when the migration is over."""


class ParallelTrack(PlanMigration):
    """The new plan starts empty; everything goes to both. The old one's results without an old part are discarded, at
    its root: further down they may still meet an old one (section 2.2)."""

    def __init__(self, query: Query, tree: Tree, time: int, options: Options = _USUAL) -> None:
        super().__init__(query, tree, time, options)
        self.states = empty_states(tree)

    def step(self, running: Running, made: dict[Streams, Delta]) -> Delta:
        fresh = dict(made)
        old = step(running.tree, self.query, made, running.states, running.evaluations)
        insert(made, running.states)
        new = step(self.tree, self.query, fresh, self.states, running.evaluations)
        insert(fresh, self.states)
        kept = {key: [c for c in composites if earliest(c) < self.time] for key, composites in old.items()}
        if not self.options.paper:
            return _merged(kept, new)
        self.held += [records(composite) for composites in new.values() for composite in composites]
        return kept

    def final_states(self, running: Running) -> States:
        return self.states


@dataclass(slots=True)
class Task:
    """One task of HybMig: the trees of a cut, and what the old one still owes."""

    cut: Cut
    chains: list[Chain]
    incomplete: list[Join]  # nodes of the new tree whose states lack something, lower ones first
    job: Iterator[tuple[Key, Composite] | None] | None = None  # what the background is about
    collected: list[tuple[Key, Composite]] = field(default_factory=list)


class HybMig(PlanMigration):
    """Sources' states are shared; the new plan's other states start empty. Both plans run, and divide the work: the new
    one makes the results in which no lowest node is all old, the old one the others (section 3.3)."""

    def __init__(self, running: Running, tree: Tree, time: int, options: Options = _USUAL) -> None:
        super().__init__(running.query, tree, time, options)
        cuts = decompose(running.tree, tree) if options.share else [Cut(tree.streams, running.tree, tree)]
        self.tasks = [self._task(cut) for cut in cuts]
        self.states = {node.streams: State() for task in self.tasks for node in task.incomplete}

    def _task(self, cut: Cut) -> Task:
        if cut.is_shared:
            return Task(cut, [], [])
        chains = [Chain((self.condition(node.streams, self.time),)) for node in lowest(cut.new)]
        return Task(cut, chains, [node for node in joins(cut.new) if node.streams != cut.streams])

    def condition(self, streams: Streams, before: int) -> Condition:
        """Components of these streams are from before a time."""
        return Condition(streams, tuple(sorted(map(self.query.slot, streams))), before)

    @property
    def owes(self) -> bool:
        """Whether the old plan still has something to do."""
        return any(task.chains for task in self.tasks)

    def step(self, running: Running, made: dict[Streams, Delta]) -> Delta:
        new, states = dict(made), self._new_states(running)
        for task in self.tasks:
            results = step(task.cut.new, self.query, new, states, running.evaluations)
            if task.chains:
                results = _merged(self._old_step(task, running, made), results)
            elif task.cut.is_shared:
                made.update({node.streams: new[node.streams] for node in joins(task.cut.new)})
            made[task.cut.streams] = new[task.cut.streams] = results
        insert(made, running.states)
        insert(new, self.states)
        return made[self.tree.streams]

    def _new_states(self, running: Running) -> States:
        """The states of the new plan: its own, and those that it shares."""
        return {**running.states, **self.states}

    def _old_step(self, task: Task, running: Running, made: dict[Streams, Delta]) -> Delta:
        """What the old plan of a task makes, as far as it owes it. What it would discard whatever it meets is not even
        fed to it: with one chain, what comes in the streams of its first node."""

        def keep(composite: Composite) -> bool:
            return keeps(task.chains, composite)

        fed = dict(made)
        for leaf in leaves(task.cut.old):
            fed[leaf.streams] = {key: [*filter(keep, ones)] for key, ones in made[leaf.streams].items()}
        results = step(task.cut.old, self.query, fed, running.states, running.evaluations, keep)
        made.update({node.streams: fed[node.streams] for node in joins(task.cut.old)})
        return results

    def final_states(self, running: Running) -> States:
        states = self._new_states(running)
        return {streams: states[streams] for streams in empty_states(self.tree)}

    # Background state computation (BSC), section 3.4

    def work(self, running: Running, budget: int, now: int) -> int:
        """Completes states of the new plan: looks at about so many pairs; at how many it was."""
        done = 0
        for task in self.tasks:
            while task.incomplete and done < budget:
                if task.job is None:
                    task.job, task.collected = self._missing(task, running), []
                for found in task.job:
                    if found is not None:
                        task.collected.append(found)
                    done += 1
                    if done == budget:
                        return done
                self._complete(task, now)
                done += 1
        return done

    def _missing(self, task: Task, running: Running) -> Iterator[tuple[Key, Composite] | None]:
        """What the lowest incomplete state lacks: what satisfies a chain that ends there. Nothing new does, so that it
        may take as long as it likes. None for a pair that does not fit, and for a key that has no pair."""
        node = task.incomplete[0]
        chains = ending_in(task.chains, node.streams)
        states = self._new_states(running)
        left, right = states[node.left.streams], states[node.right.streams]
        joint = self.query.joint(node.left.streams, node.right.streams)
        running.evaluations.count += len(left) * len(right)
        for key in [*left.by_key]:
            ones, others = ([c for c in side.probe(key) if keeps(chains, c)] for side in (left, right))
            if not ones or not others:
                yield None
            for one in ones:
                for other in others:
                    composite = joint.combine(one, other)
                    yield (key, composite) if composite is not None and keeps(chains, composite) else None

    def _complete(self, task: Task, now: int) -> None:
        """The state has all that it lacked, as of now: chains that end in its node go on with the node above."""
        node = task.incomplete.pop(0)
        for key, composite in task.collected:
            if earliest(composite) >= now - self.query.window:
                self.states[node.streams].add(key, (composite,))
        above = parents(task.cut.new)[node.streams]
        ended = ending_in(task.chains, node.streams)
        task.chains = [chain for chain in task.chains if chain not in ended]
        if above.streams != task.cut.streams:
            condition = self.condition(above.streams, now)
            task.chains += [chain.extended(condition) for chain in ended]
        task.job, task.collected = None, []


def _merged(one: Delta, other: Delta) -> Delta:
    return {key: [*one.get(key, ()), *other.get(key, ())] for key in one.keys() | other.keys()}


__all__ = ["METHODS", "Arrivals", "HybMig", "Leaf", "Options", "ParallelTrack", "PlanMigration", "Running"]
