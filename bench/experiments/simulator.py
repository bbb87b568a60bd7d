"""The simulator of clusters: costs are measured, and its predictions are compared with real runs, in one command."""

from __future__ import annotations

from dataclasses import asdict

from bench.registry import benchmark
from bench.run import Run
from bench.simulator.costs import KEPT, MeasuredCosts, read_costs, write_costs
from bench.simulator.fitting import EPOCHS, MOVED, STATES, STEADY, STEPS, TURNS, KernelCosts, fit
from bench.simulator.probing import ClosedProbe, Observations, apply_by_state, route_seconds
from bench.simulator.validation import BOUND, CLOSED, OPEN, Prediction, compare_closed, compare_open
from megaphone.harness import tables
from megaphone.harness.provenance import Provenance


@benchmark("simulator", "costs of epochs, records, bytes and snapshots; predictions beside real runs, 2 to 16 workers")
def simulator(run: Run) -> None:
    costs = _fitted(run)
    for name, value in asdict(costs).items():
        if name in ("swing", "crowd"):
            run.report(f"cost: {name}", value, "")
        elif name != "apply":
            run.report(f"cost: {name}", value * 1e9, "ns")
    for size, seconds in costs.apply:
        run.report(f"cost: apply, {size / 2**20:,.0f} MiB of state", seconds * 1e9, "ns")
    _validate(run, costs, 1 if run.quick else 3)


@benchmark("simulator-validate", "predictions from the costs that are kept beside real runs, 2 to 16 workers")
def validate(run: Run) -> None:
    _validate(run, read_costs(), 1 if run.quick else 3)


def _fitted(run: Run) -> MeasuredCosts:
    kernels = KernelCosts(route_seconds(), apply_by_state(STATES))
    seen = Observations()
    for probe in run.each("closed loops, for costs", [ClosedProbe(*probe) for probe in EPOCHS]):
        seen.epoch(probe)
    for moving in run.each("open loops, for costs", [STEADY, TURNS, *MOVED, STEPS]):
        seen.opened(moving)
    costs = fit(seen, kernels)
    if not run.quick:
        provenance = Provenance(["python", "-m", "bench", "run", "simulator"])
        write_costs(costs, KEPT, revision=provenance.short_revision, date=f"{provenance.started:%Y-%m-%d}")
    return costs


def _validate(run: Run, costs: MeasuredCosts, rounds: int) -> None:
    found: list[Prediction] = []
    seen = Observations()
    for probe in run.each("closed loops", CLOSED[::2] if run.quick else CLOSED):
        found.append(compare_closed(seen, probe, costs, rounds))
    for open_ in run.each("open loops", OPEN[:2] if run.quick else OPEN):
        found += compare_open(seen, open_, costs, rounds)
    rows = []
    for each in found:
        run.report(f"{each.name} (baseline: real)", each.simulated, each.unit, baseline=each.real)
        verdict = "" if each.holds else f"more than {BOUND:.0%}"
        cells = [tables.number(each.real), tables.number(each.simulated), each.unit, f"{each.error:+.0%}", verdict]
        rows.append([each.name, *cells])
    run.report("predictions within 20 %", sum(each.holds for each in found), "of them", baseline=len(found))
    run.tell(tables.table(["what", "real", "simulated", "unit", "error", ""], rows, (1, 2, 4)))
