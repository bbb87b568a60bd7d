"""PMC, the offline half of MTM-aware migration: the cost kernel, the search over all targets, and Spark around them.

The papers took hundreds of minutes on 64 executors (Figure 14 of the live version, m = 64, n from 8 to 16). What runs
in one process is given in processor time; Spark, which is several processes, by the clock.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.registry import benchmark
from bench.run import Run
from bench.timing import best_of
from planners.intervals.matching import costs
from planners.model import Tasks
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.search import cheapest
from planners.mtm.transitions import Transitions

SEED = 14
EACH = 2  # tasks for each core, as `planners.spark.iteration` has it: that imports pyspark, and this module may not
Solver = Callable[..., tuple[float, int]]  # of cores, a problem and perhaps tasks: seconds and sweeps
BUDGET = 600.0  # seconds: what the largest problem may take


@benchmark("matching", "the cost between two partitionings: the staircase, as a ratio to scipy's assignment solver")
def matching(run: Run) -> None:
    repeats = 3 if run.quick else 7
    for m, nodes in run.each("partitionings", [(16, 4), (64, 8), (64, 16), (1024, 16)]):
        rng = np.random.default_rng(SEED)
        rows = np.sort(rng.integers(0, m + 1, (2_000, nodes + 1)), axis=1).astype(np.int16)
        rows[:, 0], rows[:, -1] = 0, m
        sizes = rng.integers(1, 100, m)
        prefix = np.concatenate([[0.0], np.cumsum(sizes)])
        costs(rows[0], rows[:2], prefix)  # compiles
        fast = _processor(partial(costs, rows[0], rows, prefix), repeats) / len(rows)
        slow = _processor(partial(_solver, rows[0], rows[:100], prefix), repeats) / 100
        run.report(f"m = {m}, n = {nodes}: a pair and interval", fast / nodes * 1e9, "ns", baseline=slow / nodes * 1e9)


def _solver(before: NDArray[np.int16], rows: NDArray[np.int16], prefix: NDArray[np.float64]) -> list[float]:
    from scipy.optimize import linear_sum_assignment

    found = []
    for after in rows:
        low = np.maximum(before[:-1, None], after[None, :-1])
        high = np.maximum(np.minimum(before[1:, None], after[None, 1:]), low)
        stays = prefix[high] - prefix[low]
        chosen = linear_sum_assignment(stays, maximize=True)
        found.append(prefix[-1] - stays[chosen].sum())
    return found


@benchmark("pmc", "projected migration costs in one process: processor time and its growth with partitionings")
def pmc(run: Run) -> None:
    cases = GROWTH[:3] if run.quick else GROWTH[:4]
    project(_problem(8, 2, 3, 0.5))  # compiles
    last: tuple[int, float] | None = None
    for m, low, high, tau in run.each("problems", cases):
        problem = _problem(m, low, high, tau)
        many = problem.check(10**8)
        start = time.process_time()
        solved = project(problem, limit=10**8)
        seconds = time.process_time() - start
        name = f"m = {m}, n = {low} to {high}, tau = {tau}: {many:,} partitionings, {solved.iterations} sweeps"
        run.report(name, seconds, "s")
        run.report(f"{many:,} partitionings: one of them in one sweep", seconds / many / solved.iterations * 1e6, "µs")
        if last:
            exponent = np.log(seconds / last[1]) / np.log(many / last[0])
            run.report(f"{last[0]:,} to {many:,}: time grows with the power", float(exponent), "")
        last = many, seconds
    _pruning(run, _problem(*cases[1]))


def _pruning(run: Run, problem: MTMProblem) -> None:
    """What the search saves: the same minima, by the costs of all pairs."""
    solved = project(problem)
    nodes = max(problem.counts)
    rows, prefix = problem.partitionings(nodes).cuts(), problem.cells.size_prefix()
    values, tree = problem.gamma * solved.costs[nodes], problem.partitionings(nodes).tree()
    some = rows[:: max(1, len(rows) // 200)]
    searched = _processor(lambda: cheapest(some, tree, values, prefix), 3)
    tried = _processor(lambda: [(costs(row, rows, prefix) + values).min() for row in some], 3)
    pairs = len(some) * len(rows)
    run.report(f"a pair of {len(rows):,}, by search", searched / pairs * 1e9, "ns", baseline=tried / pairs * 1e9)


# m, least and most nodes, tau: 67 partitionings, 1,776, 15,044, 102,412 (the papers' m and n), 337,806, 1,068,578 and
# 2,982,585.
GROWTH = [
    (16, 2, 4, 0.4), (32, 2, 5, 0.4), (64, 2, 5, 0.4), (64, 8, 16, 0.2), (64, 4, 7, 0.4), (64, 4, 8, 0.4),
    (64, 4, 9, 0.4),
]  # fmt: skip


@benchmark("pmc-spark", "projected migration costs on Spark: growth, overhead over one process, two cores against one")
def pmc_spark(run: Run) -> None:
    """Stops before a problem that would, at the growth seen so far, exceed the budget of ten minutes."""
    sizes, budget = (GROWTH[:2], 30.0) if run.quick else (GROWTH, BUDGET)
    measured: list[tuple[int, float]] = []
    with_spark = _sessions()
    with run.progress("Spark", len(sizes)) as bar:
        for m, low, high, tau in sizes:
            problem = _problem(m, low, high, tau)
            many = problem.check(10**8)
            if measured and measured[-1][1] * (many / measured[-1][0]) ** 1.3 > budget:
                break
            seconds, sweeps = with_spark(2, problem)
            measured.append((many, seconds))
            name = f"m = {m}, n = {low} to {high}, tau = {tau}: {many:,} partitionings"
            run.report(f"{name}, {sweeps} sweeps, 2 cores", seconds, "s")
            bar.advance()
    _overhead(run, with_spark, _problem(*GROWTH[1 if run.quick else 4]))


@dataclass(frozen=True)
class SweepCosts:
    """What a sweep on Spark consists of, in seconds, measured here. One core is an executor's."""

    fixed: float  # jobs, checkpoints, and the driver, however little there is to do
    task: float  # each task besides, of the core that does it
    dispatch: float  # each task, of the driver, which hands them out one after the other
    kernel: float  # each partitioning: the search for its targets, by one process
    rest: float  # each partitioning: its row of the checkpoint, written and read, and settled, by one core
    at: int  # partitionings that this was measured with
    growth: float  # the search for targets among twice as many takes 2^growth as long

    def seconds(self, partitionings: int, cores: int) -> float:
        """A sweep over so many partitionings on so many cores, with `EACH` tasks for each."""
        each = self.kernel * float((partitionings / self.at) ** self.growth) + self.rest
        return self.fixed + EACH * (self.task + cores * self.dispatch) + partitionings / cores * each


@benchmark("pmc-model", "projected costs on 64 executors: a model from measured parts, judged by one core and two here")
def pmc_model(run: Run) -> None:
    with_spark, problem = _sessions(), _problem(*GROWTH[1 if run.quick else 3])
    many, tiny = problem.check(10**8), _problem(24, 2, 4, 0.4)
    project(_problem(8, 2, 3, 0.5))  # compiles
    smaller = _problem(*GROWTH[0 if run.quick else 2])
    (before, _), (kernel, sweeps) = _kernel(smaller), _kernel(problem)
    growth = float(np.log(kernel / before) / np.log(many / smaller.check(10**8)))
    (few, rounds), (lots, _) = with_spark(2, tiny, 2), with_spark(2, tiny, 66)
    task, dispatch = max(0.0, (lots - few) / rounds / 64 * 2), _dispatch()  # two cores did them
    fixed = few / rounds - task
    measured = {cores: with_spark(cores, problem)[0] / sweeps for cores in (1, 2)}
    rest = max(0.0, (measured[1] - fixed - EACH * (task + dispatch)) / many - kernel)
    model = SweepCosts(fixed, task, dispatch, kernel, rest, many, growth)
    run.report("a sweep of next to nothing, 2 tasks", fixed, "s")
    run.report("each task more, of a core", task * 1e3, "ms")
    run.report("each task more, of the driver", dispatch * 1e3, "ms")
    run.report("a partitioning: search in one process", kernel * 1e6, "µs")
    run.report("its growth: the power of the number of partitionings", growth, "")
    run.report("a partitioning: everything else on one core", rest * 1e6, "µs")
    for cores, found in measured.items():
        run.report(f"{many:,} partitionings, {cores} cores: a sweep", found, "s", baseline=model.seconds(many, cores))
    for size in (many, 1_000_000, 10_000_000):
        here, there = (model.seconds(size, cores) * sweeps for cores in (2, 64))
        run.report(
            f"{size:,} partitionings, {sweeps} sweeps, 64 executors (predicted; against 2)", there, "s", baseline=here
        )


def _dispatch(tasks: int = 2_000) -> float:
    """Seconds that the driver needs for a task: of many in which there is nothing to do, and no Python."""
    from planners.spark import session

    spark = session.start("local[2]")
    try:
        nothing = spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite")
        nothing.save()  # loads what is compiled
        return best_of(1, nothing.save) / tasks
    finally:
        spark.stop()


def _kernel(problem: MTMProblem) -> tuple[float, int]:
    """Processor seconds of one process for each partitioning in a sweep, and how many sweeps there were."""
    start = time.process_time()
    solved = project(problem, limit=10**8)
    many = sum(len(costs) for costs in solved.costs.values())
    return (time.process_time() - start) / solved.iterations / many, solved.iterations


def _overhead(run: Run, with_spark: Solver, problem: MTMProblem) -> None:
    many = problem.check(10**8)
    project(_problem(8, 2, 3, 0.5))
    bare = best_of(1, lambda: project(problem, limit=10**8))
    one, _ = with_spark(1, problem)
    two, _ = with_spark(2, problem)
    run.report(f"{many:,} partitionings: Spark on one core, against the bare kernel", one, "s", baseline=bare)
    run.report(f"{many:,} partitionings: Spark on two cores, against one", two, "s", baseline=one)


def _sessions() -> Solver:
    """Seconds and sweeps of one run with so many cores; the session and the executors' compiled code are warm."""
    from planners.spark import iteration, session
    from planners.spark.folder import Folder

    def solve(cores: int, problem: MTMProblem, tasks: int | None = None) -> tuple[float, int]:
        spark = session.start(f"local[{cores}]")
        try:
            with tempfile.TemporaryDirectory() as folder:
                iteration.solve(spark, _problem(24, 2, 4, 0.5), Folder(spark, folder), tasks=2 * cores)
                start = time.perf_counter()
                solution = iteration.solve(spark, problem, Folder(spark, folder), limit=10**8, tasks=tasks)
                return time.perf_counter() - start, solution.iterations
        finally:
            spark.stop()

    return solve


def _processor(body: Callable[[], object], repeats: int) -> float:
    """The least seconds of processor time that one call took: what others do on the machine does not count."""
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        body()
        least = min(least, time.process_time() - start)
    return least


def _problem(m: int, low: int, high: int, tau: float) -> MTMProblem:
    """Word counts: words of a finite Zipf law in m tasks of fifty each; the work for a word varies more than its size.

    Node counts walk up and down by one, as hourly traffic does.
    """
    rng = np.random.default_rng(SEED)
    words = rng.permutation(1 / np.arange(1, 50 * m + 1) ** 0.8).reshape(m, 50)
    work = words * rng.uniform(0.5, 1.5, words.shape)
    tasks = Tasks(np.ceil(1e6 * words.sum(axis=1)), np.ceil(1e6 * work.sum(axis=1)))
    counts = list(range(low, high + 1))
    near = np.abs(np.subtract.outer(counts, counts)) == 1
    matrix = near / near.sum(axis=1, keepdims=True)
    return MTMProblem(tasks, Transitions(counts, matrix), tau, gamma=0.8)
