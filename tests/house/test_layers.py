"""The layers of the house, down to its rooms: who imports whom."""

from __future__ import annotations

import graphlib
from pathlib import Path

from tests.house.layers import as_table, forbidden, homeless, table, unused
from tests.house.rooms import LAWS, OUTSIDE, ROOMS
from tests.house.tree import House, make_house, this_house


def test_every_module_has_a_room() -> None:
    house = this_house()
    without = [module for module in homeless(house, ROOMS) if house.modules[module].package != "bench"]
    assert not without, f"add their rooms to tests/house/rooms.py: {', '.join(without)}"


def test_rooms_import_what_they_may() -> None:
    house = this_house()
    told = forbidden(house, ROOMS)
    assert not told, "\n".join(told)


def test_the_table_allows_no_more_than_is_needed() -> None:
    house = this_house()
    told = unused(house, ROOMS)
    assert not told, "remove from tests/house/rooms.py:\n" + "\n".join(told)


def broken_laws(house: House, laws: list[tuple[tuple[str, ...], tuple[str, ...], bool]]) -> list[str]:
    """Imports that no table may allow."""
    told = [
        f"{each.importer}:{each.line} imports {each.imported}"
        for rooms, never, at_once_only in laws
        for each in house.imports
        if within(each.importer, rooms) and within(each.imported, never)
        if each.where == "module" or not at_once_only
    ]
    return list(dict.fromkeys(told))  # an import of several names is told once


def strangers(house: House, outside: dict[str, tuple[str, ...]]) -> list[str]:
    """Imports of other people's packages outside of the rooms that may."""
    return [
        f"{each.importer}:{each.line} imports {each.imported}"
        for each in house.imports
        if not within(each.importer, ("bench",))
        for package, rooms in outside.items()
        if within(each.imported, (package,)) and not within(each.importer, rooms)
    ]


def within(module: str, rooms: tuple[str, ...]) -> bool:
    """Whether a module is in one of these rooms."""
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def cycle(house: House) -> list[str]:
    """Modules that import each other in a circle when they are loaded; empty if there are none."""
    graph: dict[str, set[str]] = {}
    for each in house.imports:
        if each.where == "module" and each.imported in house.modules and each.imported != each.importer:
            graph.setdefault(each.importer, set()).add(each.imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_law_is_broken() -> None:
    house = this_house()
    told = broken_laws(house, LAWS)
    assert not told, "\n".join(told)


def test_packages_of_others_stay_in_their_rooms() -> None:
    house = this_house()
    told = strangers(house, OUTSIDE)
    assert not told, "\n".join(told)


def test_no_modules_import_each_other_in_a_circle() -> None:
    house = this_house()
    assert not cycle(house)


# Each of these can fail

MADE_UP = {
    "one/__init__.py": "from one.a import x\n",
    "one/a/__init__.py": "",
    "one/a/x.py": "from typing import TYPE_CHECKING\nimport one.b\nif TYPE_CHECKING:\n    from one.c import T\n",
    "one/b.py": "def f():\n    from .c import T\n    import pyspark.sql\n",
    "one/c.py": "import sys\nfrom one import b\n",
    "one/new.py": "",
}
TABLE = "one: one.a\none.a: one.b | one.c\none.b:  | one.c\none.c: one.b"


def test_what_is_imported_where_is_seen(tmp_path: Path) -> None:
    house = make_house(tmp_path, MADE_UP)
    rooms = table(TABLE)
    assert as_table(house, rooms) == TABLE
    assert homeless(house, rooms) == ["one.new"]
    assert forbidden(house, rooms) == [] == unused(house, rooms)


def test_forbidden_imports_are_found(tmp_path: Path) -> None:
    house = make_house(tmp_path, MADE_UP)
    shut = table("one: one.a\none.a: | one.b one.c\none.b:\none.c: one.a one.b | one.a")
    assert forbidden(house, shut) == [
        "one.a may not import one.b at once: one.a.x:2",
        "one.b may not import one.c on demand: one.b:2",
    ]
    assert unused(house, shut) == [
        "one.a imports one.b nowhere on demand",
        "one.c imports one.a nowhere",
        "one.c imports one.a nowhere on demand",
    ]


def test_broken_laws_strangers_and_circles_are_found(tmp_path: Path) -> None:
    house = make_house(tmp_path, MADE_UP)
    assert broken_laws(house, [(("one.b",), ("one.c",), False), (("one.a",), ("one.b",), True)]) == [
        "one.b:2 imports one.c",
        "one.a.x:2 imports one.b",
    ]
    assert broken_laws(house, [(("one.b",), ("one.c",), True)]) == []
    assert strangers(house, {"pyspark": ("one.a",)}) == ["one.b:3 imports pyspark.sql"]
    assert strangers(house, {"pyspark": ("one.b",)}) == []
    assert cycle(house) == []
    circle = make_house(tmp_path, MADE_UP | {"one/b.py": "from one.c import T\n"})
    assert set(cycle(circle)) == {"one.b", "one.c"}
