"""From a fold to compiled code.

A module is made for each fold, in memory: its source, the constants and functions that it uses, and the loop that
drives it. Its name is a digest of all that, of our kernels and of the library versions; whatever changes, changes the
name. What is compiled of it is kept on disk under that name (`dataflow.compiled`): processes that want the same at the
same time wait for the first to compile it.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import linecache
import math
import re
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

import numba
import numpy as np
from numba.core.errors import NumbaError, NumbaWarning
from numba.core.types.abstract import Type

from dataflow.columns import hashing
from dataflow.compiled import beforehand
from dataflow.compiled.kernel import keep
from dataflow.state.arrays import Words
from dataflow.state.folds import emitter
from dataflow.state.folds.fold import FoldError, Function, definition
from dataflow.state.memory import allocation
from dataflow.state.tables import blocks, dense_kernels, hash_kernels

Drive: TypeAlias = Callable[..., tuple[int, Words, Words]]
"""The compiled loop: how many rows were returned, the words emitted, the words post-dated."""
_CONSTANTS = (bool, int, float, str, type(None))


def source_of(function: Function) -> tuple[str, int]:
    """The text of a function from its `def` on, and the line of its file on which that stands."""
    node = definition(function)
    lines, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(lines)).splitlines()[node.lineno - 1 : node.end_lineno]
    return "\n".join(text), first + node.lineno - 1


def surroundings(function: Function, seen: dict[str, object] | None = None) -> list[str]:
    """What a function uses from outside, as source: constants, modules, and other functions with theirs.

    All of it stands in one module: FoldError if two functions mean different things by one name.
    """
    seen = {function.__name__: function, "np": np, "njit": numba.njit} if seen is None else seen
    lines: list[str] = []
    for name, value in _outside(function):
        if _is_new(function, name, value, seen):
            lines += _as_source(function, name, value, seen)
        if isinstance(value, types.ModuleType):
            lines += _attributes(function, name, value)
    return lines


def _is_new(function: Function, name: str, value: object, seen: dict[str, object]) -> bool:
    if name not in seen:
        seen[name] = value
        return True
    known = seen[name]
    if known is not value and (type(known) is not type(value) or not isinstance(value, _CONSTANTS) or known != value):
        raise FoldError(
            f"{function.__name__} uses {name}, which means something else in another function that is compiled with "
            "it: give one of them another name"
        )
    return False


def _outside(function: Function) -> Iterator[tuple[str, object]]:
    """The names that a function and the functions inside it use from outside, and what they mean."""
    yield from sorted(inspect.getclosurevars(function).nonlocals.items())
    arguments = definition(function).args
    defaults = [node for node in (*arguments.defaults, *arguments.kw_defaults) if node is not None]
    names = {node.id for default in defaults for node in ast.walk(default) if isinstance(node, ast.Name)}
    for name in sorted(names | _globals_of(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _globals_of(code: types.CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return names.union(*(_globals_of(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _attributes(function: Function, name: str, module: types.ModuleType) -> list[str]:
    """What a function uses of a module, as comments: so that another value makes another digest."""
    used = {
        node.attr
        for node in ast.walk(definition(function))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }
    values = [(attribute, getattr(module, attribute, None)) for attribute in sorted(used)]
    lines = [f"{name}.{attribute} = {value!r}" for attribute, value in values if isinstance(value, _CONSTANTS)]
    for attribute, value in values:
        plain = getattr(value, "py_func", value)
        if inspect.isfunction(plain) and not module.__name__.startswith(("numpy", "math", "numba")):
            lines += [f"{name}.{attribute}:", *surroundings(plain), *source_of(plain)[0].splitlines()]
    return [f"# {part}" for line in lines for part in line.splitlines()]


def _as_source(function: Function, name: str, value: object, seen: dict[str, object]) -> list[str]:
    if isinstance(value, types.ModuleType):
        return [f"import {value.__name__} as {name}"]
    if (literal := _literal(value)) is not None:
        return [f"{name} = {literal}"]
    plain = getattr(value, "py_func", value)  # of a function that is compiled already
    if inspect.isfunction(plain):
        text, _ = source_of(plain)
        alias = [] if plain.__name__ == name else [f"{name} = {plain.__name__}"]
        if alias and not _is_new(function, plain.__name__, value, seen):
            return alias
        return [*surroundings(plain, seen), f"@njit\n{text}", *alias]
    raise FoldError(
        f"{function.__name__} uses {name}, which is a {type(value).__name__}: a compiled fold can use numbers, "
        "strings, tuples of them, modules and functions from outside; keep anything else in its state"
    )


def _literal(value: object) -> str | None:
    """A constant as source; None if it is something else."""
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_literal(value.item())})" if value.dtype.kind in "iufb" else None
    if type(value) is tuple:
        parts = [_literal(part) for part in value]
        return None if None in parts else f"({''.join(f'{part}, ' for part in parts)})"
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f"float('{float(value)!r}')"
    if isinstance(value, int) and not isinstance(value, bool):
        return repr(int(value))  # an enumeration's member is an integer too
    return repr(value) if type(value) in _CONSTANTS else None


def make_module(name: str, source: str, fold: str) -> types.ModuleType:
    """A module of this text, made once in a process. Tracebacks, debuggers and numba find its lines in `linecache`."""
    full, file = f"_megaphone_folds.{name}", _file_of(name)
    if full not in sys.modules:
        module = types.ModuleType(full)
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        exec(compile(source, file, "exec"), vars(module))
        keep(module._drive, name, fold=fold)
        sys.modules[full] = module
        beforehand.note_text(name, fold, source)
    return sys.modules[full]


def _file_of(name: str) -> str:
    return f"<megaphone-dataflow>/folds/{name}.py"  # there is none: nobody can change it


def _make_beforehand(name: str, fold: str, source: str) -> None:
    """Makes a module that another worker has, from a text that only this user can have written."""
    if name == f"fold_{_digest(source)}":
        make_module(name, source, fold)


beforehand.on_text.append(_make_beforehand)


class Module:
    """A module with a compiled function `_drive`."""

    def __init__(self, function: Function, head: str, driver: str) -> None:
        self._function = function
        text, self._line = source_of(function)
        before = "\n".join(["from __future__ import annotations", head, *surroundings(function), "@njit"])
        self._start = before.count("\n") + 2  # the line on which the function's `def` stands
        self._end = self._start + text.count("\n")
        tail = "" if function.__name__ == "_fold" else f"_fold = {function.__name__}\n"
        source = f"{before}\n{text}\n\n{tail}\n{driver}"
        self.name = f"fold_{_digest(source)}"
        self._file = _file_of(self.name)
        self._module = make_module(self.name, source, function.__name__)

    def compile(self, signature: tuple[Type, ...]) -> Drive:
        """The driver, compiled or taken from disk; FoldError names the line that cannot be compiled."""
        drive = self._module._drive
        if drive.signatures:  # another worker in this process has been here
            return drive  # type: ignore[no-any-return]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            try:
                drive.compile(signature)
            except NumbaError as error:
                raise FoldError(self._explain(error)) from None
            except Exception as error:  # numba is not above a KeyError
                raise FoldError(self._explain(error)) from error
        drive.disable_compile()
        return drive  # type: ignore[no-any-return]

    def _explain(self, error: Exception) -> str:
        message = str(error)
        name, file = self._function.__name__, inspect.getsourcefile(self._function)
        path, short = re.escape(self._file), re.escape(f"{self.name}.py")
        forms = rf'{short}", line (\d+)|\({path}:(\d+)\)|{path} \((\d+)\)'  # numba names lines in several ways
        numbers = [int(number) for found in re.findall(forms, message) for number in found if number]
        inside = [n for n in numbers if self._start <= n <= self._end]
        where = ""
        line = inside[-1] - self._start + self._line if inside else self._suspect()
        if line is not None:
            code = inspect.getsource(sys.modules[self._function.__module__]).splitlines()[line - 1].strip()
            where = f"{file}, line {line}: `{code}`\n  "
        return (
            f"{name} cannot be compiled: {where}{_reason(message)}\n"
            "  Folds are compiled by numba: use numbers, the fields of `state`, and functions of these. compiled=False "
            "runs the same function uncompiled, to look for the fault with print and a debugger."
        )

    def _suspect(self) -> int | None:
        """The line with something that numba refuses without saying where."""
        function = self._function
        tree = definition(function)
        for node in ast.walk(tree):
            absent = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and isinstance(module := function.__globals__.get(node.value.id), types.ModuleType)
                and not hasattr(module, node.attr)
            )
            if absent or isinstance(node, _REFUSED):
                return int(getattr(node, "lineno", tree.lineno)) - tree.lineno + self._line
        return None


_REFUSED = (ast.With, ast.AsyncWith, ast.Try, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Delete)

_TELLING = (  # what numba says, from what says most to what says least
    r"is expected here",
    r"nknown attribute|annot|not supported|nrecognized|not defined|Invalid use",
    r"No implementation",
)


def _reason(message: str) -> str:
    """The sentence of numba's message that says most."""
    lines = [re.sub(r"\.*\s*Raised from .*", "", line).strip() for line in message.splitlines()]
    noise = ("Failed in", "File", "During", "[", "-", "^", "<source")
    useful = [line for line in lines if line and not line.startswith(noise)]
    for pattern in _TELLING:
        for number, line in enumerate(useful):
            if re.search(pattern, line):
                signature = useful[number + 1] if line.endswith("signature:") else ""
                return f"{line.removeprefix('TypingError: ')} {signature.removeprefix('>>> ')}".rstrip()
    return (useful or ["numba gave no reason"])[0]


def _digest(source: str) -> str:
    parts = [source, numba.__version__, np.__version__, sys.version, *_surrounding_modules()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@cache
def _surrounding_modules() -> list[str]:
    """The texts of what drivers use."""
    modules = (allocation, blocks, hash_kernels, dense_kernels, hashing, emitter)
    return [inspect.getsource(module) for module in modules]
