"""How long `ssm` takes: the paper's 2 ms at 64 tasks, the aims beyond, and how it grows with tasks and nodes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from bench.experiments.planning.workload import word_count
from bench.registry import benchmark
from bench.run import Run
from bench.timing import best_of
from dataflow.compiled.kernel import kernel
from planners import Intervals, Tasks, ssm
from planners.intervals import ssm_kernel
from planners.intervals.feasibility import smallest_tau, tightest_cuts
from planners.intervals.ssm_kernel import Floats, Ints
from planners.model import Limits

AIMS = {64: 2.0, 1024: 50.0, 4096: 1000.0}  # tasks: milliseconds, at 16 nodes


@benchmark("ssm", "time of ssm by tasks, nodes and tau; against the same program without its sliding windows")
def ssm_speed(run: Run) -> None:
    repeats = 3 if run.quick else 7
    _first_call(run)
    sizes = [64, 256, 1024, 4096] if run.quick else [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
    times = []
    for m in run.each("tasks", sizes):
        times.append(_milliseconds(word_count(m), 12, 16, 1.2, repeats))
        aim = f", aim below {AIMS[m]:g} ms" if m in AIMS else ""
        run.report(f"m = {m}, n = 12 to 16, tau = 1.2{aim}", times[-1], "ms", baseline=AIMS.get(m))
    run.report(f"growth: exponent of m from {sizes[-3]} to {sizes[-1]}", _exponent(sizes[-3:], times[-3:]), "")
    tasks = word_count(4096)
    for now, then in run.each("nodes", [(2, 2), (16, 16), (16, 128), (128, 16), (128, 128), (1024, 16), (1000, 1024)]):
        tau = max(1.2, 1.1 * smallest_tau(tasks, then))  # one task can weigh more than a mean node
        took = _milliseconds(tasks, now, then, tau, repeats)
        run.report(f"m = 4096, n = {now} to {then}, tau = {tau:.3g}", took, "ms")
    for tau in run.each("tau", [0.5, 1.2, 3.0, 15.0]):
        run.report(f"m = 4096, n = 12 to 16, tau = {tau}", _milliseconds(tasks, 12, 16, tau, repeats), "ms")
    for m in run.each("plain", [64, 256, 1024] if run.quick else [64, 256, 1024, 4096]):
        fast, plain = _kernels(word_count(m), 12, 16, 1.2, 3)
        run.report(f"the kernel alone, m = {m}: against every p tried for every x", fast, "ms", baseline=plain)


def _milliseconds(tasks: Tasks, now: int, then: int, tau: float, repeats: int) -> float:
    current = Intervals(tightest_cuts(tasks, now))
    sizes, loads = tasks.sizes, tasks.loads
    return best_of(repeats, lambda: ssm(current, nodes=then, sizes=sizes, loads=loads, tau=tau)) * 1e3


def _exponent(sizes: list[int], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _first_call(run: Run) -> None:
    """What compiling costs: the first plan ever on a machine, and the first of a process when the cache is there."""
    script = (
        "import time; from planners import Intervals, ssm; start = time.perf_counter();"
        "ssm(Intervals([0, 2, 4]), nodes=3, sizes=[1] * 4, loads=[1] * 4, tau=1); print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        for label in ("nothing compiled yet", "compiled by an earlier process"):
            started = time.perf_counter()
            command = [sys.executable, "-c", script]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            run.report(f"first call, {label}", float(done.stdout), "s")
            run.report(f"whole process with one plan, {label}", time.perf_counter() - started, "s")


def _kernels(tasks: Tasks, now: int, then: int, tau: float, repeats: int) -> tuple[float, float]:
    """Milliseconds of the kernel, and of the same recurrence over all pairs (p, x): the quadratic form."""
    size, load = tasks.size_prefix(), tasks.load_prefix()
    starts = ssm_kernel.window_starts(load, Limits(then, tau).load(load[-1]))
    cuts = np.unique(tightest_cuts(tasks, now)).astype(np.int64)
    gain = _quadratic(size, starts, cuts, then)
    assert gain == ssm_kernel.solve(size, starts, cuts, then)[0][-1, -1], "both find the same"
    fast = best_of(repeats, lambda: ssm_kernel.solve(size, starts, cuts, then))
    return fast * 1e3, best_of(repeats, lambda: _quadratic(size, starts, cuts, then)) * 1e3


@kernel()
def _quadratic(sizes: Floats, starts: Ints, cuts: Ints, nodes: int) -> float:
    """The greatest gain: every start p of an interval is tried for every end x, with every old interval it overlaps."""
    m = len(sizes) - 1
    best, opened = np.full(m + 1, -np.inf), np.full(m + 1, -np.inf)
    best[0] = opened[0] = 0.0
    for _ in range(nodes):
        new, new_open = best.copy(), opened.copy()
        y = 0
        for x in range(1, m + 1):
            while cuts[y + 1] < x:
                y += 1
            for p in range(starts[x], x):
                new[x] = max(new[x], best[p])
                new_open[x] = max(new_open[x], best[p] if p <= cuts[y] else opened[p])
                old = y
                while old >= 0 and cuts[old + 1] > p:
                    a, b = cuts[old], min(x, cuts[old + 1])
                    value = best[p] + sizes[b] - sizes[a] if p <= a else opened[p] + sizes[b] - sizes[p]
                    new[x] = max(new[x], value)
                    if cuts[old + 1] <= x:
                        new_open[x] = max(new_open[x], value)
                    old -= 1
            if x == cuts[y + 1]:
                new_open[x] = new[x]
        best, opened = new, new_open
    return float(best[m])
