"""Predicates over two records, compiled like folds: which of many pairs satisfy one.

A predicate is a plain function of two records, whose fields are attributes: `def near(a, b): return a.price < b.price`.
Fields have 64 bits; moments and time spans are counts of their unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dataflow.state.arrays import Flags, Ints
from dataflow.state.folds.driver import compiled_arithmetic
from dataflow.state.folds.fold import Function

Records: TypeAlias = NDArray[np.void]
Filter: TypeAlias = Callable[[Records, Records, Ints, int, int, Flags], None]
"""Clears the flag of each pair that does not satisfy the predicate. Pairs are rows of numbers, of which two columns say
which records they mean: by number, modulo the records that there are."""

_LOOP = """
@njit
def _drive(_ones, _others, _parts, _one, _other, _fits):
    _few, _many = _ones.size - 1, _others.size - 1
    for _i in range(_fits.size):
        if _fits[_i]:
            if not _fold(_ones[_parts[_i, _one] & _few], _others[_parts[_i, _other] & _many]):
                _fits[_i] = False
"""


def compile_filter(predicate: Function, one: np.dtype[np.void], other: np.dtype[np.void]) -> Filter:
    """The compiled loop, for records of two types; FoldError names the line that cannot be compiled."""
    from numba import from_dtype, types

    from dataflow.state.folds.compiling import Module

    kinds = f"# {one.descr} {other.descr}\n"
    module = Module(predicate, "import numpy as np\nfrom numba import njit", f"{_LOOP}{kinds}")
    signature = (
        types.Array(from_dtype(one), 1, "C"), types.Array(from_dtype(other), 1, "C"), types.int64[:, ::1], types.int64,
        types.int64, types.boolean[::1],
    )  # fmt: skip
    return cast(Filter, module.compile(signature))


def plain_filter(predicate: Function) -> Filter:
    """The same without anything compiled, to look for faults with print and a debugger."""

    def drive(ones: Records, others: Records, parts: Ints, one: int, other: int, fits: Flags) -> None:
        left, right = ones.view(np.recarray), others.view(np.recarray)
        with compiled_arithmetic():
            for i in np.flatnonzero(fits).tolist():
                pair = left[parts[i, one] & (len(left) - 1)], right[parts[i, other] & (len(right) - 1)]
                fits[i] = bool(predicate(*pair))

    return drive
