"""What epochs cost, from two workers to sixty-four: the aims of "an epoch at sixty-four workers", in one run."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory

import dataflow
from bench.counting import CountLoad, Setup, measure, open_loop, throughput
from bench.epochs import HELLO, ClosedLoop, idle, run_loop, seconds_of
from bench.registry import benchmark
from bench.run import Run
from megaphone import harness

MILLION = 1_000_000
EPOCH_RECORDS = 1 << 20  # of all workers together, where records are counted as fast as possible
AIMS = {2: 100, 8: 150, 16: 250, 64: 500}  # µs of a processor for an epoch, per worker


@benchmark("workers", "what epochs cost on 2 to 64 workers: all of workers-epoch, -loop, -count, -open and -start")
def workers(run: Run) -> None:
    for part in (epoch, loop, count, open_loops, start):
        part(run)


@benchmark("workers-epoch", "processor time of an epoch (exchange, map, exchange) per worker, on 2, 8, 16, 64 workers")
def epoch(run: Run) -> None:
    for number in run.each("workers", list(AIMS)):
        epochs = max(50, (1_000 if run.quick else 8_000) // number)
        costs = [run_loop(ClosedLoop("exchange, map, exchange", epochs), number) for _ in range(_repeats(run))]
        mean = median(sum(each.processor for each in cost) / number for cost in costs)
        run.report(f"{number} workers, an epoch, per worker (aim: {AIMS[number]})", mean * 1e6, "µs")


@benchmark("workers-loop", "closed loops on two processes: exchanges, maps, idle dataflows beside, a busy one")
def loop(run: Run) -> None:
    epochs = 3_000 if run.quick else 20_000
    alone = _rate(run, ClosedLoop("one exchange", epochs))
    run.report("one exchange (aim: 25,000)", alone, "epochs/s")
    beside = _rate(run, ClosedLoop("one exchange", epochs // 3, idle=1000))
    run.report("one exchange, 1,000 idle dataflows beside it (aim: the same)", beside, "epochs/s", baseline=alone)
    for shape, share in (("ten exchanges", 3), ("ten maps", 1), ("a thousand maps", 30)):
        run.report(shape, _rate(run, ClosedLoop(shape, epochs // share)), "epochs/s")
    # A step of the busy dataflow takes about a millisecond. A fair worker makes one or two of them between two turns of
    # the other dataflow, which needs two or three turns for an epoch.
    crowded = _rate(run, ClosedLoop("one exchange", 50, busy=1))
    run.report("one exchange, a busy dataflow beside it: an epoch takes", 1e3 / crowded, "ms")


@benchmark("workers-count", "counting 16 million keys on 2, 8 and 16 workers, as many records in an epoch on each")
def count(run: Run) -> None:
    setup = Setup(2 * MILLION if run.quick else 16 * MILLION, 256)
    seconds = 2.0 if run.quick else 4.0
    first: float | None = None
    for number in run.each("workers", [2, 8, 16]):
        rates = [throughput(setup, seconds, EPOCH_RECORDS // number, number) for _ in range(_repeats(run))]
        rate = median(rates) / MILLION
        aim = " (aim: 0.7 of what two reach)" if number == 16 else ""
        run.report(f"{number} workers{aim}", rate, "M records/s", baseline=first)
        first = first or rate


@benchmark("workers-open", "open loop at 1 M records/s on 8 and on 2 workers; a fluid migration of 2^12 bins")
def open_loops(run: Run) -> None:
    domain = 2 * MILLION if run.quick else 16 * MILLION
    seconds = 4.0 if run.quick else 8.0
    steady = _median(run, lambda: _open(Setup(domain, 4096), CountLoad(MILLION, seconds, 0.002), 8).quantile(0.99))
    run.report("8 workers, 2 ms epochs, .99 (aim: 20)", steady / 1e6, "ms")
    two = _median(run, lambda: _open(Setup(domain, 4096), CountLoad(MILLION, seconds), 2).quantile(0.5))
    run.report("2 workers, 1 ms epochs, .5 (aim: 0.7)", two / 1e6, "ms")
    took = _median(run, lambda: _fluid(Setup(16 * MILLION if not run.quick else domain, 4096)))
    run.report("fluid over 2^12 bins (aim: 1.5)", took, "s")


@benchmark("workers-start", "importing the engine, starting 2 and 64 workers, and what 64 idle ones need")
def start(run: Run) -> None:
    with TemporaryDirectory() as folder:
        seconds_of(HELLO.format(workers=2), folder)
        bare = _median(run, lambda: seconds_of("pass", folder))
        imported = _median(run, lambda: seconds_of("import dataflow", folder))
        run.report("import dataflow, beyond a bare interpreter (aim: 0.2)", imported - bare, "s")
        for number, aim in ((2, " (aim: 0.5)"), (64, "")):
            hello = HELLO.format(workers=number)
            seconds = _median(run, lambda hello=hello: seconds_of(hello, folder))  # type: ignore[misc]
            run.report(f"hello on {number} workers{aim}", seconds, "s")
    shares = dataflow.execute(idle, 2.0 if run.quick else 5.0, workers=64)
    run.report("64 idle workers, together (aim: 5)", sum(shares) * 100, "% of a core")


def _repeats(run: Run) -> int:
    return 1 if run.quick else 3


def _median(run: Run, one: Callable[[], float]) -> float:
    return median(one() for _ in range(_repeats(run)))


def _rate(run: Run, loop: ClosedLoop) -> float:
    """Epochs a second on two workers."""
    return _median(run, lambda: 1 / max(cost.clock for cost in run_loop(loop, 2)))


def _open(setup: Setup, load: CountLoad, workers: int) -> harness.Histogram:
    recordings = dataflow.execute(open_loop, setup, load, workers=workers)
    return harness.Outcome.of(recordings, warmup=1, since="epoch end").total


def _fluid(setup: Setup) -> float:
    """Seconds that it takes to move a quarter of the bins one by one, at a million records a second."""
    outcome = measure(setup, CountLoad(MILLION, 9.0, migrations=((1.5, "fluid"),)))
    took = outcome.migrations[0].episode.seconds if outcome.migrations else None
    return 9.0 if took is None else took  # longer than the run
