"""Both trackers against brute force: random graphs, random batches of changes, negative counts included."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from dataflow.progress import paths
from dataflow.progress.graph import Graph, Location, Source, Target
from dataflow.progress.tracker import (
    AcyclicTracker,
    Change,
    CyclicTracker,
    Tracker,
    initial_capabilities,
    make_tracker,
)
from dataflow.time.timestamp import Checked, Integers
from tests.oracles import progress as oracle
from tests.progress.graphs import KINDS, graph_of_seed, later_time, random_graph, random_location, random_time

Counts = Counter[tuple[Location, Any]]
BLOCK = 35


def arbitrary_batch(rng: Random, graph: Graph, counts: Counts) -> Counts:
    """Anything at all: counts go below zero, and a batch may cancel itself."""
    batch: Counts = Counter()
    for _ in range(rng.randint(1, 6)):
        if counts and rng.random() < 0.5:  # something that is there, so that things go away as well
            pointstamp = rng.choice(list(counts))
            batch[pointstamp] -= rng.choice((counts[pointstamp], 1))
        else:
            location = random_location(rng, graph)
            batch[location, random_time(rng, graph.levels(location))] += rng.choice((1, 1, 2, -1, -2))
    return batch


def forward_batch(rng: Random, graph: Graph, counts: Counts) -> Counts:
    """What dataflows do: a pointstamp goes away, and leaves others at or after what it could result in."""
    batch: Counts = Counter()
    present = [pointstamp for pointstamp, count in counts.items() if count > 0]
    for location, time in rng.sample(present, min(len(present), rng.randint(1, 4))):
        batch[location, time] -= 1
        reached = [(there, t) for there, times in oracle.reach(graph, [(location, time)]).items() for t in times]
        for there, t in rng.sample(reached, min(len(reached), rng.randint(0, 2))):
            batch[there, later_time(rng, t)] += 1
    return batch


def as_changes(rng: Random, graph: Graph, batch: Counts) -> list[Change]:
    """The batch as the tracker takes it: in any order, one pointstamp perhaps in several parts."""
    changes: list[Change] = []
    for (location, time), diff in batch.items():
        part = rng.choice((0, 0, 1, -1))
        changes.append(((graph.index(location), time), diff - part))
        if part:
            changes.append(((graph.index(location), time), part))
    rng.shuffle(changes)
    return changes


def seen_frontiers(tracker: Tracker) -> dict[Location, set[Any]]:
    return {location: set(tracker.frontier(i)) for i, location in enumerate(tracker.graph.locations)}


class Judge:
    """Applies batches to a tracker and compares everything that it says with brute force."""

    def __init__(self, tracker: Tracker, counts: Counts) -> None:
        self.tracker = tracker
        self.counts = counts
        self.expected = oracle.frontiers(tracker.graph, counts)
        assert seen_frontiers(tracker) == self.expected

    def propagate(self, rng: Random, batch: Counts) -> None:
        graph = self.tracker.graph
        changed = self.tracker.propagate(as_changes(rng, graph, batch))
        for pointstamp, diff in batch.items():
            self.counts[pointstamp] += diff
        self.counts = Counter({pointstamp: n for pointstamp, n in self.counts.items() if n})
        expected = oracle.frontiers(graph, self.counts)
        assert seen_frontiers(self.tracker) == expected
        assert len(changed) == len(set(changed))
        assert set(changed) == {graph.index(there) for there in expected if expected[there] != self.expected[there]}
        self.expected = expected
        self._check_the_rest(rng)

    def _check_the_rest(self, rng: Random) -> None:
        graph = self.tracker.graph
        self.tracker._check()  # type: ignore[attr-defined]
        assert self.tracker.complete == (not self.counts)
        assert self.tracker.pointstamps() == {(graph.index(there), t): n for (there, t), n in self.counts.items()}
        location = random_location(rng, graph)
        time = random_time(rng, graph.levels(location))
        sees = any(oracle.before(t, time) for t in self.expected[location])
        assert self.tracker.could_see(graph.index(location), time) == sees

    def end(self, rng: Random) -> None:
        """Everything is taken back, in two batches."""
        half = dict(rng.sample(list(self.counts.items()), len(self.counts) // 2))
        self.propagate(rng, Counter({pointstamp: -n for pointstamp, n in half.items()}))
        self.propagate(rng, Counter({pointstamp: -n for pointstamp, n in self.counts.items()}))
        assert self.tracker.complete
        assert not any(seen_frontiers(self.tracker).values())


def initial_counts(graph: Graph, peers: int) -> Counts:
    counts: Counts = Counter()
    for number, node in enumerate(graph.nodes):
        for port, starts in enumerate(node.initial):
            if starts:
                least = tuple(domain.minimum for domain in node.outputs[port])
                counts[Source(number, port), least if len(least) > 1 else least[0]] = peers
    return counts


def run_case(seed: int, batches: int = 10) -> None:
    """One random graph; arbitrary batches for some seeds, those of a real dataflow for the others."""
    _, graph, rng = graph_of_seed(seed)
    peers = rng.randint(1, 3)
    judge = Judge(make_tracker(graph, peers), initial_counts(graph, peers))
    make_batch = rng.choice((arbitrary_batch, forward_batch))
    for _ in range(batches):
        judge.propagate(rng, make_batch(rng, graph, judge.counts))
    judge.end(rng)


@pytest.mark.parametrize("first", range(0, 700, BLOCK))
def test_frontiers_are_those_of_brute_force(first: int) -> None:
    for seed in range(first, first + BLOCK):
        try:
            run_case(seed)
        except Exception as error:
            error.add_note(f"replay with: tests.progress.test_tracker.run_case({seed})")
            raise


@pytest.mark.parametrize("seed", range(100))
def test_both_trackers_agree_on_acyclic_graphs_of_integers(seed: int) -> None:
    rng = Random(seed)
    graph = random_graph(rng, KINDS["integers, acyclic"])
    trackers = (AcyclicTracker(graph), CyclicTracker(graph))
    counts: Counts = Counter()
    for _ in range(12):
        batch = arbitrary_batch(rng, graph, counts)
        counts.update(batch)
        counts = Counter({pointstamp: n for pointstamp, n in counts.items() if n})
        changes = as_changes(rng, graph, batch)
        fast, general = (tracker.propagate(changes) for tracker in trackers)
        assert sorted(fast) == sorted(general)
        assert seen_frontiers(trackers[0]) == seen_frontiers(trackers[1])
        assert trackers[0].pointstamps() == trackers[1].pointstamps()
        assert trackers[0].complete == trackers[1].complete


class CountingTracker(CyclicTracker):
    """Notes what is put on the worklist: each time that happens, a key is asked for."""

    def __init__(self, graph: Graph) -> None:
        self.queued: Counts = Counter()
        super().__init__(graph)

    def _key(self, here: int, time: Any) -> tuple[Any, ...]:
        self.queued[self.graph.locations[here], time] += 1
        return super()._key(here, time)


@pytest.mark.parametrize("first", range(0, 210, BLOCK))
def test_no_pointstamp_is_processed_twice_in_a_batch(first: int) -> None:
    """The promise on which the stated cost rests: hops increase the key, so all is known when a key is reached."""
    for seed in range(first, first + BLOCK):
        _, graph, rng = graph_of_seed(seed)
        tracker = CountingTracker(graph)
        counts: Counts = Counter()
        for _ in range(8):
            batch = arbitrary_batch(rng, graph, counts)
            counts.update(batch)
            tracker.queued.clear()
            tracker.propagate(as_changes(rng, graph, batch))
            assert max(tracker.queued.values(), default=0) <= 1, f"seed {seed}"


def test_the_random_cases_have_what_they_are_for() -> None:
    """Loops, nesting, several kinds of frontiers: or the cases above prove little."""
    graphs = [graph_of_seed(seed)[:2] for seed in range(140)]
    assert {name for name, _ in graphs} == set(KINDS)
    assert sum(not graph.acyclic for _, graph in graphs) > 40
    assert max(len(graph.levels(location)) for _, graph in graphs for location in graph.locations) == 3
    shapes = {(len(node.inputs), len(node.outputs)) for _, graph in graphs for node in graph.nodes}
    assert {i for i, _ in shapes} == {o for _, o in shapes} == {0, 1, 2, 3}


# ------------------------------------------------------------------------------------------------------------ by name


def line(*increments: int) -> Graph:
    """A source and then one operator after the other."""
    ints = (Integers(),)
    graph = Graph()
    graph.add_node("source", [], [ints], {}, [0])
    for number, increment in enumerate(increments):
        graph.add_node(f"step{number}", [ints], [ints], {(0, 0): paths.advance(ints, (increment,))})
        graph.add_edge(Source(number, 0), Target(number + 1, 0))
    graph.freeze()
    return graph


def test_the_fast_tracker_is_for_acyclic_integers_only() -> None:
    assert isinstance(make_tracker(line(0, 1), 1), AcyclicTracker)
    ints = (Checked(Integers()),)
    graph = Graph()
    graph.add_node("source", [], [ints], {}, [0])
    graph.freeze()
    assert isinstance(make_tracker(graph, 1), CyclicTracker)


def test_operators_added_in_any_order_are_fine() -> None:
    """An operator with an increment may be added before what feeds it: a feedback that closes no loop is one."""
    ints = (Integers(),)
    graph = Graph()
    graph.add_node("later", [ints], [ints], {(0, 0): paths.advance(ints, (1,))})
    graph.add_node("source", [], [ints], {}, [0])
    graph.add_edge(Source(1, 0), Target(0, 0))
    graph.freeze()
    tracker = make_tracker(graph, 1)
    assert set(tracker.frontier(graph.index(Source(0, 0)))) == {1}


def test_initial_capabilities_count_for_all_workers() -> None:
    graph = line(0, 2)
    assert initial_capabilities(graph, 3) == [((graph.index(Source(0, 0)), 0), 3)]
    tracker = make_tracker(graph, 3)
    assert set(tracker.frontier(graph.index(Source(2, 0)))) == {2}


@pytest.mark.parametrize("kind", [AcyclicTracker, CyclicTracker])
def test_a_batch_that_changes_nothing_says_nothing(kind: type[Tracker]) -> None:
    graph = line(0)
    tracker = kind(graph)
    here = graph.index(Source(0, 0))
    assert tracker.propagate([]) == []
    assert tracker.propagate([((here, 3), 1), ((here, 3), -1)]) == []
    assert tracker.complete
    tracker.propagate([((here, 3), 1)])
    assert tracker.propagate([((here, 3), 1), ((here, 5), 1)]) == []  # nothing is earlier than before
    assert tracker.propagate([((here, 2), -1)]) == []  # a removal heard early is not a time


@pytest.mark.parametrize("kind", [AcyclicTracker, CyclicTracker])
def test_negative_counts_keep_a_tracker_from_being_complete(kind: type[Tracker]) -> None:
    graph = line(0)
    tracker = kind(graph)
    tracker.propagate([((0, 3), -1)])
    assert not tracker.complete
    tracker.propagate([((0, 3), +1)])
    assert tracker.complete


@pytest.mark.parametrize("kind", [AcyclicTracker, CyclicTracker])
def test_a_frontier_handed_out_is_a_snapshot(kind: type[Tracker]) -> None:
    graph = line(0)
    tracker = kind(graph)
    tracker.propagate([((0, 3), 1)])
    before = tracker.frontier(0)
    tracker.propagate([((0, 3), -1), ((0, 9), 1)])
    assert set(before) == {3}
    assert set(tracker.frontier(0)) == {9}
