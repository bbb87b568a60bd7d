"""What a tree does at one time: from what is new at its sources to what is new at its root (section 2.1).

States are as of before that time. A node makes dL x R + L x dR + dL x dR, where L and R are the states of its sides and
dL and dR what is new there; then everything new goes into its state, all at once: earlier would make pairs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TypeAlias

from dataflow.state.values import Key
from megaphone.plans.composites import Composite
from megaphone.plans.query import Query
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
        made[node.streams] = _join(node, query, made, states, evaluations, keep)
    return made[tree.streams]


def fill(node: Join, query: Query, states: Mapping[Streams, State], into: State, evaluations: Evaluations) -> None:
    """Joins the states of a node's sides (moving state, step 3)."""
    left, right = states[node.left.streams], states[node.right.streams]
    joint = query.joint(node.left.streams, node.right.streams)
    evaluations.count += len(left) * len(right)
    for key, one in left:
        for other in right.probe(key):
            if (composite := joint.combine(one, other)) is not None:
                into.add(key, (composite,))


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
    keep: Keep | None,
) -> Delta:
    """What is new at a node."""
    left, right = node.left.streams, node.right.streams
    new_left, new_right = made.get(left, {}), made.get(right, {})
    evaluations.count += sum(map(len, new_left.values())) * len(states[right])
    evaluations.count += sum(map(len, new_right.values())) * len(states[left])
    combine = query.joint(left, right).combine
    delta: Delta = {}
    for key, ones in new_left.items():
        if others := [*states[right].probe(key), *new_right.get(key, ())]:
            delta[key] = [c for one in ones for other in others if (c := combine(one, other)) is not None]
    for key, others in new_right.items():
        if ones := [*states[left].probe(key)]:
            found = [c for one in ones for other in others if (c := combine(one, other)) is not None]
            delta[key] = [*delta[key], *found] if key in delta else found
    if keep is not None:
        delta = {key: [*filter(keep, composites)] for key, composites in delta.items()}
    return {key: composites for key, composites in delta.items() if composites}
