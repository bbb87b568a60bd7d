"""Latency under open-loop load: two worker processes, one-millisecond epochs, and what the harness itself costs."""

import time
from statistics import median

import trio

import dataflow
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import LoadSchedule, Outcome, Recording, drive, plots


@benchmark("open-loop", "latency of an exchange under open-loop load, two processes, 1 ms epochs; a CCDF")
def open_loop(run: Run) -> None:
    seconds = 3.0 if run.quick else 10.0
    families = {}
    for rate in run.each("rates", [1_000, 10_000, 100_000]):
        outcome = Outcome.of(dataflow.execute(_exchange, rate, seconds, workers=2), warmup=1)
        label = f"{rate:,}" if outcome.sustained else f"{rate:,} (not sustained)"
        families[label] = outcome.total
        for name, q in ((".5", 0.5), (".99", 0.99), ("max", 1.0)):
            run.report(f"{label} records/s, {name}", outcome.total.quantile(q) / 1e6, "ms")
    title = "An exchange between two processes under open-loop load, epochs of 1 ms"
    run.draw(plots.ccdf(families, title, ordered=True, legend="records/s"))


@benchmark("harness", "CPU time of the open-loop driver, as a ratio to a plain loop that sleeps until epochs are due")
def harness(run: Run) -> None:
    seconds = 2.0 if run.quick else 5.0
    pairs = []
    for _ in run.each("runs", range(3 if run.quick else 5)):
        epochs = round(seconds * 1000)
        pairs.append((dataflow.execute(_driven, seconds)[0] / epochs, dataflow.execute(_plain, epochs)[0] / epochs))
    driven, plain = (median(column) * 1e6 for column in zip(*pairs, strict=True))
    run.report("CPU per epoch of 1 ms", driven, "µs", baseline=plain)


async def _exchange(worker: dataflow.Worker, rate: int, seconds: float) -> Recording:
    schedule = LoadSchedule(rate, seconds, workers=worker.peers)
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.exchange(lambda n: n).map(lambda n: n + 1).probe()
    return await drive(
        worker, schedule, lambda _, low, high: numbers.send(range(low, high)), probe, inputs=[numbers], grace=1
    )


async def _driven(worker: dataflow.Worker, seconds: float) -> float:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.map(lambda n: n + 1).probe()
    schedule = LoadSchedule(10_000, seconds)
    start = time.process_time()
    await drive(worker, schedule, lambda _, low, high: numbers.send(range(low, high)), probe, inputs=[numbers])
    return time.process_time() - start


async def _plain(worker: dataflow.Worker, epochs: int) -> float:
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = stream.map(lambda n: n + 1).probe()
    start, begin = time.process_time(), trio.current_time()
    for epoch in range(epochs):
        await trio.sleep_until(begin + (epoch + 1) / 1000)
        numbers.send(range(10 * epoch, 10 * epoch + 10))
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return time.process_time() - start
