"""Random dataflow graphs of every kind, from a seed.

A graph is laid out as a list of operators in which records mostly flow forwards; feedback takes them back. Whether the
result has a cycle that does not advance time is for the oracle to say: `random_graph` lays out edges anew until there
is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dataflow.progress import paths
from dataflow.progress.graph import Graph, Location, Source, Target
from dataflow.progress.paths import Levels, PathSummary
from dataflow.time.timestamp import Checked, Domain, Integers, Product, UserDomain
from tests.oracles import progress as oracle
from tests.progress.pairs import Pair, Shift


@dataclass
class Operator:
    """An operator to be: its shape, and whether its input may come from an operator that is further on."""

    name: str
    inputs: list[Levels]
    outputs: list[Levels]
    connections: dict[tuple[int, int], PathSummary]
    initial: list[int] = field(default_factory=list)
    feedback: bool = False


@dataclass(frozen=True)
class Kind:
    """What sort of graphs to make."""

    domain: Callable[[], Domain]
    depth: int = 0  # how deep scopes may nest
    loops: int = 0  # how many feedbacks a scope may have
    size: int = 5  # how many operators a scope may have
    backward: float = 0.0  # how often an edge ignores the order of the operators (a cycle must then be lucky)


KINDS = {
    "integers, acyclic": Kind(Integers, size=7),
    "integers, loops": Kind(Integers, loops=2, backward=0.1),
    "nested once": Kind(Integers, depth=1, loops=1, size=3, backward=0.05),
    "nested twice": Kind(Integers, depth=2, loops=1, size=2),
    "products": Kind(lambda: Product(int, int), depth=1, loops=1, size=3),
    "pairs": Kind(lambda: UserDomain(Pair), depth=1, loops=1, size=3),
    "pairs, checked": Kind(lambda: Checked(UserDomain(Pair)), loops=2, backward=0.1),
}


# ------------------------------------------------------------------------------------------------ times and summaries


def random_time(rng: Random, levels: Levels, most: int = 4) -> Any:
    """Some time of a scope."""
    out = tuple(_random_level(rng, domain.minimum, most) for domain in levels)
    return out if len(out) > 1 else out[0]


def _random_level(rng: Random, minimum: Any, most: int) -> Any:
    if isinstance(minimum, int):
        return rng.randint(0, most)
    if isinstance(minimum, tuple):
        return tuple(_random_level(rng, part, most) for part in minimum)
    return Pair(rng.randint(0, most), rng.randint(0, most))


def later_time(rng: Random, time: Any) -> Any:
    """A time at or after a given one."""
    if isinstance(time, int):
        return time + rng.choice((0, 0, 1, 2))
    if isinstance(time, tuple):
        return tuple(later_time(rng, part) for part in time)
    return Pair(later_time(rng, time.x), later_time(rng, time.y))


def random_step(rng: Random, domain: Domain) -> Any:
    """A summary of one level that advances it."""
    if isinstance(domain.minimum, int):
        return rng.choice((1, 1, 2, 3))
    if isinstance(domain.minimum, tuple):
        return rng.choice(((0, 1), (1, 0), (2, 1)))
    return rng.choice((Shift(1, 0), Shift(0, 1), Shift(2, 1), Shift(1, 1, limit=3)))


def advance_some(rng: Random, levels: Levels) -> PathSummary:
    """A path within a scope that advances its innermost level, or now and then another one."""
    chosen = rng.randrange(len(levels)) if rng.random() < 0.2 else len(levels) - 1
    steps = [random_step(rng, d) if i == chosen else d.identity for i, d in enumerate(levels)]
    return paths.advance(levels, tuple(steps))


# ---------------------------------------------------------------------------------------------------------- operators


def plain(rng: Random, levels: Levels) -> Operator:
    """0..3 inputs and outputs, some of them unconnected inside, some with an increment."""
    inputs, outputs = rng.choice((0, 1, 1, 1, 2, 2, 3)), rng.choice((0, 1, 1, 1, 1, 2, 3))
    connections = {}
    for i in range(inputs):
        for o in range(outputs):
            if rng.random() < 0.8:
                connections[i, o] = advance_some(rng, levels) if rng.random() < 0.2 else paths.identity(levels)
    chance = 0.15 if inputs else 0.9
    initial = [o for o in range(outputs) if rng.random() < chance]
    return Operator("plain", [levels] * inputs, [levels] * outputs, connections, initial)


def bridge(name: str, path: PathSummary, feedback: bool = False) -> Operator:
    """One input, one output, one path between them."""
    return Operator(name, [path.origin], [path.target], {(0, 0): path}, feedback=feedback)


def lay_out(rng: Random, kind: Kind, levels: Levels) -> list[Operator]:
    """The operators of a scope, nested scopes included, in the order in which records mostly flow."""
    parts = [[plain(rng, levels)] for _ in range(rng.randint(1, kind.size))]
    if len(levels) <= kind.depth:
        parts += [nested(rng, kind, levels) for _ in range(rng.choice((1, 1, 1, 2)) if len(levels) == 1 else 1)]
    rng.shuffle(parts)
    first = [Operator("source", [], [levels], {}, [0])] if len(levels) == 1 or rng.random() < 0.2 else []
    # Feedback comes first, so that what it sends passes through the rest on its way back.
    loops = rng.randint(0, kind.loops) or min(kind.loops, rng.randint(0, 1))
    first += [bridge("feedback", advance_some(rng, levels), True) for _ in range(loops)]
    return first + [operator for part in parts for operator in part]


def nested(rng: Random, kind: Kind, levels: Levels) -> list[Operator]:
    """A scope of its own, with one or two ways in and out, which may or may not meet inside."""
    inner = Integers()
    there = (*levels, inner)
    into, out_of = paths.enter(levels, inner), paths.leave(there)
    late = into.followed_by(paths.advance(there, (*(d.identity for d in levels), 2)))
    ways = rng.randint(1, 2)
    entries = [bridge("enter", late if late is not None and rng.random() < 0.1 else into) for _ in range(ways)]
    exits = [bridge("leave", out_of) for _ in range(ways)]
    return [*entries, *lay_out(rng, kind, there), *exits]


# ------------------------------------------------------------------------------------------------------------- graphs


def connect(rng: Random, operators: list[Operator], backward: float) -> Graph:
    """Adds the operators, perhaps not in their order, and feeds most inputs."""
    graph = Graph()
    order = list(range(len(operators)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    numbers: dict[int, int] = {}
    for position in order:
        it = operators[position]
        numbers[position] = graph.add_node(it.name, it.inputs, it.outputs, it.connections, it.initial)
    for position, it in enumerate(operators):
        for port, levels in enumerate(it.inputs):
            anywhere = rng.random() < backward
            choices = [
                Source(numbers[p], o)
                for p, other in enumerate(operators)
                if anywhere or (p > position if it.feedback else p < position)
                for o, have in enumerate(other.outputs)
                if have == levels
            ]
            if choices and rng.random() < 0.92:
                near = choices[-3:] if rng.random() < 0.7 else choices  # so that paths grow long, and loops close
                graph.add_edge(rng.choice(near), Target(numbers[position], port))
    return graph


def random_unfrozen(rng: Random, kind: Kind) -> Graph:
    """A graph that may well have cycles that do not advance time."""
    return connect(rng, lay_out(rng, kind, (kind.domain(),)), max(kind.backward, 0.1))


def random_graph(rng: Random, kind: Kind) -> Graph:
    """A frozen graph in which, as the oracle confirms, every cycle advances time."""
    operators = lay_out(rng, kind, (kind.domain(),))
    for attempt in range(20):
        graph = connect(rng, operators, kind.backward if attempt < 10 else 0.0)
        if not oracle.has_unadvanced_cycle(graph):
            graph.freeze()
            return graph
    return random_graph(rng, kind)


def graph_of_seed(seed: int) -> tuple[str, Graph, Random]:
    """A kind, a graph of that kind, and the generator to go on with. Replayable."""
    rng = Random(seed)
    name = list(KINDS)[seed % len(KINDS)]
    return name, random_graph(rng, KINDS[name]), rng


def random_location(rng: Random, graph: Graph) -> Location:
    """Some end of an edge."""
    return rng.choice(graph.locations)
