"""Nothing has a long tail: functions have at most 52 lines, files at most 450."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.tree import House, make_house, this_house

FUNCTION, FILE = 52, 450  # lines


def too_long(house: House) -> list[str]:
    """Functions and files that have more lines than they may."""
    found = []
    for module in house.modules.values():
        if (lines := module.text.count("\n")) > FILE:
            found.append(f"{module.path.relative_to(house.root)} has {lines} lines")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION:
                    found.append(f"{house.where(module, node)}: {node.name} has {lines} lines")
    return found


def test_functions_and_files_are_short() -> None:
    found = too_long(this_house())
    assert not found, f"at most {FUNCTION} lines in a function, {FILE} in a file:\n" + "\n".join(found)


def test_long_functions_and_files_are_found(tmp_path: Path) -> None:
    def function(name: str, lines: int) -> str:
        return f"def {name}():\n" + "    pass\n" * (lines - 1)

    house = make_house(
        tmp_path,
        {
            "one/a.py": function("fits", FUNCTION) + "class C:\n    async def long(self):\n" + "        0\n" * FUNCTION,
            "one/b.py": "0\n" * FILE,
            "one/c.py": "0\n" * (FILE + 1),
        },
    )
    assert too_long(house) == ["one/a.py:54: long has 53 lines", "one/c.py has 451 lines"]
