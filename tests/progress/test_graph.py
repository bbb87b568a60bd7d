"""The graph: which ones are refused, and by which name; what workers compare."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from dataflow.errors import ConstructionError, UnadvancedCycle
from dataflow.progress import paths
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.paths import Levels, PathSummary
from dataflow.time.timestamp import Integers, UserDomain
from tests.oracles import progress as oracle
from tests.progress.graphs import KINDS, graph_of_seed, random_unfrozen
from tests.progress.pairs import Pair

ROOT: Levels = (Integers(),)
ROUND = Integers()
INNER: Levels = (*ROOT, ROUND)
DEEP: Levels = (*INNER, Integers())


def bridge(graph: Graph, name: str, path: PathSummary) -> int:
    return graph.add_node(name, [path.origin], [path.target], {(0, 0): path})


def concat(graph: Graph, name: str, levels: Levels) -> int:
    same = paths.identity(levels)
    return graph.add_node(name, [levels, levels], [levels], {(0, 0): same, (1, 0): same})


def chain(graph: Graph, *nodes: int) -> None:
    """From each to the next, through their last inputs, so that the first inputs stay free for others."""
    for a, b in pairwise(nodes):
        graph.add_edge(Source(a, 0), Target(b, len(graph.nodes[b].inputs) - 1))


def named(number: int, name: str) -> str:
    return f"{name} (#{number})"


# -------------------------------------------------------------------------------------------- cycles that are refused


def test_a_cycle_at_the_root_is_refused_by_name() -> None:
    graph = Graph()
    nodes = [bridge(graph, name, paths.identity(ROOT)) for name in ("map", "filter", "inspect")]
    chain(graph, *nodes, nodes[0])
    with pytest.raises(UnadvancedCycle) as refusal:
        graph.freeze()
    assert set(refusal.value.names) == {"map (#0)", "filter (#1)", "inspect (#2)"}
    assert "feedback" in str(refusal.value)  # says what to do instead


def test_the_names_are_in_the_order_of_the_cycle() -> None:
    graph = Graph()
    nodes = [bridge(graph, name, paths.identity(ROOT)) for name in "abcd"]
    chain(graph, nodes[0], nodes[2], nodes[1], nodes[3], nodes[0])
    with pytest.raises(UnadvancedCycle) as refusal:
        graph.freeze()
    names = refusal.value.names
    start = names.index("a (#0)")
    assert names[start:] + names[:start] == ("a (#0)", "c (#2)", "b (#1)", "d (#3)")


def test_operators_beside_the_cycle_are_not_named() -> None:
    graph = Graph()
    before, a, b, after = (bridge(graph, name, paths.identity(ROOT)) for name in ("before", "a", "b", "after"))
    merge = concat(graph, "merge", ROOT)
    graph.add_edge(Source(before, 0), Target(merge, 0))
    chain(graph, merge, a, b, merge)
    graph.add_edge(Source(b, 0), Target(after, 0))
    with pytest.raises(UnadvancedCycle) as refusal:
        graph.freeze()
    assert set(refusal.value.names) == {named(merge, "merge"), named(a, "a"), named(b, "b")}


def test_an_operator_connected_to_itself_is_refused() -> None:
    graph = Graph()
    node = bridge(graph, "echo", paths.identity(ROOT))
    chain(graph, node, node)
    with pytest.raises(UnadvancedCycle, match=r"echo \(#0\) -> echo \(#0\)"):
        graph.freeze()


def test_an_increment_of_zero_does_not_advance() -> None:
    graph = Graph()
    loop = [bridge(graph, "map", paths.identity(ROOT)), bridge(graph, "feedback", paths.advance(ROOT, (0,)))]
    chain(graph, *loop, loop[0])
    with pytest.raises(UnadvancedCycle, match="map"):
        graph.freeze()


def test_an_inner_feedback_does_not_excuse_an_outer_cycle() -> None:
    """Round through a nested scope and back: on leaving, what its feedback advanced is forgotten."""
    graph = Graph()
    outer = bridge(graph, "outer", paths.identity(ROOT))
    enter = bridge(graph, "enter", paths.enter(ROOT, ROUND))
    inner = bridge(graph, "feedback", paths.advance(INNER, (0, 1)))
    leave = bridge(graph, "leave", paths.leave(INNER))
    chain(graph, outer, enter, inner, leave, outer)
    with pytest.raises(UnadvancedCycle) as refusal:
        graph.freeze()
    assert named(outer, "outer") in refusal.value.names
    assert named(leave, "leave") in refusal.value.names


def test_a_cycle_two_levels_down_needs_its_own_level_or_an_outer_one() -> None:
    for step, allowed in (((0, 0, 0), False), ((0, 0, 1), True), ((0, 1, 0), True), ((1, 0, 0), True)):
        graph = Graph()
        loop = [bridge(graph, "body", paths.identity(DEEP)), bridge(graph, "feedback", paths.advance(DEEP, step))]
        chain(graph, *loop, loop[0])
        if allowed:
            graph.freeze()
        else:
            with pytest.raises(UnadvancedCycle):
                graph.freeze()


def test_an_operator_that_leaves_and_enters_at_once_forgets_what_the_loop_advanced() -> None:
    """(t, u) -> (t, u + 1) -> (t, 0): one round of the loop gains a level, and the same round starts it afresh."""
    with pytest.raises(ConstructionError):
        build_restarting_loop()


def build_restarting_loop() -> None:
    """Refused as a cycle when it is complete, or as soon as such an operator is added."""
    restart = paths.leave(INNER).followed_by(paths.enter(ROOT, ROUND))
    assert restart is not None
    graph = Graph()
    loop = [bridge(graph, "feedback", paths.advance(INNER, (0, 1))), bridge(graph, "restart", restart)]
    chain(graph, *loop, loop[0])
    assert oracle.has_unadvanced_cycle(graph)
    graph.freeze()


# -------------------------------------------------------------------------------------------- cycles that are allowed


def test_a_loop_in_a_loop_is_allowed() -> None:
    graph = Graph()
    outer = concat(graph, "outer", ROOT)
    enter = bridge(graph, "enter", paths.enter(ROOT, ROUND))
    body = concat(graph, "body", INNER)
    inner = bridge(graph, "inner feedback", paths.advance(INNER, (0, 1)))
    leave = bridge(graph, "leave", paths.leave(INNER))
    back = bridge(graph, "outer feedback", paths.advance(ROOT, (1,)))
    graph.add_edge(Source(enter, 0), Target(body, 0))
    chain(graph, body, inner, body)
    chain(graph, outer, enter)
    chain(graph, body, leave, back, outer)
    graph.freeze()
    assert not graph.acyclic


def test_two_independent_paths_through_one_scope_are_no_cycle() -> None:
    """The outer edge out1 -> in2 closes a circle of operators, but no record can go round."""
    graph = Graph()
    into = [bridge(graph, f"in{i}", paths.enter(ROOT, ROUND)) for i in (1, 2)]
    same = paths.identity(INNER)
    both = graph.add_node("both", [INNER, INNER], [INNER, INNER], {(0, 0): same, (1, 1): same})
    out = [bridge(graph, f"out{i}", paths.leave(INNER)) for i in (1, 2)]
    for port in (0, 1):
        graph.add_edge(Source(into[port], 0), Target(both, port))
        graph.add_edge(Source(both, port), Target(out[port], 0))
    graph.add_edge(Source(out[0], 0), Target(into[1], 0))
    graph.freeze()
    assert graph.acyclic


def test_a_circle_that_an_operator_interrupts_is_no_cycle() -> None:
    graph = Graph()
    graph.add_node("collect", [ROOT], [ROOT], {})
    chain(graph, 0, 0)
    graph.freeze()
    assert graph.acyclic


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_graphs_with_an_unadvanced_cycle_are_refused(kind: str) -> None:
    refused = 0
    for seed in range(120):
        graph = random_unfrozen(Random(seed), KINDS[kind])
        refusal = refusal_of(graph)
        assert (refusal is not None) == oracle.has_unadvanced_cycle(graph), f"seed {seed}: {refusal}"
        if refusal is not None:
            refused += 1
            _check_named_cycle(graph, refusal)
    assert 5 < refused < 115  # both outcomes are met


def refusal_of(graph: Graph) -> UnadvancedCycle | None:
    try:
        graph.freeze()
    except UnadvancedCycle as refusal:
        return refusal
    return None


def _check_named_cycle(graph: Graph, refusal: UnadvancedCycle) -> None:
    """Each of the named operators feeds the next one."""
    numbers = [int(name.rsplit("#", 1)[1].rstrip(")")) for name in refusal.names]
    fed = {(source.node, target.node) for source, target in graph.edges}
    for a, b in zip(numbers, numbers[1:] + numbers[:1], strict=True):
        assert (a, b) in fed, (numbers, fed)


# ------------------------------------------------------------------------------------------------------- other misuse


def test_an_input_has_one_edge() -> None:
    graph = Graph()
    nodes = [bridge(graph, name, paths.identity(ROOT)) for name in ("a", "b", "c")]
    graph.add_edge(Source(nodes[0], 0), Target(nodes[2], 0))
    with pytest.raises(ConstructionError, match="input 0 of c is connected already"):
        graph.add_edge(Source(nodes[1], 0), Target(nodes[2], 0))
    assert len(graph.edges) == 1


def test_an_edge_stays_in_its_scope() -> None:
    graph = Graph()
    outside = bridge(graph, "outside", paths.identity(ROOT))
    inside = bridge(graph, "inside", paths.identity(INNER))
    sibling = bridge(graph, "sibling", paths.identity((*ROOT, Integers())))
    for a, b in ((outside, inside), (inside, outside), (inside, sibling)):
        with pytest.raises(ConstructionError, match="are in different scopes"):
            graph.add_edge(Source(a, 0), Target(b, 0))
    assert graph.edges == []


def test_a_summary_must_fit_the_scopes_it_joins() -> None:
    graph = Graph()
    with pytest.raises(ConstructionError, match="bad: the summary from input 0 to output 0 does not fit"):
        graph.add_node("bad", [ROOT], [INNER], {(0, 0): paths.identity(ROOT)})
    assert graph.nodes == []


def test_ports_that_are_not_there_are_refused() -> None:
    graph = Graph()
    same = paths.identity(ROOT)
    for port in (1, -1):
        with pytest.raises(ConstructionError):
            graph.add_node("initial", [ROOT], [ROOT], {}, [port])
        with pytest.raises(ConstructionError):
            graph.add_node("connection", [ROOT], [ROOT], {(0, port): same})
    graph.add_node("good", [ROOT], [ROOT], {(0, 0): same})
    for source, target in ((Source(0, 1), Target(0, 0)), (Source(0, -1), Target(0, 0)), (Source(0, 0), Target(7, 0))):
        with pytest.raises(ConstructionError):
            graph.add_edge(source, target)


def test_a_frozen_graph_takes_nothing_more() -> None:
    graph = Graph()
    a, b = (bridge(graph, name, paths.identity(ROOT)) for name in ("a", "b"))
    graph.freeze()
    assert graph.frozen
    with pytest.raises(ConstructionError, match="complete"):
        graph.add_node("late", [], [ROOT], {})
    with pytest.raises(ConstructionError, match="complete"):
        graph.add_edge(Source(a, 0), Target(b, 0))
    with pytest.raises(ConstructionError, match="complete"):
        graph.freeze()


def test_a_graph_without_operators_can_be_frozen_too() -> None:
    graph = Graph()
    graph.freeze()
    assert graph.frozen
    with pytest.raises(ConstructionError, match="complete"):
        graph.add_node("late", [], [ROOT], {})


def test_the_ends_of_an_edge_are_never_equal() -> None:
    assert Source(1, 2) != Target(1, 2)
    assert len({Source(1, 2), Target(1, 2)}) == 2


# ---------------------------------------------------------------------------------------------- indices, descriptions


@pytest.mark.parametrize("seed", range(140))
def test_indices_are_a_numbering_in_which_times_flow_upwards(seed: int) -> None:
    _, graph, _ = graph_of_seed(seed)
    assert sorted(map(str, graph.locations)) == sorted(map(str, oracle.locations(graph)))
    assert [graph.index(location) for location in graph.locations] == list(range(len(graph.locations)))
    if graph.acyclic:
        for start, end, _ in graph.hops():
            assert graph.index(start) < graph.index(end), f"{graph.name(start)} comes after {graph.name(end)}"


def acyclic_by_search(graph: Graph) -> bool:
    hops = oracle.hops_of(graph)
    for start in hops:
        todo, seen = [there for there, _ in hops[start]], set()
        while todo:
            here = todo.pop()
            if here == start:
                return False
            if here not in seen:
                seen.add(here)
                todo += [there for there, _ in hops[here]]
    return True


@pytest.mark.parametrize("seed", range(140))
def test_acyclic_means_no_way_round(seed: int) -> None:
    _, graph, _ = graph_of_seed(seed)
    assert graph.acyclic == acyclic_by_search(graph)


def described(increment: int = 1, extra: bool = False, name: str = "map", connected: bool = True) -> Graph:
    levels = (Integers(),)
    graph = Graph()
    graph.add_node("input", [], [levels], {}, [0])
    path = {(0, 0): paths.advance(levels, (increment,))} if connected else {}
    graph.add_node(name, [levels], [levels], path)
    graph.add_edge(Source(0, 0), Target(1, 0))
    if extra:
        graph.add_node("probe", [levels], [], {})
        graph.add_edge(Source(1, 0), Target(2, 0))
    return graph


def test_equal_graphs_have_equal_descriptions() -> None:
    one, other = described(), described()
    assert one.describe() == other.describe()
    before = one.digest()
    one.freeze()
    assert one.digest() == before == other.digest()
    assert one.digest() == described().digest()
    assert len(one.describe()) == len(one.nodes)


@pytest.mark.parametrize("seed", range(0, 70, 5))
def test_a_description_depends_on_nothing_but_the_graph(seed: int) -> None:
    assert graph_of_seed(seed)[1].describe() == graph_of_seed(seed)[1].describe()


def test_a_description_tells_operators_and_edges_apart() -> None:
    digests = {described().digest(), described(name="filter").digest(), described(extra=True).digest()}
    loose = Graph()
    loose.add_node("input", [], [ROOT], {}, [0])
    loose.add_node("map", [ROOT], [ROOT], {(0, 0): paths.identity(ROOT)})
    digests.add(loose.digest())
    assert len(digests) == 4


def test_a_description_tells_summaries_apart() -> None:
    """Workers whose increments differ would disagree about every frontier: they must find out at the start."""
    assert described(increment=1).digest() != described(increment=2).digest()
    assert described(connected=True).digest() != described(connected=False).digest()


def test_a_description_does_not_depend_on_where_objects_lie_in_memory() -> None:
    """A user's summary may have no `__repr__` of its own, and then it shows its address."""

    class Plain:
        def results_in(self, time: Pair) -> Pair:
            return Pair(time.x + 1, time.y)

        def followed_by(self, other: object) -> object:
            return self

        def less_equal(self, other: object) -> bool:
            return True

    kept = []  # so that no address is used twice
    descriptions = set()
    for _ in range(2):
        levels = (UserDomain(Pair),)
        graph = Graph()
        graph.add_node("step", [levels], [levels], {(0, 0): paths.advance(levels, (Plain(),))})
        kept.append(graph)
        descriptions.add(graph.describe())
    assert len(descriptions) == 1


def test_a_description_tells_initial_capabilities_apart() -> None:
    digests = set()
    for initial in ([], [0]):
        graph = Graph()
        graph.add_node("source", [], [ROOT], {}, initial)
        digests.add(graph.digest())
    assert len(digests) == 2


def test_a_description_tells_types_of_time_apart() -> None:
    digests = set()
    for domain in (Integers(), UserDomain(Pair)):
        graph = Graph()
        graph.add_node("source", [], [(domain,)], {}, [0])
        digests.add(graph.digest())
    assert len(digests) == 2
