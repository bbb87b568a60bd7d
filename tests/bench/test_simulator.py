"""The simulator of clusters: what can be worked out by hand comes out, real controllers get where they want to, and
more of anything that costs takes longer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import megaphone
from bench.counting import halved
from bench.experiments.simulator_figures import moving
from bench.simulator.clockwork import SimulatedRun
from bench.simulator.cluster import GIGABIT, SimulatedCluster, this_machine
from bench.simulator.costs import KEPT, MeasuredCosts, read_costs, write_costs
from bench.simulator.fitting import _epochs
from bench.simulator.probing import ClosedProbe
from bench.simulator.scaling import SimulatedReadings, SimulatedScaling
from bench.simulator.validation import simulated_closed
from bench.simulator.workload import SimulatedLoad, zipf_shares
from megaphone.migration.strategies import Strategy
from planners.loop import Driver, Loop, by_bins
from planners.scaling import Autoscaler, ScaleDriver, ScaleSettings

COSTS = MeasuredCosts(
    epoch=100e-6, peer=2e-6, message=3e-6, route=5e-9, apply=((1e6, 10e-9), (1e9, 20e-9)), byte=0.1e-9, hop=20e-6,
    wait=50e-6, step=100e-6, bin=1e-6, take=0.2e-9, install=0.3e-9, snapshot=0.5e-9, start=0.5,
)  # fmt: skip
CLUSTER = SimulatedCluster(8, per_machine=2, cores=2, bandwidth=10 * GIGABIT)
LOAD = SimulatedLoad(1e6, 6.0, 256, 1e10, epoch=0.01)


def migrated(strategy: Strategy, cluster: SimulatedCluster = CLUSTER, load: SimulatedLoad = LOAD) -> SimulatedRun:
    return SimulatedRun(cluster, COSTS, load, [moving("it", strategy, 1.5)]).run()


def greatest(run: SimulatedRun) -> float:
    return run.outcome().migrations[0].during.greatest / 1e9


def took(run: SimulatedRun) -> float:
    seconds = run.episodes.all[0].seconds
    assert seconds is not None
    return seconds


def test_an_epoch_costs_what_its_parts_cost() -> None:
    alone = simulated_closed(ClosedProbe(1, 1000, domain=1 << 17), COSTS)
    state = np.array([float(8 << 17)])
    assert alone == pytest.approx(COSTS.epoch + 1000 * (COSTS.route + COSTS.apply_seconds(state)[0]), rel=1e-6)
    two = simulated_closed(ClosedProbe(2, 1000, domain=1 << 18), COSTS)
    more = COSTS.peer + COSTS.message + 1000 * COSTS.byte * 16 / 2
    assert two == pytest.approx(alone + more, rel=0.01)
    four = simulated_closed(ClosedProbe(4, 1000, domain=1 << 19), COSTS)
    assert four == pytest.approx(2 * (alone + 3 * (COSTS.peer + COSTS.message) + 1000 * COSTS.byte * 12), rel=0.01)


def test_costs_are_found_again() -> None:
    probes = [(workers, records) for workers in (1, 2, 4, 8) for records in (0, 256, 4096, 65536)]
    found = {}
    for workers, records in probes:
        others, turns = workers - 1, max(1.0, workers / 2)
        seconds = 1e-4 + others * 2e-6 + (records > 0) * (5e-5 + others * 3e-6)
        seconds += (records > 0) * (4e-5 * (others > 0) + 3e-5 * (turns > 1))
        seconds += records * (2e-8 + 16 * 1e-10 * others / workers) * turns**0.5
        found[workers, records] = seconds * turns
    wanted = (1.5e-4, 4e-5, 3e-5, 2e-6, 3e-6, 2e-8, 1e-10, 0.5)
    assert _epochs(found) == pytest.approx(wanted, rel=1e-2)


@pytest.mark.parametrize(
    "strategy",
    [
        megaphone.all_at_once(),
        megaphone.fluid(),
        megaphone.batched(8),
        megaphone.matched(gap=2),
        megaphone.within(0.05),
    ],
    ids=lambda strategy: strategy.name,
)
def test_the_real_controller_gets_bins_to_where_they_shall_be(strategy: Strategy) -> None:
    run = migrated(strategy)
    wanted = halved(256, workers=8)
    assert run.handle.configuration.tolist() == wanted.tolist()
    assert not run.controller.busy and run.controller.progress.bins_moved == (wanted != np.arange(256) % 8).sum()
    assert run.moved == pytest.approx(1e10 / 4)
    assert len(run.done) == LOAD.epochs and run.done == sorted(run.done)


def test_what_a_strategy_trades() -> None:
    at_once, fluid, within = (migrated(s) for s in (megaphone.all_at_once(), megaphone.fluid(), megaphone.within(0.05)))
    assert greatest(at_once) > 0.9 * 1e10 / 16 * COSTS.install  # what the busiest worker installs
    assert greatest(fluid) < greatest(within) <= 0.05 < greatest(at_once)
    assert took(within) < took(fluid)


def test_links_stragglers_snapshots_and_state_cost() -> None:
    plain = migrated(megaphone.all_at_once())
    thin = migrated(megaphone.all_at_once(), replace(CLUSTER, per_machine=1, cores=1, bandwidth=GIGABIT))
    assert greatest(thin) > 0.9 * 1e10 / 16 / GIGABIT > greatest(plain)
    slow = migrated(megaphone.all_at_once(), replace(CLUSTER, slow={3: 4.0}))
    assert greatest(slow) > 2 * greatest(plain)
    saved = migrated(megaphone.all_at_once(), load=replace(LOAD, snapshots=0.5))
    assert saved.outcome().total.quantile(0.99) >= plain.outcome().total.quantile(0.99)
    assert max(saved.done[e] - (e + 1) * 0.01 for e in range(100)) >= 0.9 * 1e10 / 8 * COSTS.snapshot
    late = SimulatedRun(CLUSTER, replace(COSTS, stall=0.004), LOAD).run().outcome().total
    assert late.greatest >= 0.004 * 1e9 > late.quantile(0.5)
    crowded = SimulatedRun(this_machine(8), COSTS, LOAD).run()
    turns = replace(COSTS, switch=50e-6, crowd=0.5, slice=0.001)
    assert SimulatedRun(this_machine(8), turns, LOAD).run().done[5] > crowded.done[5] + 0.7 * 0.001
    assert crowded.done[50] > SimulatedRun(this_machine(8, cores=8), COSTS, LOAD).run().done[50]


def test_the_same_run_twice() -> None:
    one, two = (migrated(megaphone.within(0.05)) for _ in range(2))
    assert one.done == two.done


def test_workers_come_and_go_with_the_real_autoscaler() -> None:
    def rate(second: float) -> float:
        return 50e6 if second < 20 else 150e6 if second < 60 else 50e6

    run = SimulatedRun(
        SimulatedCluster(16), COSTS, replace(LOAD, rate=rate, seconds=90.0, epoch=0.05, state=1e8), members=2
    )
    driver = ScaleDriver(SimulatedScaling(run), Autoscaler(ScaleSettings(maximum=16, cool_down=1)))
    readings = SimulatedReadings(run, driver, 2.0)
    run.run()
    numbers = [members for _, members in readings.workers]
    assert numbers[0] == 2 and max(numbers) >= 3 and numbers[-1] < max(numbers)
    assert set(run.handle.configuration.tolist()) == set(range(run.members))
    assert any(decision.acts for decision in driver.decisions)


def test_the_real_loop_takes_load_off_a_straggler() -> None:
    load = replace(LOAD, rate=100e6, seconds=15.0, epoch=0.1)
    run = SimulatedRun(replace(CLUSTER, slow={3: 3.0}), COSTS, load)
    driver = Driver(run.controller, Loop(by_bins(theta=0.2)), strategy=megaphone.batched(4), cost="nanoseconds")
    run.hooks.append(lambda _: (driver.step(), None)[1])
    run.run()
    held = np.bincount(run.handle.configuration, minlength=8)
    assert held[3] < 20 and held.sum() == 256
    assert any(decision.acts for decision in driver.decisions)


def test_costs_are_kept(tmp_path: Path) -> None:
    write_costs(COSTS, tmp_path / "costs.json", revision="abc")
    assert read_costs(tmp_path / "costs.json") == COSTS
    kept = read_costs(KEPT)
    assert kept.epoch > 0 and kept.take > 0


def test_shares_of_skewed_keys() -> None:
    shares = zipf_shares(16, 1.2, 1000)
    assert shares.sum() == pytest.approx(1.0) and shares.max() > 3 / 16
