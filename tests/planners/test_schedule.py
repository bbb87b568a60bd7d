"""Schedules carry everything, use no link beyond its speed, and take the least time if bins may go in pieces."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise, permutations

import pytest

from planners import BinMap, Intervals, Plan, PlannerError, Schedule, Tasks, mini_migrations, schedule, ssm
from planners.links.schedule import Transfer


def random_plan(chance: random.Random, tasks: int = 30, nodes: int = 6) -> Plan:
    m, n = chance.randint(1, tasks), chance.randint(1, nodes)
    sizes = [chance.choice([0, 1, 2, 3, 10, chance.random() * 50]) for _ in range(m)]
    before, after = ([chance.randrange(n) for _ in range(m)] for _ in range(2))
    return Plan.between("random", BinMap(before, range(n)), BinMap(after, range(n)), Tasks(sizes, sizes))


def busiest(plan: Plan, up: dict[int, float], down: dict[int, float]) -> float:
    times: dict[tuple[str, int], float] = defaultdict(float)
    for task, origin, destination in plan.moves:
        times["up", origin] += plan.tasks.sizes[task] / up[origin]
        times["down", destination] += plan.tasks.sizes[task] / down[destination]
    return max(times.values(), default=0.0)


def check_carried(plan: Plan, found: Schedule) -> None:
    amounts: dict[tuple[int, int, int], float] = defaultdict(float)
    for transfer in found.transfers:
        amounts[transfer.task, transfer.origin, transfer.destination] += transfer.amount
    assert set(amounts) == set(plan.moves), "every bin that moves, and no other"
    for (task, _, _), amount in amounts.items():
        assert amount == pytest.approx(float(plan.tasks.sizes[task]), abs=1e-9)


def check_speeds(transfers: tuple[Transfer, ...], up: dict[int, float], down: dict[int, float]) -> None:
    """At no time is more than its speed on a link: looked at between any two instants at which something changes."""
    instants = sorted({time for t in transfers for time in (t.start, t.end)})
    for begin, end in pairwise(instants):
        if end - begin < 1e-9:
            continue
        middle = (begin + end) / 2
        used: dict[tuple[str, int], float] = defaultdict(float)
        for t in transfers:
            if t.start < middle < t.end:
                used["up", t.origin] += t.amount / (t.end - t.start)
                used["down", t.destination] += t.amount / (t.end - t.start)
        for (way, node), rate in used.items():
            assert rate <= (up if way == "up" else down)[node] * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alike", [True, False])
def test_pieces_take_as_long_as_the_busiest_link(seed: int, alike: bool) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        plan = random_plan(chance)
        nodes = plan.current.nodes
        up, down = ({node: 1.0 if alike else chance.choice([0.5, 1, 1.7, 4]) for node in nodes} for _ in range(2))
        found = schedule(plan, uplinks=up, downlinks=down)
        bound = busiest(plan, up, down)
        assert found.lower_bound == pytest.approx(bound)
        assert found.total == pytest.approx(bound, rel=1e-9, abs=1e-12)
        assert found.distance == pytest.approx(0, abs=1e-9)
        check_carried(plan, found)
        check_speeds(found.transfers, up, down)


def test_with_equal_speeds_a_phase_is_a_matching() -> None:
    chance = random.Random(8)
    for _ in range(30):
        found = schedule(random_plan(chance))
        for phase in found.phases:
            pairs = {(t.origin, t.destination) for t in phase if t.amount}
            assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


@pytest.mark.parametrize("seed", range(3))
def test_whole_bins_go_in_one_piece_and_share_no_link(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        plan = random_plan(chance)
        nodes = plan.current.nodes
        up, down = ({node: chance.choice([0.5, 1, 4]) for node in nodes} for _ in range(2))
        found = schedule(plan, uplinks=up, downlinks=down, pieces=False)
        check_carried(plan, found)
        assert len(found.transfers) == len(plan.moves)
        check_speeds(found.transfers, up, down)
        assert found.total >= busiest(plan, up, down) * (1 - 1e-9)
        alike = schedule(plan, pieces=False)
        assert alike.distance <= 1 + 1e-9, "no link idles while both ends could work: at most twice the bound"


def test_whole_bins_are_near_the_best_order_on_tiny_cases() -> None:
    """Against every order in which a list schedule could take the bins."""
    chance = random.Random(4)
    excess = []
    for _ in range(40):
        plan = random_plan(chance, tasks=6, nodes=3)
        found = schedule(plan, pieces=False)
        best = min((_list_schedule(plan, order) for order in permutations(plan.moves)), default=0.0)
        assert found.lower_bound <= best + 1e-9
        assert found.total >= best - 1e-9
        excess.append(found.total / best if best else 1.0)
    assert sum(excess) / len(excess) < 1.1


def _list_schedule(plan: Plan, order: tuple[tuple[int, int, int], ...]) -> float:
    """Each in turn as early as the two links allow, after what was placed before it there."""
    up: dict[int, float] = defaultdict(float)
    down: dict[int, float] = defaultdict(float)
    for task, origin, destination in order:
        end = max(up[origin], down[destination]) + float(plan.tasks.sizes[task])
        up[origin] = down[destination] = end
    return max([*up.values(), *down.values()], default=0.0)


def test_mini_migrations_are_as_few_as_the_limit_allows() -> None:
    chance = random.Random(6)
    for _ in range(100):
        plan, limit = random_plan(chance), chance.randint(1, 5)
        steps = mini_migrations(plan, limit)
        assert sorted(move for step in steps for move in step) == plan.moves
        sent: dict[int, int] = defaultdict(int)
        received: dict[int, int] = defaultdict(int)
        for _, origin, destination in plan.moves:
            sent[origin] += 1
            received[destination] += 1
        for step in steps:
            assert all(sum(origin == node for _, origin, _ in step) <= limit for node in sent)
            assert all(sum(destination == node for _, _, destination in step) <= limit for node in received)
        most = max([*sent.values(), *received.values()], default=0)
        assert len([step for step in steps if step]) == -(-most // limit)


def test_what_schedules_refuse() -> None:
    plan = ssm(Intervals([0, 3, 6]), nodes=3, sizes=[1] * 6, loads=[1] * 6, tau=0)
    with pytest.raises(PlannerError, match="have no uplink speed"):
        schedule(plan, uplinks={0: 1.0})
    with pytest.raises(PlannerError, match="above zero"):
        schedule(plan, downlinks=0.0)
    with pytest.raises(PlannerError, match="at least one bin"):
        mini_migrations(plan, 0)


def test_a_plan_without_moves_takes_no_time() -> None:
    plan = ssm(Intervals([0, 3, 6]), nodes=2, sizes=[1] * 6, loads=[1] * 6, tau=0)
    for pieces in (True, False):
        found = schedule(plan, pieces=pieces)
        assert (found.transfers, found.total, found.lower_bound, found.distance) == ((), 0.0, 0.0, 0.0)
