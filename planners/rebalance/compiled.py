"""The decorator of kernels: numba behind a type that mypy can follow.

The disk cache of a kernel does not notice changes in kernels of other files, so kernels that call each other share a
file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compiles a function over arrays and scalars when it is first called, and keeps the result on disk.

    Divisions by zero give infinities, as in numpy: a key with work and no state is the first to move.
    """
    return cast(Callable[P, T], numba.njit(cache=True, error_model="numpy", nogil=True)(function))
