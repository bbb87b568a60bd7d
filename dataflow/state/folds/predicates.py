"""Predicates over two records, compiled like folds: which of many pairs satisfy one.

A predicate is a plain function of two records, whose fields are attributes: `def near(a, b): return a.price < b.price`.
Fields have 64 bits; moments and time spans are counts of their unit.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dataflow.state.arrays import Flags, Ints
from dataflow.state.folds.driver import compiled_arithmetic
from dataflow.state.folds.fold import FoldError, Function, definition

Records: TypeAlias = NDArray[np.void]
Filter: TypeAlias = Callable[[Records, Records, Ints, Ints, Flags], None]
"""Clears the flag of each pair that does not satisfy the predicate. A pair has the index of the one record, and that of
the other."""

_LOOP = """
@njit
def _drive(_ones, _others, _one, _other, _fits):
    for _i in range(_fits.size):
        if _fits[_i]:
            if not _fold(_ones[_one[_i]], _others[_other[_i]]):
                _fits[_i] = False
"""


def check_filter(predicate: Function) -> None:
    """FoldError unless the predicate has a source that can be compiled; whether it can is known when the types are."""
    if not inspect.isfunction(predicate):
        raise FoldError(f"{predicate!r} is not a function that is written with def, which compiling needs")
    definition(predicate)


def compile_filter(predicate: Function, one: np.dtype[np.void], other: np.dtype[np.void]) -> Filter:
    """The compiled loop, for records of two types; FoldError names the line that cannot be compiled."""
    from numba import from_dtype, types

    from dataflow.state.folds.compiling import Module

    kinds = f"# {one.descr} {other.descr}\n"
    module = Module(predicate, "import numpy as np\nfrom numba import njit", f"{_LOOP}{kinds}")
    signature = (
        types.Array(from_dtype(one), 1, "C"), types.Array(from_dtype(other), 1, "C"), types.int64[::1],
        types.int64[::1], types.boolean[::1],
    )  # fmt: skip
    try:
        return cast(Filter, module.compile(signature))
    except FoldError as error:
        absent = _absent_field(predicate, one, other)
        if absent is None:
            raise
        raise FoldError(f"{predicate.__name__} cannot be compiled: {absent}") from error


def _absent_field(predicate: Function, one: np.dtype[np.void], other: np.dtype[np.void]) -> str | None:
    """Where the predicate asks a record for a field that it has not: of that numba says nothing but the name."""
    lines, start = inspect.getsourcelines(predicate)
    node = definition(predicate)
    fields = dict(zip([each.arg for each in node.args.args], (one.names, other.names), strict=False))
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            there = fields.get(part.value.id)
            if there is not None and part.attr not in there:
                code = lines[part.lineno - 1].strip()
                where = f"{inspect.getsourcefile(predicate)}, line {start + part.lineno - 1}: `{code}`"
                return f"{where}\n  {part.value.id} has no field {part.attr!r}: there are {', '.join(there)}"
    return None


def plain_filter(predicate: Function) -> Filter:
    """The same without anything compiled, to look for faults with print and a debugger."""

    def drive(ones: Records, others: Records, one: Ints, other: Ints, fits: Flags) -> None:
        left, right = ones.view(np.recarray), others.view(np.recarray)
        with compiled_arithmetic():
            for i in np.flatnonzero(fits).tolist():
                fits[i] = bool(predicate(left[one[i]], right[other[i]]))

    return drive
