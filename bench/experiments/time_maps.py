"""Maps by time that give up their least time: a SortedDict, beside a dictionary with a heap or a scan."""

import time
from collections.abc import Callable
from heapq import heappop, heappush
from statistics import median

from sortedcontainers import SortedDict

from bench.registry import benchmark
from bench.run import Run


@benchmark("ordered", "a time comes, the least of all goes: SortedDict, and a dictionary with a heap or a scan")
def ordered(run: Run) -> None:
    rounds = 2_000 if run.quick else 20_000
    for waiting in run.each("times that wait", [1, 16, 256, 4096]):
        heap = _each(_with_heap, waiting, rounds)
        run.report(f"{waiting} wait: dictionary and heap", heap * 1e6, "µs")
        run.report(f"{waiting} wait: SortedDict", _each(_with_sorted, waiting, rounds) * 1e6, "µs", baseline=heap * 1e6)
        scan = _each(_with_scan, waiting, max(100, rounds // waiting))
        run.report(f"{waiting} wait: dictionary and min()", scan * 1e6, "µs", baseline=heap * 1e6)


def _each(body: Callable[[int, int], float], waiting: int, rounds: int) -> float:
    return median(body(waiting, rounds) for _ in range(5)) / rounds


def _with_heap(waiting: int, rounds: int) -> float:
    held, heap = dict.fromkeys(range(waiting), 1), list(range(waiting))
    start = time.perf_counter()
    for new in range(waiting, waiting + rounds):
        held[new] = 1
        heappush(heap, new)
        del held[heappop(heap)]
    return time.perf_counter() - start


def _with_sorted(waiting: int, rounds: int) -> float:
    held: SortedDict[int, int] = SortedDict()
    held.update(dict.fromkeys(range(waiting), 1))
    start = time.perf_counter()
    for new in range(waiting, waiting + rounds):
        held[new] = 1
        held.popitem(0)
    return time.perf_counter() - start


def _with_scan(waiting: int, rounds: int) -> float:
    held = dict.fromkeys(range(waiting), 1)
    start = time.perf_counter()
    for new in range(waiting, waiting + rounds):
        held[new] = 1
        del held[min(held)]
    return time.perf_counter() - start
