"""Could-result-in: the minimal path summaries say what pushing times along hops says."""

from __future__ import annotations

import pytest

from dataflow.progress import paths
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.reach import could_result_in, path_summaries
from dataflow.time.timestamp import Integers
from tests.oracles import progress as oracle
from tests.progress.graphs import graph_of_seed, random_location, random_time

BLOCK = 35


def check_summaries(seed: int) -> None:
    """From one location, at several times: the outcomes of the summaries, minimised, are what brute force reaches."""
    _, graph, rng = graph_of_seed(seed)
    start = random_location(rng, graph)
    summaries = path_summaries(graph, start)
    for _ in range(4):
        time = random_time(rng, graph.levels(start))
        reached = oracle.reach(graph, [(start, time)])
        for end in graph.locations:
            outcomes = [summary.results_in(time) for summary in summaries.get(end, ())]
            assert oracle.minimal(t for t in outcomes if t is not None) == reached[end], f"seed {seed}: {end}"
        end = random_location(rng, graph)
        later = random_time(rng, graph.levels(end))
        expected = oracle.could_result_in(graph, start, time, end, later)
        assert could_result_in(graph, start, time, end, later) == expected, f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 350, BLOCK))
def test_summaries_say_what_brute_force_says(first: int) -> None:
    for seed in range(first, first + BLOCK):
        check_summaries(seed)


@pytest.mark.parametrize("seed", range(70))
def test_summaries_are_mutually_incomparable(seed: int) -> None:
    _, graph, rng = graph_of_seed(seed)
    for found in path_summaries(graph, random_location(rng, graph)).values():
        for i, p in enumerate(found):
            assert not any(p.less_equal(q) or q.less_equal(p) for q in found[:i])


def test_a_loop_adds_nothing_to_the_first_round() -> None:
    ints = (Integers(),)
    graph = Graph()
    graph.add_node("concat", [ints, ints], [ints], {(0, 0): paths.identity(ints), (1, 0): paths.identity(ints)})
    graph.add_node("feedback", [ints], [ints], {(0, 0): paths.advance(ints, (1,))})
    graph.add_edge(Source(0, 0), Target(1, 0))
    graph.add_edge(Source(1, 0), Target(0, 1))
    graph.freeze()
    (only,) = path_summaries(graph, Source(0, 0))[Source(0, 0)]
    assert only.is_identity
    assert could_result_in(graph, Source(1, 0), 4, Target(1, 0), 4)
    assert not could_result_in(graph, Target(1, 0), 4, Target(0, 1), 4)
    assert could_result_in(graph, Target(1, 0), 4, Target(0, 1), 5)


def test_what_is_not_connected_cannot_result() -> None:
    ints = (Integers(),)
    graph = Graph()
    graph.add_node("sink and source", [ints], [ints], {})
    graph.freeze()
    assert Source(0, 0) not in path_summaries(graph, Target(0, 0))
    assert not could_result_in(graph, Target(0, 0), 0, Source(0, 0), 99)
