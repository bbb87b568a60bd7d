"""What a tree does at one time: from what is new at its sources to what is new at its root (section 2.1).

States are as of before that time. A node makes dL x R + L x dR + dL x dR, where L and R are the states of its sides and
dL and dR what is new there; then everything new goes into its state, all at once: earlier would make pairs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeAlias

from dataflow.state.values import Key
from megaphone.plans.composites import Composite, earliest, latest, merge
from megaphone.plans.query import Check, Query
from megaphone.plans.states import State
from megaphone.plans.trees import Join, Streams, Tree, joins

Delta: TypeAlias = dict[Key, list[Composite]]
"""By key, what is new."""
States: TypeAlias = dict[Streams, State]
Keep: TypeAlias = Callable[[Composite], bool]


class Evaluations:
    """How often a nested loop would have evaluated predicates: the papers' measure of work."""

    def __init__(self) -> None:
        self.count = 0


def step(
    tree: Tree,
    query: Query,
    made: MutableMapping[Streams, Delta],
    states: Mapping[Streams, State],
    evaluations: Evaluations,
    keep: Keep | None = None,
) -> Delta:
    """Adds to `made`, which has what is new at the sources, what is new at each node; that of the root.

    `keep`: what is not kept is discarded, at every node.
    """
    for node in joins(tree):
        joined = _join(node, query, made, states, evaluations)
        made[node.streams] = _gathered(joined, keep)
    return made[tree.streams]


def fill(node: Join, query: Query, states: Mapping[Streams, State], into: State, evaluations: Evaluations) -> None:
    """Joins the states of a node's sides (moving state, step 3)."""
    left, right = states[node.left.streams], states[node.right.streams]
    checks = query.checks(node.left.streams, node.right.streams)
    evaluations.count += len(left) * len(right)
    for key, one in left:
        for other in right.probe(key):
            if (composite := combine(one, other, query.window, checks)) is not None:
                into.add(key, (composite,))


def combine(one: Composite, other: Composite, window: int, checks: list[Check]) -> Composite | None:
    """Both together, if they may be."""
    composite = merge(one, other)
    if latest(composite) - earliest(composite) > window:
        return None
    return composite if all(check.holds(composite) for check in checks) else None


def insert(made: Mapping[Streams, Delta], states: Mapping[Streams, State]) -> None:
    """Puts everything new into the states that there are."""
    for streams, state in states.items():
        for key, composites in made.get(streams, {}).items():
            state.add(key, composites)


def _join(
    node: Join,
    query: Query,
    made: Mapping[Streams, Delta],
    states: Mapping[Streams, State],
    evaluations: Evaluations,
) -> Iterator[tuple[Key, Composite]]:
    left, right = node.left.streams, node.right.streams
    checks = query.checks(left, right)
    new_left, new_right = made.get(left, {}), made.get(right, {})
    evaluations.count += sum(map(len, new_left.values())) * len(states[right])
    evaluations.count += sum(map(len, new_right.values())) * len(states[left])
    for key, ones in new_left.items():
        others = [*states[right].probe(key), *new_right.get(key, ())]
        for one in ones:
            for other in others:
                if (composite := combine(one, other, query.window, checks)) is not None:
                    yield key, composite
    for key, others in new_right.items():
        for one in states[left].probe(key):
            for other in others:
                if (composite := combine(one, other, query.window, checks)) is not None:
                    yield key, composite


def _gathered(joined: Iterator[tuple[Key, Composite]], keep: Keep | None) -> Delta:
    delta: Delta = {}
    for key, composite in joined:
        if keep is None or keep(composite):
            delta.setdefault(key, []).append(composite)
    return delta
