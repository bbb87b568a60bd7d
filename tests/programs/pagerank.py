"""PageRank for a fixed number of rounds, in fractions, so that the answer is exact and so is the comparison.

Each worker holds a capability for every epoch that it takes part in and moves it from round to round, with or without
contributions from others: a node that nobody links to has a rank as well.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from random import Random
from typing import Any

import dataflow
from dataflow.lowlevel import Context, Exchange, InputPort, OutputPort
from tests.oracles import graphs
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_edge, random_epochs, require_same


def rank(rounds: int) -> Any:
    """(node, round, rank, what it links to) for every node in every round, once the round before is complete."""

    def make(context: Context) -> Any:
        links: dict[int, dict[int, list[int]]] = defaultdict(dict)  # by epoch, by node
        sums: dict[Any, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))  # by time, by node
        due = context.notificator()

        def ranks_at(epoch: int, round: int) -> list[Any]:
            given = sums.pop((epoch, round), {})
            half = Fraction(1, 2)
            ranks = {n: half + half * given.get(n, 0) if round else Fraction(1) for n in links[epoch]}
            return [(node, round, ranks[node], ends) for node, ends in links[epoch].items()]

        def step(edges: InputPort, contributions: InputPort, output: OutputPort) -> None:
            for message, batch in edges:
                due.notify_at(message.retain())
                for near, far in batch:
                    links[message.time[0]].setdefault(near, []).extend([] if far is None else [far])
            for message, batch in contributions:
                for node, amount in batch:
                    sums[message.time][node] += amount
            for capability in due:
                epoch, round = capability.time
                output.give(capability, ranks_at(epoch, round))
                if round < rounds:
                    due.notify_at(capability.delayed((epoch, round + 1)))
                else:
                    del links[epoch]

        return step

    return make


def spread(ranked: tuple[int, int, Fraction, list[int]]) -> list[tuple[int, Fraction]]:
    """What a node gives to those it links to; one that links to nothing keeps its rank."""
    node, _, amount, ends = ranked
    ends = ends or [node]
    return [(end, amount / len(ends)) for end in ends]


def pagerank(edges: dataflow.Stream[Any], rounds: int) -> dataflow.Stream[Any]:
    """(node, rank) after so many rounds."""
    links = edges.flat_map(lambda edge: [edge, (edge[1], None)])  # so that every node is known where it belongs
    nothing = edges.filter(lambda edge: False)

    def body(contributions: dataflow.Stream[Any]) -> Any:
        by_node = (Exchange(lambda link: link[0]), Exchange(lambda contribution: contribution[0]))
        entered = links.enter(contributions.scope)
        ranked = entered.binary(contributions, "rank", rank(rounds), pacts=by_node, frontier=True)
        again = ranked.filter(lambda ranked: ranked[1] < rounds).flat_map(spread)
        return again, ranked.filter(lambda ranked: ranked[1] == rounds).map(lambda ranked: (ranked[0], ranked[2]))

    return nothing.iterate(body)


async def main(worker: dataflow.Worker, pace: str, rounds: int, edges: Epochs) -> list[Any]:
    """Returns (epoch, (node, rank)) for each node that this worker ranked."""
    found: list[Any] = []
    with worker.dataflow("pagerank") as scope:
        edge_input, edge_stream = scope.input("edges")
        ranked = pagerank(edge_stream, rounds)
        probe = ranked.inspect(lambda time, rank: found.append((time, rank))).probe()
    await feed(worker, pace, probe, (edge_input, edges))
    return found


def check(run: Run, chance: Random) -> None:
    """A few rounds only: the denominators grow fast."""
    nodes, rounds = chance.randint(2, 7), chance.randint(0, 4)
    edges = random_epochs(chance, random_edge(nodes), epochs=3, size=14)
    require_same(gathered(run(main, chance.choice(PACES), rounds, edges)), graphs.pagerank(edges, rounds))
