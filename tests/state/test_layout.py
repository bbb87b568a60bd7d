"""How rows lie in memory is known to the tables and folds of `dataflow.state` alone: others ask tables and stores. (A
query that read the memory of its table gave wrong rows once bins shared segments.)"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    "dataflow.state.memory.allocation",
    *(f"dataflow.state.tables.{name}" for name in ("blocks", "hash_kernels", "dense_kernels", "heaps", "chains")),
}
STATE = ROOT / "dataflow" / "state"
KNOWING = [
    *(STATE / room for room in ("tables", "memory", "folds")),
    STATE / "stores" / "join_store.py",
    STATE / "stores" / "fold_store.py",
]
ATTRIBUTES = {"meta", "ctl", "segments", "stride"}
# How many records are looked at together, and fetching any row of any array before it is used.
HARMLESS: dict[str, set[str]] = {"dataflow.state.tables.blocks": {"BLOCK", "fetch_row"}}


def offences(source: str) -> Iterator[str]:
    """What a file uses of the layout."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            found = {node.module, *(f"{node.module}.{name}" for name in names)} & MODULES
            found -= {node.module} if names <= HARMLESS.get(node.module, set()) else set()
        elif isinstance(node, ast.Import):
            found = {alias.name for alias in node.names} & MODULES
        else:
            found = {node.attr} & ATTRIBUTES if isinstance(node, ast.Attribute) else set()
        yield from (f"line {getattr(node, 'lineno', 0)}: {what}" for what in found)


@pytest.mark.parametrize("package", ["dataflow", "megaphone", "planners", "nexmark", "bench", "examples"])
def test_nobody_else_knows_the_layout(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*.py") if not {path, *path.parents} & set(KNOWING)]
    assert files
    found = {str(path.relative_to(ROOT)): [*offences(path.read_text())] for path in files}
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    "line",
    ["from dataflow.state.memory.allocation import USED", "from dataflow.state.tables import heaps",
     "x = table.meta[0]", "import dataflow.state.tables.chains", "part.segments.prefault(5)"],
)  # fmt: skip
def test_it_would_be_found(line: str) -> None:
    assert [*offences(line)]
