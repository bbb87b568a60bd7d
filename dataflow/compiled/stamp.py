"""A digest of all that a kernel depends on: so that whatever changes, what was compiled before is not found any more.

That is the source of its module, and of the modules of all compiled code that it calls, and the constants that it and
they use from outside (which are compiled in). numba's own disk cache sees the first of these only.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import marshal
import sys
import types
from collections.abc import Callable, Iterator

_CONSTANTS = (bool, int, float, str, bytes, tuple, type(None))


def stamp(function: Callable[..., object]) -> str:
    """The digest of what the code of a function depends on, besides the types of its arguments."""
    return hashlib.sha256("\n".join(_parts(function, set())).encode()).hexdigest()


def _parts(function: Callable[..., object], seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    assert isinstance(function, types.FunctionType)
    yield _source(function.__module__) or marshal.dumps(function.__code__).hex()
    for name, value in sorted(_outside(function), key=lambda pair: pair[0]):
        plain = getattr(value, "py_func", None)
        if isinstance(plain, types.FunctionType):
            yield from _parts(plain, seen)
        elif isinstance(value, _CONSTANTS) or hasattr(value, "dtype"):
            yield f"{name} = {value!r}"
        elif (module := getattr(value, "__module__", None)) is not None:  # an intrinsic, or a class
            yield f"{name}: {_source(module)}"


def _outside(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """What a function uses from outside."""
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    return names.union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


@functools.cache
def _source(module: str) -> str:
    """A digest of a module's text; nothing for libraries, whose versions are part of the key."""
    if module.partition(".")[0] in ("numpy", "numba", "builtins", "math", "llvmlite"):
        return ""
    try:
        return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()
    except (OSError, TypeError, KeyError):
        return ""
