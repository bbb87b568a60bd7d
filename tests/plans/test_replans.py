"""Replans as people send them: by a controller, from files, one after the other, cancelled, and refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.errors import ConstructionError
from dataflow.testing import simulate
from dataflow.time.timestamp import Product
from megaphone.control.replans import KnownPlans, Replan
from megaphone.control.updates import parse_line
from megaphone.keys.hashing import bin_of, shift_of
from megaphone.migration.strategies import Strategy
from megaphone.plans import Query
from megaphone.plans.spaces import TreeSpace
from tests.plans.cases import Epochs, oracle

BINS = 8
QUERY = Query(("a", "b", "c"), 6, on=0)
FIRST, SECOND, THIRD = "(a b) c", "a (b c)", "(a c) b"


def some_epochs(seed: int, times: int, keys: int = 12) -> Epochs:
    chance = Random(seed)
    return [
        {name: [(chance.randrange(keys), 0, f"{name}{time}.{i}") for i in range(chance.randrange(4))] for name in "abc"}
        for time in range(times)
    ]


async def join(worker: dataflow.Worker, epochs: Epochs, steer: Any, query: Query = QUERY, **options: Any) -> Any:
    """Worker 0 sends everything. `steer(time, controller, control, joined)` is called on it at each time, before the
    control input advances. Returns what came out here, plans as far as all know, and those of the bins here."""
    out: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = {}, {}
        for name in query.streams:
            inputs[name], streams[name] = scope.input(name)
        joined = megaphone.window_join(configuration, streams, query, plan=FIRST, bins=BINS, **options)
        probe = joined.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, joined)
    for time, epoch in enumerate(epochs):
        if worker.index == 0:
            steer(time, controller, control, joined)
            for name, records in epoch.items():
                inputs[name].send(records)
        controller.advance_to(time + 1)
        for handle in inputs.values():
            handle.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(len(epochs) - 1)
    store = joined.handle.store
    here = {bin: store.plan_of(bin) for bin in store.occupied().tolist()}
    return out, controller.plans, here, controller.configuration, controller.progress


def right(results: list[Any], epochs: Epochs, query: Query = QUERY) -> None:
    found: Counter[Any] = Counter(entry for out, *_ in results for entry in out)
    expected = oracle(query, epochs)
    assert found == Counter({(t, r): n for t, rows in expected.items() for r, n in rows.items()})
    assert found


# ------------------------------------------------------------------------------------------------------- a controller


@pytest.mark.parametrize("method", ["moving-state", "parallel-track", "hybmig"])
@pytest.mark.parametrize(
    "strategy",
    [megaphone.all_at_once(), megaphone.fluid(), megaphone.batched(3, gap=1, order="biggest"), megaphone.matched()],
    ids=lambda s: s.name,
)
def test_a_controller_paces_a_replan_and_moves_bins_at_once(strategy: Strategy, method: str) -> None:
    to = [1, 1, 0, 0, 1, 1, 0, 0]

    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 3:
            controller.replan(Replan(SECOND, method), strategy, to=to)
            with pytest.raises(megaphone.ControlError, match="under way"):
                controller.replan(THIRD)

    for seed in range(2):
        epochs = some_epochs(seed, 45)
        results = simulate(join, epochs, steer, workers=2, seed=seed)
        right(results, epochs)
        for worker, (_, plans, here, configuration, _) in enumerate(results):
            assert plans == [SECOND] * BINS and configuration == tuple(to)
            assert all(to[bin] == worker and view.plan == SECOND and view.next is None for bin, view in here.items())
        progress = results[0][-1]
        assert progress.bins == progress.bins_moved == BINS and progress.steps_done == progress.steps


def test_a_controller_that_is_cancelled_leaves_the_other_bins_as_they_are() -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 2:
            controller.replan(SECOND, megaphone.fluid())
        if time == 12:
            controller.cancel()

    epochs = some_epochs(1, 30)
    results = simulate(join, epochs, steer, workers=2, seed=3)
    right(results, epochs)
    plans = results[0][1]
    assert 0 < plans.count(SECOND) < BINS and plans.count(SECOND) + plans.count(FIRST) == BINS
    for _, _, here, _, _ in results:
        assert all(view.plan == plans[bin] for bin, view in here.items())


def test_a_budget_bounds_the_steps_of_a_replan() -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 8:
            controller.replan(SECOND, megaphone.batched(8, budget=1))

    epochs = some_epochs(2, 60)
    results = simulate(join, epochs, steer, workers=2, seed=1, turns=2_000_000)
    right(results, epochs)
    assert results[0][-1].steps_done == BINS, "each bin is more than the budget"


# ----------------------------------------------------------------------------------- one after the other, and cancelled


def test_a_second_replan_waits_in_each_bin_for_the_first() -> None:
    seen: list[Any] = []

    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 0:
            control.send([Replan(SECOND, background=False)], at=10)
            control.send([Replan(THIRD, "parallel-track")], at=12)
            control.send([Replan(FIRST, "moving-state", bins=[0, 1, 2, 3])], at=13)
        if time in (15, 19, 40):
            store = joined.handle.store
            seen.append({bin: store.plan_of(bin) for bin in store.occupied().tolist()})

    epochs = some_epochs(3, 45)
    results = simulate(join, epochs, steer, workers=1, seed=3)
    right(results, epochs)
    early, late, end = seen
    for bin in {bin_of(key, shift_of(BINS)) for key in range(12)}:  # empty ones change at once
        after = (FIRST,) if bin < 4 else ()
        assert (early[bin].plan, early[bin].next, early[bin].method, early[bin].since) == (FIRST, SECOND, "hybmig", 10)
        assert early[bin].queued == (THIRD, *after)
        assert (late[bin].plan, late[bin].next, late[bin].since) == (SECOND, THIRD, 16), "it begins at 10 + window"
        assert bin not in end or end[bin].plan == (FIRST if after else THIRD)


def test_a_replan_is_cancelled_before_its_time() -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 0:
            control.send([Replan(SECOND)], at=10)
        if time == 5:
            control.send([Replan(None, bins=[2, 3])], at=10)

    epochs = some_epochs(4, 30)
    results = simulate(join, epochs, steer, workers=2, seed=5)
    right(results, epochs)
    assert results[0][1] == [FIRST if bin in (2, 3) else SECOND for bin in range(BINS)] == results[1][1]


def test_of_several_at_one_time_all_workers_take_the_same() -> None:
    known = KnownPlans(TreeSpace("join", QUERY, QUERY.plan(FIRST)), 4)
    known.accept(5, [Replan(SECOND, "hybmig", [0, 1]), Replan(THIRD, "hybmig"), Replan(None, bins=[3])])
    settled = [(bins.tolist(), replan.plan) for bins, replan in known.finalise(5)]
    assert settled == [([2], THIRD), ([0, 1], SECOND)], "the greatest text wins, and what cancels over all"
    assert known.plans == [SECOND, SECOND, THIRD, FIRST]


def test_parallel_track_in_the_papers_order_holds_new_results_until_its_end() -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 0:
            control.send([Replan(SECOND, "parallel-track", order="paper")], at=8)
        if time == 10:
            control.send([megaphone.Move(bin, 1) for bin in range(4)], at=11)  # what is held travels

    held = 0
    for seed in range(4):
        epochs = some_epochs(seed, 30, keys=4)
        results = simulate(join, epochs, steer, workers=2, seed=seed)
        times = {record: time for time, epoch in enumerate(epochs) for part in epoch.values() for record in part}
        expected: Counter[Any] = Counter()
        for time, rows in oracle(QUERY, epochs).items():
            for row, count in rows.items():
                waits = time < 14 and min(times[record] for record in row) >= 8
                held += count * waits
                expected[14 if waits else time, row] += count
        assert Counter(entry for out, *_ in results for entry in out) == expected
    assert held > 20


# -------------------------------------------------------------------------------------------------- state has an end


@pytest.mark.parametrize("window", [3, 40])
def test_state_expires_even_if_nothing_comes_any_more(window: int) -> None:
    query = Query(("a", "b", "c"), window, on=0)
    sizes: list[int] = []

    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        store = joined.handle.store
        sizes.append(sum(len(part) for bin in store.occupied() for of in store.view(bin).entries.values()
                         for part in of.values()))  # fmt: skip

    busy = some_epochs(7, 20)
    silent: Epochs = [{name: [] for name in "abc"} for _ in range(2 * window + 5)]
    results = simulate(join, busy + silent, steer, query, workers=1, seed=0)
    right(results, busy + silent, query)
    assert max(sizes) > 0 and sizes[-1] == 0 and results[0][2] == {}
    gone = sizes.index(0, 15)
    assert gone <= 19 + window + window // 4 + 3, "a quarter of a window later at most"


# --------------------------------------------------------------------------------------------------------- two streams


def test_two_streams_are_the_smallest_join() -> None:
    query = Query(
        ("left", "right"), 3, on=lambda record: record[0], where={("left", "right"): lambda x, y: x[1] < y[1]}
    )

    async def main(worker: dataflow.Worker) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            left, lefts = scope.input()
            right, rights = scope.input()
            joined = megaphone.window_join(configuration, {"right": rights, "left": lefts}, query, plan="right left")
            probe = joined.inspect(lambda t, r: out.append((t, r))).probe()
        left.send([("x", 1), ("y", 5)])
        right.advance_to(3)
        right.send([("x", 2), ("x", 0), ("y", 6)])
        right.advance_to(4)
        right.send([("x", 9)])
        with pytest.raises(megaphone.ControlError, match="has the plan 'left right' already"):
            control.send([Replan("left right")])
        for handle in (control, left, right):
            handle.close()
        await probe.wait_done()
        return sorted(out)

    assert simulate(main, workers=1) == [[(3, (("x", 1), ("x", 2))), (3, (("y", 5), ("y", 6)))]]


# ------------------------------------------------------------------------------------------------------------- refused

REFUSED = [
    (Replan("a (b d)"), "'d', which is no stream: there are a, b, c"),
    (Replan("a b"), "leaves out c"),
    (Replan("(a b c"), "3 parts side by side"),
    (Replan("c (b a)"), "the operator has the plan '(a b) c' already: a replan changes it"),
    (Replan(FIRST, bins=[1]), "these bins have the plan '(a b) c' already"),
    (Replan(SECOND, "gms"), "gms is for opaque plans; a join's plans are known"),
    (Replan(SECOND, "magic"), "there is no method 'magic' to change a plan: there are moving-state"),
    (Replan(SECOND, bins=[8]), "there is no bin 8: there are 8"),
    (Replan(SECOND, bins=[]), "bins= names no bin"),
    (Replan(SECOND, bins="12"), "bins= is a list of bins"),  # type: ignore[arg-type]
    (Replan(7), "a plan is written as text"),  # type: ignore[arg-type]
    (Replan(SECOND, share=1), "share= is True or False, not 1"),  # type: ignore[arg-type]
    (Replan(SECOND, order="any"), "order= is 'time' or 'paper'"),  # type: ignore[arg-type]
    (Replan(SECOND, "hybmig", order="paper"), "for parallel-track alone"),
    (megaphone.Pin(3, 0), "no key can be pinned: a plan's keys stay in their bins"),
]


@pytest.mark.parametrize(("bad", "complaint"), REFUSED, ids=[complaint[:40] for _, complaint in REFUSED])
def test_what_is_refused_leaves_the_plan_as_it_is(bad: Any, complaint: str) -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 2:
            with pytest.raises(megaphone.ControlError) as refused:
                control.send([bad], at=5)
            assert complaint in str(refused.value)

    epochs = some_epochs(8, 10)
    results = simulate(join, epochs, steer, workers=1)
    right(results, epochs)
    assert results[0][1] == [FIRST] * BINS and {view.plan for view in results[0][2].values()} == {FIRST}


def test_with_several_workers_what_was_heard_decides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Worker 1 goes back to the first plan, whether or not it has heard that worker 0 left it; and a replan to the plan
    that is there is told as one when that is known: when its time is final."""

    async def main(worker: dataflow.Worker) -> list[str]:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            inputs = {name: scope.input() for name in "abc"}
            query = Query(tuple("abc"), 3, on=0)
            streams = {name: stream for name, (_, stream) in inputs.items()}
            joined = megaphone.window_join(configuration, streams, query, plan=FIRST, bins=4)
            probe = joined.probe()
        if worker.index == 0:
            control.send([Replan(SECOND)], at=3)
            control.send([Replan(SECOND)], at=4)
        else:
            control.send([Replan(FIRST)], at=6)
        for handle in (control, *(handle for handle, _ in inputs.values())):
            handle.close()
        await probe.wait_done()
        return joined.handle.plans.plans

    for seed in range(20):
        assert simulate(main, workers=2, seed=seed) == [[FIRST] * 4] * 2
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1 and "at 4 changes nothing: its bins have that plan" in told[0]


def test_replans_that_a_controller_refuses() -> None:
    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        for bad, complaint in [(Replan(None), "needs a plan"), ("a b", "leaves out c"), (FIRST, "already")]:
            with pytest.raises(megaphone.ControlError, match=complaint):
                controller.replan(bad)
        with pytest.raises(megaphone.ControlError, match="a map of 2 bins"):
            controller.replan(SECOND, to=[0, 0])
        group = megaphone.Controller(control, megaphone.Group([joined]))
        with pytest.raises(megaphone.ControlError, match="a group has no plan of its own"):
            group.replan(SECOND)
        assert not controller.busy and group.plans == []

    simulate(join, some_epochs(8, 2), steer, workers=1)


def test_an_operator_without_plans_refuses_them() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            _, stream = scope.input()
            megaphone.state_machine(configuration, stream, fold=lambda key, value, total: (total, []), bins=4)
        with pytest.raises(megaphone.ControlError, match="is for an operator that has plans: window_join or opaque"):
            control.send([Replan("a b")])

    simulate(main, workers=1)


def opened(query: Any, streams: str, **options: Any) -> None:
    async def main(worker: dataflow.Worker, time: Any) -> None:
        with worker.dataflow(time=time) as scope:
            _, configuration = scope.input()
            inputs = {name: scope.input()[1] for name in streams}
            megaphone.window_join(configuration, inputs, query, **options)

    simulate(main, options.pop("time", int), workers=1)


NAMED = Query(("a", "b"), 5, on="key")
UNNAMED = Query(("a", "b"), 5, on="key", where={("a", "b"): lambda a, b: a.price < b.price})


@pytest.mark.parametrize(
    ("query", "streams", "options", "complaint"),
    [
        (QUERY, "ab", {"plan": FIRST}, "needs a stream for each of a, b, c, by name, and got a, b"),
        (QUERY, "abc", {"plan": "a b"}, "leaves out c"),
        (QUERY, "abc", {"plan": FIRST, "bins": 3}, "power of two"),
        (QUERY, "abc", {"plan": FIRST, "bins": -4}, "power of two up to 2.20, not -4"),
        (QUERY, "abc", {"plan": FIRST, "budget": 0}, "a budget is a positive number"),
        (Query(("a", "b"), 5), "ab", {"plan": "a b", "bins": 4}, "without a key .on=. there is one bin, not 4"),
        (NAMED, "ab", {"plan": "a b", "columns": False}, "names a column, and this joins rows"),
        (NAMED, "ab", {"plan": "a b", "bins": 1}, "two bins at least"),
        (NAMED, "ab", {"plan": "a b", "bins": 6}, "power of two"),
        (NAMED, "ab", {"plan": "a b", "budget": 0}, "a budget is a positive number"),
        (QUERY, "abc", {"plan": FIRST, "columns": True}, "in columns on= names a column"),
        (UNNAMED, "ab", {"plan": "a b"}, "the predicate of a and b: <lambda> must be written with def"),
        ("a b", "ab", {"plan": "a b"}, "needs a megaphone.plans.Query"),
        (QUERY, "abc", {"plan": FIRST, "time": Product(int, int)}, "times must be integers"),
    ],
)
def test_joins_that_cannot_be(query: Any, streams: str, options: Any, complaint: str) -> None:
    with pytest.raises((ConstructionError, ValueError), match=complaint):
        opened(query, streams, **options)


def test_a_predicate_that_fails_names_the_records_and_the_bin() -> None:
    query = Query(("a", "b", "c"), 6, on=0, where={("a", "b"): lambda x, y: x[9] < y[9]})
    with pytest.raises(IndexError) as failure:
        simulate(join, some_epochs(8, 10), lambda *_: None, query, workers=1)
    notes = " ".join(failure.value.__notes__)
    assert "in the predicate of (" in notes and "in bin " in notes


def test_state_that_cannot_move_is_named() -> None:
    query = Query(("a", "b", "c"), 6, on=0)
    epochs: Epochs = [{"a": [(0, object())], "b": [], "c": []}] + [{n: [] for n in "abc"} for _ in range(4)]

    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 1:
            control.send([megaphone.Assign([1, 0] * (BINS // 2))], at=2)

    with pytest.raises(TypeError, match=r"bin \d of window_join cannot move: "):
        simulate(join, epochs, steer, query, workers=2)


# ----------------------------------------------------------------------------------------------------------- from files


def test_lines_of_json() -> None:
    lines = {
        '{"time": 5, "plan": "a (b c)", "method": "hybmig"}': (5, "Replan('a (b c)', method='hybmig')"),
        '{"time": 5, "plan": "a (b c)"}': (5, "Replan('a (b c)')"),
        '{"time": 6, "plan": null, "bins": [1, 2]}': (6, "Replan(None, bins=[1, 2])"),
        '{"time": 7, "plan": "b", "share": false, "background": false}': (
            7,
            "Replan('b', share=False, background=False)",
        ),
    }
    for line, (time, text) in lines.items():
        at, update = parse_line(line, 1)
        assert (at, repr(update)) == (time, text)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"time": 5, "plan": "a b", "why": "heat"}', "neither a move nor a map nor a split, a merge, a pin or a plan"),
        ('{"time": 5, "plan": ["a", "b"]}', "a plan is written as text"),
        ('{"time": 5, "plan": "a b", "method": 3}', "there is no method 3"),
        ('{"time": 5, "plan": "a b", "bins": 4}', "bins= is a list of bins"),
        ('{"time": 5, "plan": "a b", "bins": [4]}', "no bin 4"),
    ],
)
def test_lines_that_are_refused(line: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "plans.jsonl"
    path.write_text(line)
    with pytest.raises(megaphone.ControlError, match=complaint):
        megaphone.read_control(path, bins=4, workers=2)


def test_a_file_changes_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "plans.jsonl"
    path.write_text('{"time": 4, "plan": "a (b c)", "method": "moving-state"}\n{"time": 9, "plan": "(c a) b"}\n')

    def steer(time: int, controller: Any, control: Any, joined: Any) -> None:
        if time == 0:
            for at, update in megaphone.read_control(path, BINS, 2):
                control.send([update], at=at)

    epochs = some_epochs(9, 25)
    results = simulate(join, epochs, steer, workers=2, seed=9)
    right(results, epochs)
    assert results[0][1] == results[1][1] == [THIRD] * BINS
