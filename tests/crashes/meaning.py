"""What a recoverable program means: for each stream, the records at each time. Plain Python; no engine, no crashes.

Operators that random programs of `tests.fuzz` have as well mean the same here.
"""

from __future__ import annotations

from collections import Counter

from tests.crashes.description import Bag, Node, Output, Program
from tests.fuzz import direct, direct_state
from tests.fuzz.direct import gathered

Rows = Counter[tuple[int, int, int]]  # (time, key, value)

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
    if kind == "input":
        return [gathered((s.at, r) for s in program.feeds[node.numbers[0]].sends for r in s.records)]
    if kind == "partition":
        (parts,) = node.numbers
        return [gathered((t, r) for t, rs in bags[0].items() for r in rs if r[1] % parts == p) for p in range(parts)]
    meanings = direct_state.MEANINGS if kind in direct_state.MEANINGS else direct.MEANINGS
    return [meanings[kind](bags, node.numbers)]


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
