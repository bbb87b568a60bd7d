"""What a recoverable program means: for each stream, the records at each time. Plain Python; no engine, no crashes.

Operators that random programs of `tests.fuzz` have as well mean the same here.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import Any

import megaphone
from tests.crashes import timed_meaning
from tests.crashes.description import Bag, Control, Node, Output, Program
from tests.fuzz import direct, direct_state
from tests.fuzz.direct import gathered
from tests.fuzz.functions import paired
from tests.megaphone.shape_cases import finest_of, follow

Rows = Counter[tuple[int, int, int]]  # (time, key, value)

# By finest bin its worker, by pinned key its worker, and the bins that there are
Placement = tuple[list[int], dict[object, int], list[str]]

# What operators of this folder are called there.
ALSO = {"native_totals": "totals", "row_running": "running", "native_running": "running", "native_machine": "machine"}


def evaluate(program: Program) -> list[list[Bag]]:
    """The bag of each output of each node."""
    nodes: list[list[Bag]] = []
    for node in program.nodes:
        nodes.append(evaluate_node(program, node, nodes))
    return nodes


def evaluate_node(program: Program, node: Node, nodes: list[list[Bag]]) -> list[Bag]:
    """The bags of a node's outputs, given those of all nodes before it."""
    bags = [nodes[i][port] for i, port in node.inputs]
    kind = ALSO.get(node.kind, node.kind)
    if kind in ("tally", "native_tally"):
        counts = Counter(k for records in bags[0].values() for k, _ in records)
        return [{0: [(k, n) for k, count in counts.items() for n in range(1, count + 1)]}]
    if kind in ("window_join", "window_pairs"):
        return [_window_join(bags, node.numbers[0])]
    if kind == "input" and program.untimed:
        return [{0: [r for s in program.feeds[node.numbers[0]].sends for r in s.records]}]
    if kind == "input":
        return [gathered((s.at, r) for s in program.feeds[node.numbers[0]].sends for r in s.records)]
    if kind == "partition":
        (parts,) = node.numbers
        return [gathered((t, r) for t, rs in bags[0].items() for r in rs if r[1] % parts == p) for p in range(parts)]
    if kind in timed_meaning.MEANINGS:
        return [timed_meaning.MEANINGS[kind](bags, node.numbers)]
    meanings = direct_state.MEANINGS if kind in direct_state.MEANINGS else direct.MEANINGS
    return [meanings[kind](bags, node.numbers)]


def _window_join(bags: list[Bag], window: int) -> Bag:
    """Every combination of records of one key whose times are at most so far apart, at the last of their times."""
    timed = [[(time, k, v) for time, records in bag.items() for k, v in records] for bag in bags]
    return gathered(
        (max(t for t, _, _ in some), (some[0][1], functools.reduce(paired, [v for _, _, v in some])))
        for some in itertools.product(*timed)
        if len({k for _, k, _ in some}) == 1 and max(t for t, _, _ in some) - min(t for t, _, _ in some) <= window
    )


def expected(program: Program, output: Output, nodes: list[list[Bag]]) -> Rows:
    """All rows that a sink gets."""
    bag = nodes[output.ref[0]][output.ref[1]]
    return Counter((time, k, v) for time, records in bag.items() for k, v in records)


def before(rows: Rows, time: int) -> Rows:
    """The rows before a time."""
    return Counter({row: count for row, count in rows.items() if row[0] < time})


def last(rows: Rows) -> dict[int, tuple[int, int]]:
    """By key, the time and value of its last row."""
    found: dict[int, tuple[int, int]] = {}
    for time, k, v in sorted(rows):
        found[k] = time, v
    return found


def is_prefix(rows: Rows) -> bool:
    """Whether each key has the numbers from 1 to some other, each once."""
    highest = Counter(k for _, k, _ in rows.elements())
    return rows == Counter((0, k, n) for k, count in highest.items() for n in range(1, count + 1))


def placement(control: Control, workers: int) -> Placement:
    """Where everything is in the end. Of several updates for one key the greatest worker wins, and any worker wins over
    none; `follow` has the rules of bins."""
    names, pins = finest_of(control.bins), dict[object, int]()
    bins, where = set(names), {name: number % workers for number, name in enumerate(names)}
    for time in sorted({update.at for update in control.updates}):
        said = [update.what for update in control.updates if update.at == time]
        keys: dict[object, int] = {}
        for what, key, *worker in (what for what in said if "pin" in str(what[0])):
            keys[key] = max(keys.get(key, -1), _worker(worker[0], workers) if what == "pin" else -1)
        bins, where = follow(bins, where, [update for what in said for update in _of_bins(what, workers)])
        pins = {key: worker for key, worker in {**pins, **keys}.items() if worker >= 0}
    return [where[name] for name in names], pins, sorted(f"{bin}*" for bin in bins)


def _of_bins(said: tuple[Any, ...], workers: int) -> list[object]:
    what, *rest = said
    if what == "move":
        return [megaphone.Move(rest[0], rest[1] % workers)]
    if what == "moves":
        return [megaphone.Move(bin, worker % workers) for bin, worker in zip(*rest, strict=True)]
    if what == "assign":
        return [megaphone.Assign([worker % workers for worker in rest[0]])]
    if what == "split":
        return [megaphone.Split(*rest)]
    if what == "merge":
        return [megaphone.Merge(rest[0], None if rest[1] is None else rest[1] % workers)]
    return []


def _worker(worker: object, workers: int) -> int:
    assert isinstance(worker, int)
    return worker % workers
