"""How fast epochs go through ten operators, closed loop: an epoch is sent when the one before has come out."""

import time
from statistics import median

import dataflow
from bench.registry import benchmark
from bench.run import Run

OPERATORS = 10
MANY = 50  # the difference tells what an operator costs


@benchmark("pipeline", "epochs per second through ten operators, closed loop; the cost of an empty epoch per operator")
def pipeline(run: Run) -> None:
    epochs = 2_000 if run.quick else 10_000
    repeats = 3 if run.quick else 7
    cases = [
        (workers, records, operators) for workers in (1, 2) for records in (1, 0) for operators in (OPERATORS, MANY)
    ]
    rates: dict[tuple[int, int, int], float] = {}
    for case in run.each("pipelines", cases):
        rates[case] = median(_epochs_per_second(*case, epochs) for _ in range(repeats))
    for workers in (1, 2):
        aim = " (aim: 3,000)" if workers == 1 else ""
        for records, name in ((1, "epochs of one record"), (0, "empty epochs")):
            run.report(f"{name}, {_name(workers)}{aim}", rates[workers, records, OPERATORS], "epochs/s")
            more, less = 1 / rates[workers, records, MANY], 1 / rates[workers, records, OPERATORS]
            run.report(f"{name}, {_name(workers)}: each operator", (more - less) / (MANY - OPERATORS) * 1e6, "µs")


def _name(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers in one process"


def _epochs_per_second(workers: int, records: int, operators: int, epochs: int) -> float:
    rates = dataflow.execute(_main, records, operators, epochs, workers=workers, in_process=True)
    return float(min(rates))


async def _main(worker: dataflow.Worker, records: int, operators: int, epochs: int) -> float:
    batch = list(range(records))
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        for _ in range(operators):
            stream = stream.map(_same)
        probe = stream.probe()
    start = time.perf_counter()
    for epoch in range(epochs):
        if batch:
            numbers.send(batch)
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return epochs / (time.perf_counter() - start)


def _same(record: int) -> int:
    return record
