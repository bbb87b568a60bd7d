"""Hash count and key count (sections 5.2 and 5.3), beside the best plain loop that numpy and numba allow."""

from __future__ import annotations

from statistics import median

import megaphone
from bench import footprint
from bench.counting import CountLoad, Setup, measure, plain_throughput, throughput
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import Outcome
from megaphone.migration.strategies import Strategy
from megaphone.router.routing import WINDOW

MILLION = 1_000_000
MIB = 1 << 20
# MiB that a migration may add to its budget. What makes it up:
#  4  F copies as much in a step before anything leaves (`routing.PIECES`); when the transport has copied it
#     into shared memory (`dataflow.comm.arena`) the C library keeps the first copy's room (`dataflow.launch.heap`).
#  4  The heap grows by at least so much at a time (`heap._STRIDE`).
#  4  Room that is lost between blocks, large pages that are used in part, what Python makes of messages.
# What does not: the budget bounds what is on its way in a step, so F's window of 64 MiB comes to bear only with a bin
# that is larger than its budget (see `_allowed`) and with all-at-once. Bodies on their way lie in the arena of the
# sender, at most 64 MiB, whose pages count on both sides: that is the budget, not more. The heap may keep 128 MiB of
# what was freed, but only of what was in use at once. Pages that are kept ready for tables (`memory.prefault`,
# a quarter of what is given out, 64 MiB at most) were there before, where tables have 256 MiB or more; smaller ones add
# a quarter of what arrives.
CONSTANT = 12
STRATEGIES = {
    "first": "the first time, batches of 16",  # it touches memory, which the strategies after it find ready
    "all-at-once": "all-at-once",
    "batched": "batches of 16, split above 8 MiB",
    "whole batches": "batches of 16, never split",
    "fluid": "fluid",
}
QUANTILES = {".5": 0.5, ".9": 0.9, ".99": 0.99, ".9999": 0.9999, "max": 1.0}


@benchmark("count", "hash count and key count on two processes: all of count-throughput, -overhead, -open and -migrate")
def count(run: Run) -> None:
    for part in (throughputs, overhead, open_loop, migrate):
        part(run)


@benchmark("count-throughput", "counting, migratable, against the best plain loop without an engine")
def throughputs(run: Run) -> None:
    domain = 2 * MILLION if run.quick else 16 * MILLION
    seconds, repeats = (1.0, 1) if run.quick else (3.0, 3)
    for dense, aim in ((False, 12), (True, 25)):
        kind = "dense" if dense else "hashed"
        pairs = []
        for _ in run.each(f"{kind} keys", range(repeats)):
            pairs.append((throughput(Setup(domain, 4096, dense), seconds), plain_throughput(dense, domain, seconds)))
        engine, plain = (median(column) for column in zip(*pairs, strict=True))
        label = f"{domain // MILLION} M {kind} keys, 2^12 bins (aim: {aim} M/s, half of the plain loop)"
        run.report(label, engine / MILLION, "M records/s", baseline=plain / MILLION)


@benchmark("count-overhead", "counting, migratable against native (a plain exchange and a table), by number of bins")
def overhead(run: Run) -> None:
    domain = 2 * MILLION if run.quick else 16 * MILLION
    seconds, repeats = (1.0, 1) if run.quick else (2.0, 3)
    powers = (4, 12, 20) if run.quick else range(4, 21, 4)
    for dense in (False, True):
        kind = "dense" if dense else "hashed"
        for power in run.each(f"{kind} keys, numbers of bins", list(powers)):
            pairs = []
            for _ in range(repeats):
                native = throughput(Setup(domain, 0, dense), seconds)
                pairs.append(native / throughput(Setup(domain, 1 << power, dense), seconds))
            run.report(f"{kind}, 2^{power} bins: time over native's (aim: 1.1)", median(pairs), "times", baseline=1.0)


@benchmark("count-open", "open loop, one-millisecond epochs, 2^12 bins: latency at 1 and 4 million/s, medians of runs")
def open_loop(run: Run) -> None:
    domain = 2 * MILLION if run.quick else 16 * MILLION
    seconds, repeats = (5.0, 1) if run.quick else (10.0, 3)  # one run of three often meets a stall of the host
    for dense in (False, True):
        for rate in run.each("dense keys, rates" if dense else "hashed keys, rates", [MILLION, 4 * MILLION]):
            outcomes = [measure(Setup(domain, 4096, dense), CountLoad(rate, seconds)) for _ in range(repeats)]
            kind = f"{'dense' if dense else 'hashed'}, {rate // MILLION} M/s"
            for name, quantile in QUANTILES.items():
                value = median(outcome.total.quantile(quantile) for outcome in outcomes) / 1e6
                aim = " (aim: 10)" if name == ".99" and rate == 4 * MILLION else ""
                run.report(f"{kind}, {name}{aim}", value, "ms")
            worst = max(outcome.total.quantile(0.99) for outcome in outcomes) / 1e6
            run.report(f"{kind}, the worst run's .99", worst, "ms")
            _tell_stolen(run, kind, outcomes)
            for outcome in outcomes:
                if not outcome.sustained:
                    run.report(f"{kind} was not sustained: lag", outcome.lag, "s")


@benchmark("count-migrate", "moving half of one worker's bins and back: duration and maximum latency of each strategy")
def migrate(run: Run) -> None:
    domains = (16,) if run.quick else (16, 64)
    cases = [(domain, dense, power) for dense, power in ((True, 8), (False, 12)) for domain in domains]
    rates = [MILLION] if run.quick else [MILLION, 4 * MILLION]
    for domain, dense, power in cases:
        for rate in run.each(f"{domain} M {'dense' if dense else 'hashed'} keys, rates", rates):
            setup = Setup(domain * MILLION, 1 << power, dense)
            plan = _plan(1 if run.quick else 2)
            seconds = plan[-1][0] + (2.5 if power <= 8 else 30.0)  # fluid takes five seconds for 2^10 bins
            load = CountLoad(rate, seconds, migrations=plan)
            outcome = measure(setup, load)
            kind = f"{domain} M {'dense' if dense else 'hashed'}, 2^{power} bins, {rate // MILLION} M/s"
            steady = outcome.migrations[0].before
            run.report(f"{kind}, .99 before the first migration", steady.quantile(0.99) / 1e6, "ms")
            run.report(f"{kind}, maximum before the first migration", steady.greatest / 1e6, "ms")
            _tell_stolen(run, kind, [outcome])
            for name, label in STRATEGIES.items():
                mine = [m for m in outcome.migrations if m.episode.name == name and m.episode.seconds is not None]
                if not mine:
                    run.report(f"{kind}, {label}: not complete at the end of", seconds, "s")
                    continue
                took = median([m.episode.seconds or 0.0 for m in mine])
                most = median([m.during.greatest for m in mine])
                run.report(f"{kind}, {label}: duration", took * 1000, "ms")
                run.report(f"{kind}, {label}: maximum latency", most / 1e6, "ms")


@benchmark("count-memory", "moving half of one worker's bins: peak memory beyond the state that comes, by strategy")
def memory(run: Run) -> None:
    million = 16 if run.quick else 64
    for dense, power in ((True, 8), (False, 12)):
        setup = Setup(million * MILLION, 1 << power, dense)
        kind = f"{million} M {'dense' if dense else 'hashed'}, 2^{power} bins"
        strategies: list[tuple[str, Strategy]] = [("fluid, budget 1 MiB", megaphone.fluid(budget=1 << 20))]
        for budget in [4, 32] if dense else [8, 32]:
            size = budget << 20
            strategies += [
                (f"batches of 64, budget {budget} MiB", megaphone.batched(64, budget=size)),
                (f"matched, budget {budget} MiB", megaphone.matched(budget=size)),
            ]
        strategies.append(("all at once", megaphone.all_at_once()))
        moved = 0
        for name, strategy in run.each(kind, strategies):
            found = footprint.measure(setup, strategy)
            for worker, (there, back) in enumerate(found):
                most = max(there.beyond, back.beyond) / MIB
                allowed = _allowed(strategy.budget, there.largest)
                run.report(f"{kind}, {name}: worker {worker}, beyond state", most, "MiB", baseline=allowed)
                moved = max(moved, there.received)
        run.report(f"{kind}: what moves", moved / MIB, "MiB")


def _tell_stolen(run: Run, kind: str, outcomes: list[Outcome]) -> None:
    """Stalls of the host, tens of milliseconds each, raise the maxima of a run: they are not the program's doing."""
    run.report(f"{kind}, processor time that the host withheld", sum(o.stolen for o in outcomes) * 1000, "ms")


def _allowed(budget: int | None, largest: int) -> float | None:
    """MiB that a migration may add: a bin above the budget goes alone, and no more of it than F's window at once."""
    return None if budget is None else max(budget, min(largest, WINDOW)) / MIB + CONSTANT


def _plan(trips: int) -> tuple[tuple[float, str], ...]:
    """So many round trips of each strategy (of the first, one), with time to calm down in between. With one trip, a
    stall of the host would be half of what is reported."""
    names = [name for name in STRATEGIES for _ in range(2 if name == "first" else 2 * trips)]
    return tuple((2.5 + 1.6 * place, name) for place, name in enumerate(names))
