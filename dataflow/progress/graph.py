"""The dataflow graph as progress tracking sees it: nodes with ports, edges, and what nodes do to times.

A location is one end of an edge: `Source(node, port)` is where a node's output leaves, `Target(node, port)` where a
node's input arrives. Messages in flight are counted at targets, capabilities at sources. Times flow along edges
(unchanged) and through nodes (under the path summary of that input and output).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dataflow.errors import ConstructionError
from dataflow.progress.paths import Levels, PathSummary
from dataflow.time.timestamp import Integers


@dataclass(frozen=True, slots=True)
class Source:
    """The output `port` of `node`."""

    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Target:
    """The input `port` of `node`."""

    node: int
    port: int


Location: TypeAlias = Source | Target


@dataclass(frozen=True, slots=True)
class Node:
    """One operator, as far as progress is concerned."""

    name: str
    inputs: tuple[Levels, ...]  # the levels of time at each input
    outputs: tuple[Levels, ...]  # and at each output
    connections: Mapping[tuple[int, int], PathSummary]  # (input, output): what happens to times between them
    initial: tuple[bool, ...]  # outputs for which every worker starts with a capability at the minimum


def _show(path: PathSummary) -> str:
    """A path as two workers would both write it: without the addresses that a default `repr` has."""
    return f"({', '.join(map(_show_part, path.kept))}) ({', '.join(map(_show_part, path.fresh))})"


def _show_part(part: object) -> str:
    plain = getattr(type(part), "__repr__", None) is getattr(object, "__repr__", None)
    return type(part).__qualname__ if plain else repr(part)


class Graph:
    """Nodes and edges, added one by one; then `freeze`, after which the locations have fixed indices.

    Locations are numbered so that times flow from smaller to greater indices wherever that is possible (see
    `ordering`).
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[tuple[Source, Target]] = []
        self.locations: list[Location] = []  # by index, once frozen
        self.ranks: list[tuple[int, ...]] = []  # the propagation order's position at each level, by index, once frozen
        self.acyclic = False
        self._indices: dict[Location, int] = {}
        self._fed: set[Target] = set()
        self._frozen = False

    def add_node(
        self,
        name: str,
        inputs: Sequence[Levels],
        outputs: Sequence[Levels],
        connections: Mapping[tuple[int, int], PathSummary],
        initial: Iterable[int] = (),
    ) -> int:
        """Adds a node and returns its number. `initial` names the outputs that start with a capability."""
        self._refuse_if_frozen()
        holds = set(initial)
        if not holds <= set(range(len(outputs))):
            raise ConstructionError(f"{name}: initial capabilities {sorted(holds)} for {len(outputs)} outputs")
        for (i, o), path in connections.items():
            if not (0 <= i < len(inputs) and 0 <= o < len(outputs)):
                raise ConstructionError(f"{name}: there is no input {i} or no output {o} to connect")
            if path.entered and len(path.kept) < len(path.origin):
                raise ConstructionError(f"{name}: leaves a scope and enters one at once; use an operator for each")
            if path.origin != inputs[i] or path.target != outputs[o]:
                raise ConstructionError(f"{name}: the summary from input {i} to output {o} does not fit their scopes")
        starts = tuple(port in holds for port in range(len(outputs)))
        self.nodes.append(Node(name, tuple(inputs), tuple(outputs), dict(connections), starts))
        return len(self.nodes) - 1

    def add_edge(self, source: Source, target: Target) -> None:
        """Connects an output to an input of the same scope; an input has at most one edge."""
        self._refuse_if_frozen()
        self._require(source)
        self._require(target)
        if target in self._fed:
            raise ConstructionError(f"input {target.port} of {self.nodes[target.node].name} is connected already")
        if self.levels(source) != self.levels(target):
            raise ConstructionError(
                f"{self.nodes[source.node].name} and {self.nodes[target.node].name} are in different scopes"
            )
        self._fed.add(target)
        self.edges.append((source, target))

    def _require(self, location: Location) -> None:
        node = self.nodes[location.node] if 0 <= location.node < len(self.nodes) else None
        ports = () if node is None else node.outputs if isinstance(location, Source) else node.inputs
        if not 0 <= location.port < len(ports):
            raise ConstructionError(f"there is no {location}")

    def levels(self, location: Location) -> Levels:
        """The levels of time at a location."""
        node = self.nodes[location.node]
        return node.outputs[location.port] if isinstance(location, Source) else node.inputs[location.port]

    def name(self, location: Location) -> str:
        """How a person would call a location.

        >>> g = Graph(); g.add_node("map", [], [(Integers(),)], {})
        0
        >>> g.name(Source(0, 0))
        'output 0 of map (#0)'
        """
        side = "output" if isinstance(location, Source) else "input"
        return f"{side} {location.port} of {self.nodes[location.node].name} (#{location.node})"

    def freeze(self) -> None:
        """Numbers the locations. Refuses a cycle that does not advance time (UnadvancedCycle)."""
        from dataflow.progress.ordering import propagation_order

        self._refuse_if_frozen()
        locations: list[Location] = []
        for number, node in enumerate(self.nodes):
            locations += [Target(number, port) for port in range(len(node.inputs))]
            locations += [Source(number, port) for port in range(len(node.outputs))]
        ranks, self.acyclic = propagation_order(self, locations)
        self.locations = sorted(locations, key=ranks.__getitem__)
        self.ranks = [ranks[location] for location in self.locations]
        self._indices = {location: index for index, location in enumerate(self.locations)}
        self._frozen = True

    @property
    def frozen(self) -> bool:
        """Whether the graph is complete."""
        return self._frozen

    def index(self, location: Location) -> int:
        """The number of a location in the frozen graph."""
        return self._indices[location]

    def hops(self) -> Iterable[tuple[Location, Location, PathSummary | None]]:
        """Every way in which a time moves in one step: along an edge (None: unchanged), or through a node."""
        for source, target in self.edges:
            yield source, target, None
        for number, node in enumerate(self.nodes):
            for (i, o), path in node.connections.items():
                yield Target(number, i), Source(number, o), path

    @property
    def integers_only(self) -> bool:
        """Whether every time in the graph is a plain integer."""
        return all(
            len(levels) == 1 and type(levels[0]) is Integers
            for node in self.nodes
            for levels in node.inputs + node.outputs
        )

    def describe(self) -> tuple[str, ...]:
        """One line per node: what two workers must agree on."""
        sources = {target: source for source, target in self.edges}
        lines = []
        for number, node in enumerate(self.nodes):
            feeds = [sources.get(Target(number, port)) for port in range(len(node.inputs))]
            inputs = ", ".join("nothing" if s is None else f"#{s.node}.{s.port}" for s in feeds)
            shape = f"{len(node.outputs)} output{'s' * (len(node.outputs) != 1)}"
            depth = max((len(levels) for levels in node.inputs + node.outputs), default=1) - 1
            times = "; ".join(sorted({" x ".join(d.name for d in levels) for levels in node.inputs + node.outputs}))
            inside = ", ".join(f"{i}->{o} {_show(p)}" for (i, o), p in sorted(node.connections.items()))
            starts = [port for port, holds in enumerate(node.initial) if holds]
            lines.append(
                f"#{number} {node.name} (from {inputs or 'nothing'}; {shape}; depth {depth}; times {times}; "
                f"inside {inside or 'nothing'}; starts {starts})"
            )
        return tuple(lines)

    def digest(self) -> str:
        """A short fingerprint of `describe()`."""
        return hashlib.blake2b("\n".join(self.describe()).encode(), digest_size=16).hexdigest()

    def _refuse_if_frozen(self) -> None:
        if self.frozen:
            raise ConstructionError(
                "this dataflow is complete: add operators inside its `with worker.dataflow()` block"
            )
