"""Connected components: every node takes the least label among its neighbours', until none changes.

The labels are kept in a generic unary operator across iterations. Nothing waits for a round to be complete: labels
overtake each other, and the answer is the same. The graphs of different epochs are separate.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import dataflow
from dataflow.lowlevel import Context, Exchange, InputPort, OutputPort
from tests.oracles import graphs
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_edge, random_epochs, require_same

# Records are (EDGE, node, neighbour), (LABEL, node, label that it is offered) and (BETTER, node, label that it took).
EDGE, LABEL, BETTER = "edge", "label", "better"


def both_ways(edge: tuple[int, int]) -> list[tuple[str, int, int]]:
    """An edge as each of its ends sees it; at first a node offers itself its own name."""
    a, b = edge
    return [(EDGE, a, b), (EDGE, b, a), (LABEL, a, a), (LABEL, b, b)]


def propagate(context: Context) -> Any:
    """Takes better labels, and offers them to the neighbours."""
    neighbours: dict[tuple[int, int], list[int]] = defaultdict(list)  # by (epoch, node)
    labels: dict[tuple[int, int], int] = {}  # likewise

    def learn(epoch: int, kind: str, node: int, value: int) -> list[Any]:
        key = (epoch, node)
        if kind == EDGE:
            neighbours[key].append(value)
            return [(LABEL, value, labels[key])] if key in labels else []
        if value >= labels.get(key, value + 1):
            return []
        labels[key] = value
        return [(BETTER, node, value), *((LABEL, other, value) for other in neighbours[key])]

    def step(input: InputPort, output: OutputPort) -> None:
        for message, batch in input:
            output.give(message, [made for record in batch for made in learn(message.time[0], *record)])

    return step


def components(edges: dataflow.Stream[Any]) -> dataflow.Stream[Any]:
    """(node, least node of its component) for each node of each epoch."""

    def body(records: dataflow.Stream[Any]) -> Any:
        made = records.unary("propagate", propagate, pact=Exchange(lambda record: record[1]))
        return made.branch(lambda record: record[0] == LABEL)

    better = edges.flat_map(both_ways).iterate(body)
    return better.reduce(lambda record: record[1], lambda node, taken: [(node, min(label for _, _, label in taken))])


async def main(worker: dataflow.Worker, pace: str, edges: Epochs) -> list[Any]:
    """Returns (epoch, (node, label)) for each node whose last label came out on this worker."""
    found: list[Any] = []
    with worker.dataflow("components") as scope:
        edge_input, edge_stream = scope.input("edges")
        labelled = components(edge_stream)
        probe = labelled.inspect(lambda time, label: found.append((time, label))).probe()
    await feed(worker, pace, probe, (edge_input, edges))
    return found


def check(run: Run, chance: Random) -> None:
    """About as many edges as nodes: several components, some of them long."""
    nodes = chance.randint(2, 14)
    edges = random_epochs(chance, random_edge(nodes), epochs=3)
    require_same(gathered(run(main, chance.choice(PACES), edges)), graphs.components(edges))
