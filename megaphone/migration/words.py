"""Where bins shall be and how they get there, as words: what a person says to a running program. Pure.

Targets: `even` (as many bins on each worker, with the fewest moves), `bytes` (as many bytes, as far as whole bins
allow), `worker:1` or `worker:0,2` (all bins there, evenly), and single bins: finest ones by their numbers, `7=1` or
`0-63=1,64=0`, or prefixes, `0110*=1`. In their place bins can be split and merged: `split:0110*` (in two; `/8`: in
eight), `merge:011*` (`=1`: at worker 1), several with commas between them.
Strategies: `all-at-once`, `fluid`, `batched:64`, `matched`, `within:20ms`, with options:
`batched:64,budget=8MB,gap=2,order=biggest`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dataflow.time.durations import is_duration
from megaphone.control.checks import within as checked_number
from megaphone.control.tree import BinTree, Merge, Split, run_of
from megaphone.errors import ControlError
from megaphone.migration.strategies import ORDERS, Order, Strategy, all_at_once, batched, fluid, matched, within

Places = NDArray[np.int64]

TARGETS = "even, bytes, worker:1 (or worker:0,1), bins as 7=1, 0-63=1,64=0 or 0110*=1, split:0110*/4 or merge:011*"
STRATEGIES = (
    "all-at-once, fluid, batched:64, matched or within:20ms, with budget=8MB, gap=2 or order=biggest after a comma"
)
_UNITS = {"": 1, "B": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": 1 << 20}
_BINS = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?=([0-9]{1,5})")
_SHAPE = re.compile(r"(split|merge):([01]*\*)(?:/([0-9]{1,7}))?(?:=([0-9]{1,5}))?")
_PREFIX = re.compile(r"([01]*\*)=([0-9]{1,5})")


def parse_target(
    text: str,
    current: Sequence[int] | NDArray[np.integer],
    tree: BinTree,
    workers: Sequence[int],
    sizes: NDArray[np.integer],
) -> Places:
    """By finest bin, the worker that the words say. `workers` can have bins; `sizes` in bytes, as far as they are
    known. `even`, `bytes` and `worker:` move the bins of the tree whole.

    >>> fine, none = BinTree.even(4, 4), np.zeros(4, np.int64)
    >>> parse_target("even", [0, 0, 0, 0], fine, [0, 1], none).tolist()
    [0, 0, 1, 1]
    >>> parse_target("worker:1", [0, 0, 0, 0], fine, [0, 1], none).tolist()
    [1, 1, 1, 1]
    >>> parse_target("0-1=1", [0, 0, 0, 0], fine, [0, 1], none).tolist()
    [1, 1, 0, 0]
    >>> parse_target("1*=1", [0, 0, 0, 0], fine, [0, 1], none).tolist()
    [0, 0, 1, 1]
    """
    here = np.array(current, np.int64)
    if text == "even":
        return tree.spread(_even(here[tree.firsts], list(workers)))
    if text == "bytes":
        return tree.spread(_even_bytes(here[tree.firsts], list(workers), tree.total(sizes)))
    kind, _, rest = text.partition(":")
    if kind == "worker" and rest:
        named = sorted({_worker(each, workers) for each in rest.split(",")})
        return tree.spread(_even(here[tree.firsts], named))
    for part in text.split(","):
        prefix = _PREFIX.fullmatch(part.strip())
        if prefix is not None:
            here[run_of(prefix[1], len(here)).slice] = _worker(prefix[2], workers)
            continue
        match = _BINS.fullmatch(part.strip())
        if match is None:
            raise ControlError(f"{text!r} does not say where bins shall be: say {TARGETS}")
        first, worker = checked_number(int(match[1]), len(here), "bin"), _worker(match[3], workers)
        last = first if match[2] is None else checked_number(int(match[2]), len(here), "bin")
        if last < first:
            raise ControlError(f"{part!r} names no bins: the first comes before the last")
        here[first : last + 1] = worker
    return here


def parse_shapes(text: str) -> list[Split | Merge]:
    """The splits and merges that the words say; none if they are about something else.

    >>> parse_shapes("split:01*/4,merge:1*=0"), parse_shapes("even")
    ([Split(bin='01*', into=4), Merge(bin='1*', worker=0)], [])
    """
    if not text.startswith(("split:", "merge:")):
        return []
    found: list[Split | Merge] = []
    for part in text.split(","):
        match = _SHAPE.fullmatch(part.strip())
        if match is None or match[4 if match[1] == "split" else 3] is not None:
            raise ControlError(f"{part.strip()!r} neither splits nor merges a bin: say split:0110*/4 or merge:011*=1")
        if match[1] == "split":
            found.append(Split(match[2], int(match[3] or 2)))
        else:
            found.append(Merge(match[2], None if match[4] is None else int(match[4])))
    return found


def _worker(text: str, workers: Sequence[int]) -> int:
    if not re.fullmatch("[0-9]{1,5}", text.strip()) or int(text) not in workers:
        known = ", ".join(map(str, workers))
        raise ControlError(f"there is no worker {text.strip()!r} that can have bins: there are {known}")
    return int(text)


def _even(here: Places, workers: list[int]) -> Places:
    """As many bins for each of these workers: what is above its share leaves, the last bins first. Fewest moves."""
    there = here.copy()
    share, more = divmod(len(here), len(workers))
    counts = {worker: int((here == worker).sum()) for worker in workers}
    richest = sorted(workers, key=lambda worker: -counts[worker])  # stable: the extra bins stay with who has most
    shares = {worker: share + (at < more) for at, worker in enumerate(richest)}
    leaving = ~np.isin(here, workers)
    for worker in workers:
        mine = np.flatnonzero(here == worker)
        leaving[mine[shares[worker] :]] = True
    homeless = np.flatnonzero(leaving)
    places = [worker for worker in workers for _ in range(shares[worker] - min(shares[worker], counts[worker]))]
    there[homeless] = places
    return there


def _even_bytes(here: Places, workers: list[int], sizes: Places) -> Places:
    """As many bytes for each, greedily: the largest bins move from the fullest worker to the emptiest while that
    helps. O(bins log bins)."""
    if not sizes.any():
        raise ControlError("nothing is known of the bytes of bins yet: say even, or give the operator an interval")
    there = here.copy()
    outside = np.flatnonzero(~np.isin(here, workers))
    totals = {worker: int(sizes[here == worker].sum()) for worker in workers}
    for bin in outside[np.argsort(-sizes[outside], kind="stable")].tolist():
        there[bin] = emptiest = min(workers, key=lambda worker: totals[worker])
        totals[emptiest] += int(sizes[bin])
    for bin in np.argsort(-sizes, kind="stable").tolist():
        full = int(there[bin])
        emptiest = min(workers, key=lambda worker: totals[worker])
        size = int(sizes[bin])
        if size and totals[full] - totals[emptiest] > size:
            there[bin] = emptiest
            totals[full] -= size
            totals[emptiest] += size
    return there


def parse_strategy(text: str) -> Strategy:
    """The strategy that the words say.

    >>> parse_strategy("batched:64,budget=8MB,gap=1").name, parse_strategy("fluid").name
    ('batches of 64', 'fluid')
    """
    first, *rest = text.split(",")
    kind, colon, count = first.strip().partition(":")
    gap, order, budget = _options(text, rest)
    if kind == "batched" and re.fullmatch("[0-9]{1,7}", count) and int(count):
        return batched(int(count), gap, order, budget)
    if kind == "within" and is_duration(count):
        if gap or budget is not None:
            raise ControlError(f"{text!r}: within has neither gap nor budget: it finds out what the latency allows")
        return within(count, order)
    if not colon and kind in ("all-at-once", "fluid", "matched"):
        if kind == "all-at-once":
            if budget is not None:
                raise ControlError(f"{text!r}: all at once has no budget: say batched or fluid")
            return all_at_once(gap, order)
        return (fluid if kind == "fluid" else matched)(gap, order, budget)
    raise ControlError(f"{text!r} is no strategy: say {STRATEGIES}")


def _options(text: str, given: list[str]) -> tuple[int, Order | None, int | None]:
    gap = 0
    order: Order | None = None
    budget: int | None = None
    for each in given:
        name, _, value = each.strip().partition("=")
        size = re.fullmatch("([0-9]{1,15})([A-Za-z]*)", value)
        if name == "gap" and value.isascii() and value.isdigit():
            gap = int(value)
        elif name == "order" and value in ORDERS:
            order = next(each for each in ORDERS if each == value)
        elif name == "budget" and size is not None and size[2] in _UNITS and int(size[1]):
            budget = int(size[1]) * _UNITS[size[2]]
        else:
            raise ControlError(f"{text!r}: {each.strip()!r} is no option of a strategy: say {STRATEGIES}")
    return gap, order, budget
