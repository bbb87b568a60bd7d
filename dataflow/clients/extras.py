"""Packages that not everybody has."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from dataflow.errors import ConstructionError


def require_extra(module: str, extra: str, what: str) -> None:
    """ConstructionError, with what to install, unless a module is there. It is not imported: that can wait until
    somebody reads or writes."""
    if find_spec(module) is None:
        raise ConstructionError(f"{what} needs {module}: pip install 'megaphone-dataflow[{extra}]'")


def names_of(what: str, kind: str, names: object) -> list[str]:
    """A name, or several, as a list. ConstructionError unless there is one, and each is there once."""
    given: list[object] = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    found = [name for name in given if isinstance(name, str) and name]
    if not found or len(found) != len(given) or len(set(found)) != len(found):
        raise ConstructionError(f"{what} needs the names of {kind}, each once, not {names!r}")
    return found


def require_number(what: str, name: str, value: float, least: float = 0, *, whole: bool = False) -> None:
    """ConstructionError unless a setting is a number that is large enough."""
    kinds = int if whole else int | float
    if not isinstance(value, kinds) or isinstance(value, bool) or not value >= least:
        kind = "a whole number" if whole else "a number"
        raise ConstructionError(f"{what}: {name} is {kind} of at least {least}, not {value!r}")
