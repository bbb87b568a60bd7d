"""`Any` is for users' own values: it may not grow back, and it is not on the doors between packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import House, Module, make_house, this_house

# The words `Any` that each package may have, a few more than it has: aliases of users' values among them.
BUDGETS = {"dataflow": 80, "megaphone": 40, "planners": 8, "nexmark": 5}
TOTAL = 130


def count_any(house: House) -> dict[str, int]:
    """How often each package says `Any`."""
    counts: dict[str, int] = {}
    for module in house.modules.values():
        counts[module.package] = counts.get(module.package, 0) + len(re.findall(r"\bAny\b", module.text))
    return counts


def over_budget(counts: dict[str, int], budgets: dict[str, int], total: int) -> list[str]:
    """The packages that say it too often."""
    told = [
        f"{package} says Any {counts.get(package, 0)} times, and may {most} times"
        for package, most in budgets.items()
        if counts.get(package, 0) > most
    ]
    together = sum(counts.get(package, 0) for package in budgets)
    return told + ([f"together {together} times, and may {total} times"] if together > total else [])


def any_on_doors(house: House) -> list[str]:
    """Public functions, and public methods of classes, that another package imports and whose signature says `Any`.

    An alias with a name of its own, for users' values, is not `Any` here.
    """
    told = set()
    for each in house.imports:
        module, name = resolve(house, each.imported, each.name)
        if module is not None and module.package != each.importer.partition(".")[0]:
            told |= {f"{module.name}.{where} says Any" for where in _says_any(module, name)}
    return sorted(told)


def resolve(house: House, imported: str, name: str) -> tuple[Module | None, str]:
    """Where a name is defined: front doors pass on what they import."""
    module = house.modules.get(imported)
    while module is not None and name:
        origin = house.origins.get((module.name, name))
        if origin is None:
            return module, name
        module = house.modules[origin]
    return module, name


def _says_any(module: Module, name: str) -> Iterator[str]:
    for node in module.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name != name:
            continue
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                public = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and (
                    not inner.name.startswith("_") or inner.name == "__init__"
                )
                if public and isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and _signature_says_any(inner):
                    yield f"{name}.{inner.name}"
        elif _signature_says_any(node):
            yield name


def _signature_says_any(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [argument.annotation for argument in arguments if argument is not None] + [function.returns]
    return any(
        isinstance(part, ast.Name) and part.id == "Any"
        for annotation in annotations
        if annotation is not None
        for part in ast.walk(annotation)
    )


def undocumented_aliases(house: House) -> list[str]:
    """Aliases of `Any` for users' values of which nobody says what they stand for: no string below, no comment."""
    told = []
    for module in house.modules.values():
        body, lines = module.tree.body, module.text.splitlines()
        for node, below in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Name) or node.value.id != "Any":
                continue
            said = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if not said and "#" not in lines[node.lineno - 1] and not lines[node.lineno - 2].startswith("#"):
                told.append(house.where(module, node))
    return told


def test_any_does_not_grow_back() -> None:
    told = over_budget(count_any(this_house()), BUDGETS, TOTAL)
    assert not told, "\n".join(told)


def test_no_any_on_the_doors_between_packages() -> None:
    told = any_on_doors(this_house())
    assert not told, "\n".join(told)


def test_aliases_of_any_say_whose_values_they_are() -> None:
    told = undocumented_aliases(this_house())
    assert not told, "\n".join(told)


# Each of these can fail

MADE_UP = {
    "one/__init__.py": "from one.inside import call, Thing\n",
    "one/inside.py": (
        "from typing import Any, TypeAlias\n"
        "Record: TypeAlias = Any\n"
        "def call(x: list[Any]) -> int: ...\n"
        "def other(x: Record, *, y: int = 0) -> Record: ...\n"
        "def own(x: Any) -> Any: ...\n"
        "class Thing:\n"
        "    def __init__(self) -> None: ...\n"
        "    def _hidden(self) -> Any: ...\n"
        "    async def act(self, *rest: Any) -> None: ...\n"
    ),
    "two/a.py": "from one import call, Thing\nfrom one.inside import other\n",
}


def test_any_is_counted(tmp_path: Path) -> None:
    counts = count_any(make_house(tmp_path, MADE_UP))
    assert counts == {"one": 7, "two": 0}
    assert over_budget(counts, {"one": 7, "two": 0}, 7) == []
    assert over_budget(counts, {"one": 6, "two": 0}, 6) == [
        "one says Any 7 times, and may 6 times",
        "together 7 times, and may 6 times",
    ]


def test_any_on_doors_is_found(tmp_path: Path) -> None:
    house = make_house(tmp_path, MADE_UP)
    assert any_on_doors(house) == ["one.inside.Thing.act says Any", "one.inside.call says Any"]


def test_aliases_that_nobody_explains_are_found(tmp_path: Path) -> None:
    head = "from typing import Any, TypeAlias\n"
    house = make_house(
        tmp_path,
        {
            "one/a.py": f'{head}Record: TypeAlias = Any\n"""A user\'s."""\nKey: TypeAlias = Any  # of a user\n',
            "one/b.py": f"{head}# What main returns.\nReturned: TypeAlias = Any\nOther: TypeAlias = Any\n",
        },
    )
    assert undocumented_aliases(house) == ["one/b.py:4"]
