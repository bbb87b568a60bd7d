"""Says which variable it is that cannot be copied to another process, when something cannot."""

from __future__ import annotations

import functools
import io
import types
from collections.abc import Callable, Iterator

from dataflow.errors import CannotTravel

_DEEPEST = 12  # things within things, before the search is given up

Attempt = Callable[[object], object]
"""Raises if a value cannot be pickled."""


def cannot_travel(main: object, args: tuple[object, ...], error: Exception, attempt: Attempt) -> CannotTravel:
    """The error for a main, or an argument of it, that cannot be pickled, and why."""
    roots = [("main", main), *((f"argument {number} of main", value) for number, value in enumerate(args, 1))]
    for name, value in roots:
        if (found := _culprit(name, value, attempt, _DEEPEST)) is not None:
            path, culprit, reason = found
            return CannotTravel(_message(path, culprit, reason))
    return CannotTravel(_message("main", main, error))


def _message(path: str, culprit: object, reason: Exception) -> str:
    return (
        f"{path} cannot be brought to the workers, which are processes of their own: it is a "
        f"{type(culprit).__module__}.{type(culprit).__qualname__} ({reason}). Make it inside main, from what can "
        "be copied (a path, an address), or keep the workers in this process with in_process=True"
    )


def _culprit(path: str, value: object, attempt: Attempt, depth: int) -> tuple[str, object, Exception] | None:
    """The innermost thing in a value that cannot be pickled, and how one gets there; None if the value can be."""
    try:
        attempt(value)
    except Exception as error:  # whatever the value's own code raises
        reason = error
    else:
        return None
    if depth:
        for label, part in _parts(value):
            if part is not value and (found := _culprit(f"{path}, {label}", part, attempt, depth - 1)) is not None:
                return found
    return path, value, reason


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """What a value is made of, and how a person calls it."""
    if isinstance(value, types.FunctionType):
        yield from _variables(value)
    elif isinstance(value, types.MethodType):
        yield "the object that it belongs to", value.__self__
    elif isinstance(value, functools.partial):
        yield "the function in it", value.func
        yield from ((f"its argument {number}", part) for number, part in enumerate(value.args, 1))
        yield from ((f"its argument {name!r}", part) for name, part in value.keywords.items())
    elif isinstance(value, dict):
        yield from ((f"the value of {key!r}", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"item {number}", part) for number, part in enumerate(value))
    elif not isinstance(value, io.IOBase | type):
        yield from ((f"its attribute {name!r}", part) for name, part in getattr(value, "__dict__", {}).items())


def _variables(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():  # it has been assigned
            yield f"its variable {name!r}", cell.cell_contents
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield f"its global variable {name!r}", function.__globals__[name]
    yield from ((f"its default {number}", part) for number, part in enumerate(function.__defaults__ or (), 1))
    yield from ((f"its default of {name!r}", part) for name, part in (function.__kwdefaults__ or {}).items())


def _names(code: types.CodeType) -> set[str]:
    """The names that a function, and those within it, may take from their module."""
    within = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*within)
