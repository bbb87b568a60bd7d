"""The source of the packages, read and not imported: modules, imports, classes and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("dataflow", "megaphone", "planners", "nexmark", "bench")


@dataclass(frozen=True)
class Import:
    """One name that a module imports. `where`: `module` when it is imported itself, `function` when a function first
    runs, `typing` for type checkers only."""

    importer: str
    imported: str  # a module of the house if it is one, else as it is written
    name: str  # what is imported from it; empty for a module
    where: str
    line: int


@dataclass(frozen=True)
class Module:
    """A file. Its name is dotted; that of a folder's `__init__` is the folder's."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_folder(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


class House:
    """All modules of some packages under a folder."""

    def __init__(self, root: Path, packages: tuple[str, ...] = PACKAGES) -> None:
        self.root = root
        paths = [path for package in packages for path in sorted((root / package).rglob("*.py"))]
        found = [Module(_name(path.relative_to(root)), path, path.read_text(encoding="utf-8")) for path in paths]
        self.modules = {module.name: module for module in found}

    @cached_property
    def imports(self) -> list[Import]:
        """What each module imports, of the house and from elsewhere."""
        return list(self._imports())

    @cached_property
    def origins(self) -> dict[tuple[str, str], str]:
        """By module and name that it imports from another one of the house: that one."""
        return {(each.importer, each.name): each.imported for each in self.imports if each.imported in self.modules}

    def _imports(self) -> Iterator[Import]:
        for module in self.modules.values():
            finder = _Imports()
            finder.visit(module.tree)
            for node, where in finder.found:
                for imported, name in self._names(module, node):
                    yield Import(module.name, imported, name, where, node.lineno)

    def _names(self, module: Module, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
            return
        base = node.module or ""
        if node.level:  # relative: to the folder of the module, or one above it
            folder = module.name.split(".") if module.is_folder else module.name.split(".")[:-1]
            base = ".".join([*folder[: len(folder) - node.level + 1], *([base] if base else [])])
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield (whole, "") if whole in self.modules else (base, alias.name)

    def where(self, module: Module, node: ast.stmt) -> str:
        """For people: file and line."""
        return f"{module.path.relative_to(self.root)}:{node.lineno}"


class _Imports(ast.NodeVisitor):
    """Import statements, with where they run."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.Import | ast.ImportFrom, str]] = []
        self._where = "module"

    def visit_Import(self, node: ast.Import) -> None:
        self.found.append((node, self._where))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found.append((node, self._where))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._inside("function" if self._where == "module" else self._where, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_If(self, node: ast.If) -> None:
        typing = any(isinstance(part, ast.Name) and part.id == "TYPE_CHECKING" for part in ast.walk(node.test))
        self._inside("typing" if typing else self._where, node.body)
        self._inside(self._where, node.orelse)

    def _inside(self, where: str, body: list[ast.stmt]) -> None:
        before, self._where = self._where, where
        for statement in body:
            self.visit(statement)
        self._where = before


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def this_house() -> House:
    """That of this repository, read once for all tests."""
    return House(ROOT)


def make_house(root: Path, files: dict[str, str]) -> House:
    """A made-up one, to show that a test can fail: source by path."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return House(root, tuple(dict.fromkeys(path.partition("/")[0] for path in files)))
