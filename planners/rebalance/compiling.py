"""The decorator of kernels that divide as numpy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dataflow.compiled.kernel import kernel

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compiles a function over arrays and scalars when it is first called, and keeps the result on disk.

    Divisions by zero give infinities, as in numpy: a key with work and no state is the first to move.
    """
    return kernel(error_model="numpy", nogil=True)(function)
