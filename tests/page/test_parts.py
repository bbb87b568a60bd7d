"""The pure parts of the page, and the readings that it draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow
import megaphone
from dataflow.page.latency import LONGEST, Curves
from dataflow.page.layers import place
from dataflow.page.seeing import look, pairs_of, parts_of
from dataflow.page.shapes import shape_key, shapes
from dataflow.run.bins import read_bins
from dataflow.run.holding import HoldingReading, read_holding
from dataflow.run.readings import WorkerReading, read_worker
from dataflow.run.worker import pump_of


def add(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    """A running total."""
    return (total or 0) + one, [(key, (total or 0) + one)]


async def program(worker: dataflow.Worker) -> tuple[list[HoldingReading], list[WorkerReading], object]:
    """Two times are complete, and the third is held by the input: what is seen then."""
    with worker.dataflow("sums") as scope:
        feed, stream = scope.input(name="numbers")
        doubled = stream.map(lambda n: (n, 1), name="pairs")
        totals = megaphone.state_machine(scope.control(), doubled, fold=add, bins=8, name="totals")
        probe = totals.map(lambda pair: pair, name="last").probe()
    first = read_worker(pump_of(worker))
    feed.send(list(range(20)))
    feed.advance_to(2)
    await probe.wait_passed(1)
    pump = pump_of(worker)
    seen = read_holding(pump)
    bins = read_bins(pump.dataflows[0].hooks.named("totals"), 0, 0, 7, 4)
    return seen, [first, read_worker(pump)], bins


@pytest.fixture(scope="module")
def seen() -> tuple[list[HoldingReading], list[WorkerReading], object]:
    (found,) = dataflow.execute(program, workers=1)
    return found


def test_the_path_goes_from_the_holder_to_who_waits(
    seen: tuple[list[HoldingReading], list[WorkerReading], object],
) -> None:
    (holding,), (_, now), _ = seen
    names = [each.name for each in now.dataflows[0].operators]
    last = next(each for each in holding.waiting if names[each.operator] == "last")
    assert last.time == "2"
    inputs = [holder for holder in last.holders if names[holder.operator] == "numbers"]
    paths = [[names[number] for number in holder.path] for holder in inputs]
    assert paths == [["numbers", "pairs", "totals F", "totals S", "last"]]
    assert all(holder.here and holder.since > 0 for holder in last.holders)


def test_cells_add_up_to_the_bins(seen: tuple[list[HoldingReading], list[WorkerReading], object]) -> None:
    _, (_, now), bins = seen
    state = now.dataflows[0].state[0]
    assert bins.shards == bins.groups == 8 and len(bins.cell_first) == 4 and bins.bins.sum() == 8  # type: ignore[attr-defined]
    assert bins.cell_first.tolist() == [0, 2, 4, 6] and bins.cell_last.tolist() == [1, 3, 5, 7]  # type: ignore[attr-defined]
    assert state.movable and bins.movable  # type: ignore[attr-defined]


def test_a_look_has_rates_between_two_readings(
    seen: tuple[list[HoldingReading], list[WorkerReading], object],
) -> None:
    _, (was, now), _ = seen
    ((before, part, seconds),) = parts_of("sums", pairs_of([was], [now]))
    assert before is not None and seconds > 0
    told = look(None, _Status([now]))  # type: ignore[arg-type]
    (shown,) = told["dataflows"]  # type: ignore[misc]
    assert shown["total_in"] == [each.records_in for each in part.operators]
    assert len(shown["edge_rate"]) == sum(len(each.edges) for each in part.operators)


class _Status:
    def __init__(self, workers: list[WorkerReading]) -> None:
        self.workers, self.facts, self.silent = workers, {"name": "x"}, dict[str, str]()


def test_curves_take_each_sample_once_and_are_bounded(
    seen: tuple[list[HoldingReading], list[WorkerReading], object],
) -> None:
    _, (_, now), _ = seen
    part = replace(now.dataflows[0], latencies=((10.0, 0.5), (11.0, 0.1)))
    curves = Curves()
    first = curves.add([replace(now, when=11.0, dataflows=(part,))], {}, 0.0)
    assert first["sums"][1:4] == [0.5, 0.5, 0.5] or first["sums"][3] == 0.5
    again = curves.add([replace(now, when=12.0, dataflows=(part,))], {}, 0.0)
    assert again["sums"][1:4] == [None, None, None]
    for when in range(LONGEST + 5):
        curves.add([replace(now, when=float(when), dataflows=(part,))], {}, 0.0)
    assert len(curves.all()["sums"]) == LONGEST
    curves.add([replace(now, dataflows=())], {}, 0.0)
    assert curves.all() == {}


def graphs(count: int) -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
    """A number of operators, and edges between any of them."""
    ends = st.integers(0, count - 1)
    return st.tuples(st.just(count), st.lists(st.tuples(ends, ends), max_size=60))


@given(st.integers(1, 30).flatmap(graphs))
def test_no_two_operators_are_at_one_place_and_edges_go_forward_but_for_loops(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, edges = graph
    places = place(count, edges)
    assert len(places) == count and len(set(places)) == count
    if all(a < b for a, b in edges):
        assert all(places[a][0] < places[b][0] for a, b in edges)


def test_a_thousand_operators_have_places(seen: tuple[list[HoldingReading], list[WorkerReading], object]) -> None:
    _, (_, now), _ = seen
    part = now.dataflows[0]
    one = part.operators[1]
    edge = one.edges[0]
    many = tuple(replace(one, number=at, name=f"n{at}", edges=(replace(edge, source=at - 1),)) for at in range(1000))
    (shape,) = shapes(shape_key([replace(now, dataflows=(replace(part, operators=many),))]))
    assert len(shape["operators"]) == 1000 and np.unique([each["x"] for each in shape["operators"]]).size == 1000  # type: ignore[arg-type,attr-defined]
