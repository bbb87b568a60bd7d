"""The timeline of an epoch: what the processor time of a closed loop goes to, on 2, 8 and 32 workers."""

from __future__ import annotations

import time
from collections import Counter

import dataflow
from bench.epochs import SHAPES
from bench.registry import benchmark
from bench.run import Run
from bench.sampling import sampling

SHAPE = "exchange, map, exchange"


@benchmark("workers-timeline", "where an epoch's processor time goes, per worker, on 2, 8, 32 workers, by samples")
def timeline(run: Run) -> None:
    for number in run.each("workers", [2, 8, 32]):
        epochs = max(50, (4_000 if run.quick else 20_000) // number)
        outcomes = dataflow.execute(_main, epochs, workers=number)
        mean = sum(seconds for seconds, _ in outcomes) / number * 1e6
        phases: Counter[str] = Counter()
        for _, counts in outcomes:
            phases.update(counts)
        run.report(f"{number} workers, all", mean, "µs")
        for phase, count in phases.most_common():
            run.report(f"{number} workers, {phase}", mean * count / phases.total(), "µs")


async def _main(worker: dataflow.Worker, epochs: int) -> tuple[float, dict[str, int]]:
    """Processor time of an epoch, and samples by phase."""
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = SHAPES[SHAPE](stream).probe()
    warm = max(10, epochs // 10)
    processor = 0.0
    with sampling() as samples:
        for epoch in range(warm + epochs):
            if epoch == warm:
                samples.functions.clear()
                processor = time.process_time()
            numbers.send([worker.index + epoch])
            numbers.advance_to(epoch + 1)
            await probe.wait_passed(epoch)
        processor = time.process_time() - processor
    return processor / epochs, dict(samples.by_phase())
