"""Steps as large as a bound on the latency allows: the pacer against a model of a machine, and in a running one."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.migration.pacing import FIRST, LOOKS, PaceLatencies, Pacer
from megaphone.migration.strategies import within


@dataclass
class Machine:
    """A model: a time takes `base` seconds, and as much longer as bytes that arrive with it cost; a step takes `delay`
    times from its update to its end. Sometimes something else takes `spike` seconds."""

    base: float
    per_byte: float
    delay: int
    spike: float = 0.0
    epoch: float = 0.001

    def migrate(self, pacer: Pacer, bins: list[int], chance: random.Random) -> tuple[list[float], float]:
        """The latencies of all times of a migration of bins with so many bytes, and how long it took."""
        left, steps, seen = deque(bins), deque[tuple[int, int]](), []
        now = 0
        while left or steps:
            now += 1
            assert now < 1_000_000, "it does not end"
            arriving = 0
            while steps and steps[0][0] <= now:
                arriving += steps.popleft()[1]
            latency = self.base * chance.uniform(0.8, 1.2) + arriving * self.per_byte
            latency += self.spike if chance.random() < 0.002 else 0.0
            seen.append(latency)
            pacer.saw(latency, steady=not steps and not arriving)
            if arriving:
                pacer.completed(arriving)
            room = pacer.room(sum(size for _, size in steps), 0.0, self.epoch)
            step = 0
            while left and room and (not step or step + left[0] <= room):
                if not step and left[0] > room and steps:
                    break
                step += left.popleft()
            if step:
                steps.append((now + self.delay, step))
        return seen, now * self.epoch


@pytest.mark.parametrize("seed", range(60))
def test_the_bound_is_kept_and_the_time_is_used(seed: int) -> None:
    """On machines whose costs nobody told it."""
    chance = random.Random(seed)
    bound = chance.choice([0.005, 0.02, 0.1])
    machine = Machine(
        chance.uniform(0.02, 0.3) * bound, 10 ** chance.uniform(-9.5, -8.3), chance.choice([1, 3, 8])
    )
    fits = bound / machine.per_byte  # bytes that cost as much as the bound
    bins = [int(chance.uniform(0.5, 1.5) * fits / chance.choice([8, 50, 500])) + 1 for _ in range(2_000)]
    pacer = Pacer(bound)
    seen, took = machine.migrate(pacer, bins, chance)
    assert max(seen) <= 1.05 * bound
    alone = sum(bins) * machine.per_byte / (0.7 * bound) * machine.epoch  # every time as much as the aim allows
    begins = (40 + 8 * machine.delay) * machine.epoch
    assert took <= 4 * (machine.delay + 1) * alone + begins + len(bins) * machine.epoch / 100


def test_a_migration_that_is_over_sooner_with_a_wider_bound() -> None:
    took = []
    for bound in (0.002, 0.01, 0.05):
        machine = Machine(0.001, 1e-9, 3)
        took.append(machine.migrate(Pacer(bound), [100_000] * 4096, random.Random(1))[1])
    assert took[0] > 2 * took[1] and took[1] > 1.5 * took[2]


def test_what_the_machine_does_besides_slows_it_down_and_no_more() -> None:
    machine = Machine(0.001, 1e-9, 3, spike=0.05)
    pacer = Pacer(0.02)
    seen, took = machine.migrate(pacer, [100_000] * 20_000, random.Random(2))
    assert sum(latency > 0.03 for latency in seen) <= sum(latency > 0.05 for latency in seen) + 2, "spikes alone"
    assert took < 3 * machine.migrate(Pacer(0.02), [100_000] * 20_000, random.Random(3))[1]


def test_it_looks_before_it_begins_and_begins_with_little() -> None:
    pacer = Pacer(0.02)
    assert pacer.room(0, 0.0, 0.001) == 0
    for _ in range(LOOKS):
        pacer.saw(0.001, steady=True)
    assert 0 < pacer.room(0, 0.0, 0.001) <= FIRST
    assert pacer.room(FIRST, 0.0, 0.001) == 0, "as much as may be is under way"
    assert pacer.base == pytest.approx(0.001)


def test_it_begins_without_latencies_too() -> None:
    pacer = Pacer(0.02)
    assert any(pacer.room(0, 0.0, 0.001) for _ in range(30)), "nothing is completed while nothing comes"


def test_while_records_wait_it_waits_but_not_for_ever() -> None:
    pacer = Pacer(0.02)
    for _ in range(LOOKS):
        pacer.saw(0.1, steady=True)
    waited = next(n for n in range(1000) if pacer.room(0, 0.1, 0.001))
    assert 100 < waited < 300, "a migration may be what ends the overload"


def test_a_peak_halves_the_budget_at_least() -> None:
    pacer = Pacer(0.02)
    pacer.saw(0.001, steady=True)
    pacer.saw(0.021, steady=False)
    pacer.completed(1)
    assert pacer.budget <= FIRST // 2


def test_latencies_count_from_when_times_were_handed_in() -> None:
    latencies, done = PaceLatencies(), set[int]()
    for time in range(5):
        assert not [*latencies.completed(done.__contains__, time * 0.001)]
        latencies.handed(time, time * 0.001)
    assert latencies.age(0.005) == pytest.approx(0.004)
    done |= {0, 1, 2}
    assert [*latencies.completed(done.__contains__, 0.006)] == pytest.approx([0.005, 0.004, 0.003])
    assert latencies.age(0.006) == pytest.approx(0.002)


def test_a_caller_that_is_late_has_kept_records_waiting() -> None:
    latencies = PaceLatencies()
    for time in range(20):
        latencies.handed(time, time * 0.001)
    latencies.handed(21, 0.019 + 0.040)
    *_, last = latencies.completed(lambda time: True, 0.060)
    assert 0.038 < last < 0.041


def test_bounds_that_make_no_sense() -> None:
    for wrong in (0, -1, float("inf"), None, "soon", True):
        with pytest.raises(ValueError, match=r"a bound of the latency|soon"):
            within(wrong)  # type: ignore[arg-type]


async def main(worker: dataflow.Worker, coarse: bool) -> Any:
    """A count in rows, or in columns whose bins split as they move."""
    out: Counter[Any] = Counter()
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        data, stream = scope.input()
        counts = megaphone.state_machine(
            configuration, stream, bins=64, interval=0.0,
            fold=lambda key, value, total: ((total or 0) + value, [(key, (total or 0) + value)]),
        )  # fmt: skip
        probe = counts.inspect(lambda _, pair: out.update([pair])).probe()
    controller = megaphone.Controller(control, counts)
    moved = []
    for time in range(60):
        data.send([(key, 1) for key in range(worker.index, 200, worker.peers)])
        if coarse and worker.index == 0 and time == 2:
            controller.reshape(merges=["0*"])
        if worker.index == 0 and time == 8:
            controller.migrate([1] * 64, strategy=within(0.02, order="hottest"))
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time - 1)
        moved.append(sum(controller.configuration))
    await probe.wait_passed(59)
    return out, moved, controller.busy, controller.progress


@pytest.mark.parametrize("coarse", [False, True])
def test_bins_arrive_step_by_step(coarse: bool) -> None:
    results = simulate(main, coarse, workers=2, seed=4)
    shown = sum((out for out, *_ in results), Counter[Any]())
    assert shown == Counter({(key, n): 1 for key in range(200) for n in range(1, 61)})
    for _, moved, busy, _ in results:
        assert moved[-1] == 64 and not busy and moved[8] < 64
    progress = results[0][3]
    assert progress.steps_done == progress.steps and progress.bins_moved == progress.bins > 1


def test_it_needs_to_know_sizes() -> None:
    async def unknown(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            _, stream = scope.input()
            counts = megaphone.state_machine(configuration, stream, fold=lambda k, v, s: (s, []), interval=None, bins=4)
        with pytest.raises(megaphone.ControlError, match="a bound or an order needs statistics"):
            megaphone.Controller(control, counts).migrate([0] * 4, strategy=within(0.02))

    simulate(unknown, workers=1, seed=0)


async def hot_first(worker: dataflow.Worker, cancel: bool) -> Any:
    """Two keys have most records; bins are merged, so that there are eight."""
    shown: Counter[Any] = Counter()
    with worker.dataflow() as scope:
        control, configuration = scope.input()
        data, stream = scope.input()
        counts = megaphone.state_machine(
            configuration, stream, bins=16, interval=0.0,
            fold=lambda key, value, total: ((total or 0) + value, [(key, (total or 0) + value)]),
        )  # fmt: skip
        probe = counts.inspect(lambda _, pair: shown.update([pair])).probe()
    controller = megaphone.Controller(control, counts)
    places = []
    for time in range(60):
        data.send([(key, 1) for key in [*range(20), *[5] * 30, *[7] * 20]][worker.index :: worker.peers])
        if worker.index == 0 and time == 8:
            controller.migrate([1] * 16, strategy=megaphone.fluid(order="keys"))
        if worker.index == 0 and cancel and time == 14:
            controller.cancel()
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time)
        places.append((dict(controller.pinned), sum(controller.configuration)))
    return shown, places, controller.busy, controller.progress, counts.handle.store.view_apart()


@pytest.mark.parametrize("cancel", [False, True])
def test_the_hottest_keys_go_ahead_and_are_in_their_bins_in_the_end(cancel: bool) -> None:
    """As in Meces: they are at their new worker before any bin is."""
    results = simulate(hot_first, cancel, workers=2, seed=4)
    each = {key: 1 + 30 * (key == 5) + 20 * (key == 7) for key in range(20)}
    assert sum((shown for shown, *_ in results), Counter[Any]()) == Counter(
        {(key, n): 1 for key, count in each.items() for n in range(1, 60 * count + 1)}
    )
    for _, places, busy, _, apart in results:
        assert not busy and not apart and places[-1][0] == {}
        first = next(place for place in places if place[0])
        assert set(first[0].values()) == {1} and first[1] == 8, "keys first: no bin has moved yet"
        assert (places[-1][1] == 16) is not cancel
    progress = results[0][3]
    assert progress.steps_done == progress.steps and progress.bins_moved == progress.bins


def test_keys_that_cannot_move_alone_cannot_go_ahead() -> None:
    async def plain(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input()
            _, stream = scope.input()
            counts = megaphone.unary(configuration, stream, key=lambda r: r, fold=lambda t, r, s, n: [], bins=4)
        with pytest.raises(megaphone.ControlError, match="cannot move ahead of their bins: say order='hottest'"):
            megaphone.Controller(control, counts).migrate([0] * 4, strategy=megaphone.fluid(order="keys"))

    simulate(plain, workers=1, seed=0)
