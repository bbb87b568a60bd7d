"""Each folder's `__init__` opens with a map: its docstring names every module and folder in it, in backticks."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.tree import House, make_house, this_house


def missing_from_maps(house: House) -> list[str]:
    """The modules that the map of their folder does not name."""
    missing = []
    for name in house.modules:
        folder, _, own = name.rpartition(".")
        if not folder or own == "__main__":
            continue
        if folder not in house.modules:
            missing.append(f"{name}: {folder} has no __init__.py")
            continue
        text = ast.get_docstring(house.modules[folder].tree) or ""
        if f"`{own}`" not in text and f"`{own}/`" not in text:
            missing.append(f"{name}: {house.modules[folder].path.relative_to(house.root)} does not name `{own}`")
    return missing


def test_every_folder_maps_its_modules() -> None:
    missing = missing_from_maps(this_house())
    assert not missing, "\n".join(missing)


def test_what_a_map_leaves_out_is_found(tmp_path: Path) -> None:
    house = make_house(
        tmp_path,
        {
            "one/__init__.py": '"""A map.\n\n- `a`: something. `inner`: more.\n"""\n',
            "one/a.py": "",
            "one/b.py": "",
            "one/__main__.py": "",
            "one/inner/__init__.py": "",
            "one/inner/c.py": "",
            "one/bare/d.py": "",
        },
    )
    assert missing_from_maps(house) == [
        "one.b: one/__init__.py does not name `b`",
        "one.bare.d: one.bare has no __init__.py",
        "one.inner.c: one/inner/__init__.py does not name `c`",
    ]
