"""Breadth-first search in rounds: how far each node is from the nearest root, in a graph of its own for each epoch.

A round of the loop is a distance. A node's distance is right only if no candidate of an earlier round can come any
more, which is what the operator asks its notificator. Several epochs go round the loop at once.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import dataflow
from dataflow.lowlevel import Context, Exchange, InputPort, OutputPort
from tests.oracles import graphs
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_edge, random_epochs, require_same


def visit(context: Context) -> Any:
    """(node, distance, ends of its edges) for each candidate that no earlier round had."""
    ends: dict[tuple[int, int], list[int]] = defaultdict(list)  # by (epoch, node)
    seen: set[tuple[int, int]] = set()
    candidates: dict[Any, set[int]] = defaultdict(set)  # by time
    due = context.notificator()

    def step(edges: InputPort, nodes: InputPort, output: OutputPort) -> None:
        for message, batch in edges:
            for near, far in batch:
                ends[message.time[0], near].append(far)
        for message, batch in nodes:
            candidates[message.time].update(batch)
            due.notify_at(message.retain())
        for capability in due:
            epoch, distance = capability.time
            new = [node for node in candidates.pop(capability.time) if (epoch, node) not in seen]
            seen.update((epoch, node) for node in new)
            output.give(capability, [(node, distance, ends[epoch, node]) for node in new])

    return step


def distances(edges: dataflow.Stream[Any], roots: dataflow.Stream[Any]) -> dataflow.Stream[Any]:
    """(node, distance) for each node that can be reached from the roots of its epoch."""

    def body(nodes: dataflow.Stream[Any]) -> Any:
        by_node = (Exchange(lambda edge: edge[0]), Exchange(lambda node: node))
        visited = edges.enter(nodes.scope).binary(nodes, "visit", visit, pacts=by_node, frontier=True)
        return visited.flat_map(lambda visit: visit[2]), visited.map(lambda visit: visit[:2])

    return roots.iterate(body)


async def main(worker: dataflow.Worker, pace: str, edges: Epochs, roots: Epochs) -> list[Any]:
    """Returns (epoch, (node, distance)) for each node that was visited on this worker."""
    found: list[Any] = []
    with worker.dataflow("breadth first") as scope:
        edge_input, edge_stream = scope.input("edges")
        root_input, root_stream = scope.input("roots")
        visited = distances(edge_stream, root_stream)
        probe = visited.inspect(lambda time, visit: found.append((time, visit))).probe()
    await feed(worker, pace, probe, (edge_input, edges), (root_input, roots))
    return found


def check(run: Run, chance: Random) -> None:
    """Random edges among few nodes, so that long paths and cycles are frequent."""
    nodes = chance.randint(2, 10)
    edges = random_epochs(chance, random_edge(nodes))
    roots = random_epochs(chance, lambda chance: chance.randrange(nodes), size=2)
    require_same(gathered(run(main, chance.choice(PACES), edges, roots)), graphs.distances(edges, roots))
