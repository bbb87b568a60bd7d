"""One name, one meaning: no two public classes share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.house.tree import House, make_house, this_house


def shared_names(house: House) -> dict[str, list[str]]:
    """By name of a public class that occurs more than once, where."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in house.modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(house.where(module, node))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def test_no_two_public_classes_share_a_name() -> None:
    shared = shared_names(this_house())
    told = "\n".join(f"{name}: {', '.join(places)}" for name, places in shared.items())
    assert not shared, f"rename all but one of each:\n{told}"


def test_shared_names_are_found(tmp_path: Path) -> None:
    house = make_house(
        tmp_path,
        {
            "one/a.py": "class Plan: ...\nclass _Own: ...\nclass Alone: ...\n",
            "two/b.py": "x = 1\nclass Plan: ...\nclass _Own: ...\n",
        },
    )
    assert shared_names(house) == {"Plan": ["one/a.py:1", "two/b.py:2"]}
