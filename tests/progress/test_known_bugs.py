"""Cases that have been bugs in systems of this kind, each by name."""

from __future__ import annotations

from random import Random

import pytest

from dataflow.progress import paths
from dataflow.progress.graph import Graph, Location, Source, Target
from dataflow.progress.paths import Levels, PathSummary
from dataflow.progress.tracker import make_tracker
from dataflow.time.timestamp import Integers
from tests.progress.simulation import Capability, OwnInitialCapabilities, Simulation, Unsafe, Worker

ROOT: Levels = (Integers(),)
ROUND = Integers()
INNER: Levels = (*ROOT, ROUND)

INPUT, MIDDLE, SINK = 0, 1, 2


def pipeline() -> Graph:
    """input -> middle -> sink"""
    graph = Graph()
    graph.add_node("input", [], [ROOT], {}, [0])
    graph.add_node("middle", [ROOT], [ROOT], {(0, 0): paths.identity(ROOT)})
    graph.add_node("sink", [ROOT], [], {})
    graph.add_edge(Source(INPUT, 0), Target(MIDDLE, 0))
    graph.add_edge(Source(MIDDLE, 0), Target(SINK, 0))
    graph.freeze()
    return graph


def simulate(graph: Graph, peers: int) -> tuple[Simulation, list[Worker]]:
    simulation = Simulation(graph, peers, Random(0))
    return simulation, simulation.workers


def initial(worker: Worker) -> Capability:
    (capability,) = worker.capabilities
    return capability


def say(simulation: Simulation, sender: Worker, *hearers: Worker) -> None:
    """The sender flushes; these hear it now, the others have it in their queues."""
    simulation.flush(sender)
    for hearer in hearers:
        simulation.deliver(hearer, [sender.number])


def sees(worker: Worker, location: Location) -> set[object]:
    return set(worker.view[location])


# ------------------------------------------------------ capabilities made from the input frontier, removals in flight


def frontier_that_is_gone() -> tuple[Simulation, list[Worker]]:
    """Time 0 is over, and worker 1 knows it; worker 0 still sees 0 in its frontier, for it has not heard."""
    simulation, workers = simulate(pipeline(), 2)
    for worker in workers:
        simulation.downgrade(worker, initial(worker), 5)
        say(simulation, worker, workers[1])
    assert sees(workers[0], Target(MIDDLE, 0)) == {0}
    assert sees(workers[1], Target(MIDDLE, 0)) == {5}
    return simulation, workers


def test_a_capability_from_the_input_frontier_would_be_unsafe() -> None:
    """That a time is in a worker's frontier does not mean that it still exists: worker 1 has already gone past it."""
    simulation, workers = frontier_that_is_gone()
    (stale,) = sees(workers[0], Target(MIDDLE, 0))
    simulation.make(workers[0], Source(MIDDLE, 0), stale)
    with pytest.raises(Unsafe, match="worker 1 sees the frontier"):
        simulation.check_safety(workers)


def test_a_capability_from_a_message_is_safe_in_the_same_place() -> None:
    simulation, workers = simulate(pipeline(), 2)
    simulation.send(workers[1], Source(INPUT, 0), 0, to=[0])
    for worker in workers:
        simulation.downgrade(worker, initial(worker), 5)
        say(simulation, worker, workers[1])
    (message,) = workers[0].arrived
    for source, time in simulation.take(workers[0], message):
        simulation.make(workers[0], source, time)
    simulation.check_safety(workers)
    say(simulation, workers[0], *workers)  # worker 0 hears its own -1 before worker 1's +1
    assert sees(workers[1], Target(SINK, 0)) == {0}
    simulation.finish()
    simulation.check_liveness()


def test_a_removal_heard_before_its_creation_shows_nothing_in_between() -> None:
    """Worker 2 hears that a message was taken, then that it was sent: a negative count holds and frees nothing."""
    simulation, workers = simulate(pipeline(), 3)
    simulation.send(workers[0], Source(INPUT, 0), 3, to=[1])
    simulation.take(workers[1], workers[1].arrived[0])
    say(simulation, workers[1], workers[2])
    assert -1 in workers[2].tracker.pointstamps().values()
    assert sees(workers[2], Target(MIDDLE, 0)) == {0}
    say(simulation, workers[0], workers[2])
    assert -1 not in workers[2].tracker.pointstamps().values()
    simulation.finish()
    simulation.check_liveness()


# -------------------------------------------------------------------------------------- an empty frontier at start-up


@pytest.mark.parametrize("peers", [1, 2, 4])
def test_no_frontier_is_empty_at_start_up(peers: int) -> None:
    _, workers = simulate(pipeline(), peers)
    for worker in workers:
        assert all(frontier == (0,) for frontier in worker.view.values())
        assert not worker.tracker.complete


def test_a_worker_that_ends_at_once_does_not_empty_anybodys_frontier() -> None:
    """Worker 0 closes its input before it hears anything: worker 1 holds time 0, and all views know."""
    simulation, workers = simulate(pipeline(), 2)
    simulation.drop(workers[0], initial(workers[0]))
    say(simulation, workers[0], *workers)
    for worker in workers:
        assert sees(worker, Target(SINK, 0)) == {0}


def test_counting_only_ones_own_initial_capabilities_shows_an_empty_frontier() -> None:
    """What would happen otherwise."""
    simulation = OwnInitialCapabilities(pipeline(), 2, Random(0))
    first = simulation.workers[0]
    simulation.drop(first, initial(first))
    simulation.flush(first)
    simulation.channels[0, 1].popleft()  # the announcement is still on its way; the drop has come home
    with pytest.raises(Unsafe, match=r"sees the frontier \(\)"):
        simulation.deliver(first, [0])


# ------------------------------------------------------------------------------------- an operator that emits nothing


def test_an_operator_that_consumes_and_emits_nothing_moves_the_frontier() -> None:
    simulation, (worker,) = simulate(pipeline(), 1)
    simulation.send(worker, Source(INPUT, 0), 0, to=[0])
    simulation.downgrade(worker, initial(worker), 1)
    say(simulation, worker, worker)
    assert sees(worker, Target(SINK, 0)) == {0}  # held by the message, and by nothing else
    simulation.take(worker, worker.arrived[0])
    simulation.check_safety([worker])
    say(simulation, worker, worker)
    assert sees(worker, Target(SINK, 0)) == {1}


def test_the_sink_moves_its_own_frontier_too() -> None:
    simulation, (worker,) = simulate(pipeline(), 1)
    simulation.send(worker, Source(INPUT, 0), 0, to=[0])
    simulation.drop(worker, initial(worker))
    (message,) = worker.arrived
    simulation.take(worker, message)
    say(simulation, worker, worker)
    assert sees(worker, Target(SINK, 0)) == set()
    assert worker.tracker.complete


# --------------------------------------------------------------------------- dropped in the step in which it was used


@pytest.mark.parametrize("peers", [1, 2])
def test_a_capability_dropped_in_the_step_in_which_its_message_is_sent(peers: int) -> None:
    """The +1 of the message and the -1 of the capability are one batch: at no moment is neither there."""
    simulation, workers = simulate(pipeline(), peers)
    for worker in workers:
        simulation.send(worker, Source(INPUT, 0), 0, to=[peers - 1])
        simulation.drop(worker, initial(worker))
        simulation.check_safety(workers)
    for worker in workers:
        say(simulation, worker, *workers)
    for worker in workers:
        assert sees(worker, Source(INPUT, 0)) == set()
        assert sees(worker, Target(MIDDLE, 0)) == {0}
    simulation.finish()
    simulation.check_liveness()


def test_a_message_taken_in_the_batch_in_which_it_is_sent_leaves_no_trace() -> None:
    """Sent, passed on and taken within one step: only the input's own advance has to be said."""
    simulation, (worker,) = simulate(pipeline(), 1)
    simulation.send(worker, Source(INPUT, 0), 0, to=[0])
    for source, time in simulation.take(worker, worker.arrived[0]):
        simulation.send(worker, source, time, to=[0])
    simulation.take(worker, worker.arrived[0])
    simulation.downgrade(worker, initial(worker), 1)
    batch = worker.outbox.flush()
    assert batch is not None
    here = simulation.graph.index(Source(INPUT, 0))
    assert sorted(batch.changes) == [((here, 0), -1), ((here, 1), +1)]


# -------------------------------------------------------------------------------------- loops that never receive data


def loop(body: Levels, step: PathSummary) -> Graph:
    """input -> (enter ->) concat -> feedback -> concat"""
    graph = Graph()
    source = graph.add_node("input", [], [ROOT], {}, [0])
    if body is not ROOT:
        enter = graph.add_node("enter", [ROOT], [body], {(0, 0): paths.enter(ROOT, ROUND)})
        graph.add_edge(Source(source, 0), Target(enter, 0))
        source = enter
    same = paths.identity(body)
    concat = graph.add_node("concat", [body, body], [body], {(0, 0): same, (1, 0): same})
    feedback = graph.add_node("feedback", [body], [body], {(0, 0): step})
    graph.add_edge(Source(source, 0), Target(concat, 0))
    graph.add_edge(Source(concat, 0), Target(feedback, 0))
    graph.add_edge(Source(feedback, 0), Target(concat, 1))
    graph.freeze()
    return graph


LOOPS = {
    "at the root": (ROOT, paths.advance(ROOT, (1,))),
    "nested": (INNER, paths.advance(INNER, (0, 1))),
}


@pytest.mark.parametrize("where", LOOPS)
@pytest.mark.parametrize("peers", [1, 3])
def test_a_loop_that_never_receives_data_terminates(where: str, peers: int) -> None:
    """What holds the loop is the input alone: the loop must not hold itself, one round after another."""
    simulation, workers = simulate(loop(*LOOPS[where]), peers)
    for worker in workers:
        assert all(worker.view.values())
        simulation.drop(worker, initial(worker))
        say(simulation, worker, *workers)
    simulation.check_liveness()


@pytest.mark.parametrize("where", LOOPS)
def test_a_loop_moves_on_with_its_input(where: str) -> None:
    """The input goes from 0 to a million: the loop must not count there."""
    graph = loop(*LOOPS[where])
    tracker = make_tracker(graph, 1)
    here = graph.index(Source(0, 0))
    tracker.propagate([((here, 0), -1), ((here, 1_000_000), +1)])
    at_feedback = graph.index(Source(len(graph.nodes) - 1, 0))
    expected = {1_000_001} if where == "at the root" else {(1_000_000, 1)}
    assert set(tracker.frontier(at_feedback)) == expected


def test_a_message_in_a_loop_holds_it_until_it_is_taken() -> None:
    simulation, (worker,) = simulate(loop(*LOOPS["nested"]), 1)
    graph = simulation.graph
    feedback = len(graph.nodes) - 1
    simulation.send(worker, Source(0, 0), 0, to=[0])
    simulation.drop(worker, initial(worker))
    for hop in range(6):  # enter, concat, feedback, concat, feedback, concat
        for source, time in simulation.take(worker, worker.arrived[0]):
            simulation.send(worker, source, time, to=[0])
        say(simulation, worker, worker)
        assert not worker.tracker.complete, f"after {hop + 1} hops"
    assert sees(worker, Target(feedback, 0)) == {(0, 2)}
    simulation.take(worker, worker.arrived[0])  # the loop swallows it
    say(simulation, worker, worker)
    simulation.check_liveness()
