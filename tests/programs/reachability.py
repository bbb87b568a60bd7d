"""Which nodes can be reached from the roots, while edges and roots keep arriving: a node comes out once, at the first
epoch in which it can be reached.

What is known accumulates over epochs, so an epoch must be complete before the next is sent. That makes this a test of
progress: a probe that passes an epoch too early gives nodes to the wrong epoch.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import dataflow
from dataflow.lowlevel import Context, Exchange, InputPort, OutputPort
from tests.oracles import graphs
from tests.programs.running import CLOSED, Epochs, Run, feed, gathered, random_edge, random_epochs, require_same


def first_seen(context: Context) -> Any:
    """Passes each node on once, ever."""
    seen: set[int] = set()

    def step(nodes: InputPort, output: OutputPort) -> None:
        for message, batch in nodes:
            new = set(batch) - seen
            seen.update(new)
            output.give(message, sorted(new))

    return step


def expand(context: Context) -> Any:
    """The far ends of edges whose near ends are known, whichever of the two arrives first."""
    ends: dict[int, list[int]] = defaultdict(list)
    known: set[int] = set()

    def step(edges: InputPort, nodes: InputPort, output: OutputPort) -> None:
        for message, batch in edges:
            for near, far in batch:
                ends[near].append(far)
            output.give(message, [far for near, far in batch if near in known])
        for message, batch in nodes:
            known.update(batch)
            output.give(message, [far for near in batch for far in ends[near]])

    return step


def reachable(edges: dataflow.Stream[Any], roots: dataflow.Stream[Any]) -> dataflow.Stream[Any]:
    """Every node that can be reached from the roots, once."""

    def body(nodes: dataflow.Stream[Any]) -> Any:
        new = nodes.unary("first seen", first_seen, pact=Exchange(lambda node: node))
        by_end = (Exchange(lambda edge: edge[0]), Exchange(lambda node: node))
        return edges.enter(nodes.scope).binary(new, "expand", expand, pacts=by_end), new

    return roots.iterate(body)


async def main(worker: dataflow.Worker, edges: Epochs, roots: Epochs) -> list[Any]:
    """Returns (epoch, node) for each node that was reached on this worker."""
    found: list[Any] = []
    with worker.dataflow("reachability") as scope:
        edge_input, edge_stream = scope.input("edges")
        root_input, root_stream = scope.input("roots")
        reached = reachable(edge_stream, root_stream)
        probe = reached.inspect(lambda time, node: found.append((time, node))).probe()
    await feed(worker, CLOSED, probe, (edge_input, edges), (root_input, roots))
    return found


def check(run: Run, chance: Random) -> None:
    """Random edges among few nodes, so that long paths and cycles are frequent."""
    nodes = chance.randint(2, 12)
    edges = random_epochs(chance, random_edge(nodes))
    roots = random_epochs(chance, lambda chance: chance.randrange(nodes), size=2)
    require_same(gathered(run(main, edges, roots)), graphs.newly_reachable(edges, roots))
