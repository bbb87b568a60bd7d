"""Numbers of less than 64 bits in the state of folds that run uncompiled: they compute as compiled code does.

Compiled code computes with integers of 64 bits, and with floats of 32 only where all that meet are narrow: a float32
and another, or a small integer of the state. With a constant, a value or the time it is a float64. numpy has other
rules: to it a Python number takes the type of what it meets.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Compute: TypeAlias = Callable[[np.floating, np.floating], np.floating]
_NUMBERS = (int, float, np.number, np.bool_)


class Small(np.int64):
    """An integer of 8 or 16 bits: of 64 bits in itself, and narrow to floats that it meets."""


def _narrow(other: object) -> bool:
    return isinstance(other, np.float32 | np.bool_ | Small)


def _binary(compute: Compute) -> tuple[Any, Any]:  # numpy has overloads of these for every pair of numbers
    def forward(self: Single, other: object) -> object:
        return _computed(compute, self, other, _narrow(other))

    def backward(self: Single, other: object) -> object:
        return _computed(compute, other, self, _narrow(other))

    return forward, backward


def _computed(compute: Compute, left: object, right: object, narrow: bool) -> object:
    if not isinstance(left, _NUMBERS) or not isinstance(right, _NUMBERS):
        return NotImplemented
    if narrow:
        return Single(compute(np.float32(left), np.float32(right)))
    return compute(np.float64(left), np.float64(right))


class Single(np.float32):
    """A float of 32 bits."""

    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod)

    def __neg__(self) -> Single:
        return Single(-np.float32(self))

    def __pos__(self) -> Single:
        return self

    def __abs__(self) -> Single:
        return Single(abs(np.float32(self)))


def as_compiled(value: np.generic) -> np.generic:
    """A number of the state as compiled code sees it. `state.small * 1000` does not wrap around at 32 bits."""
    kind = value.dtype
    if kind.itemsize == 8 or kind.kind == "b":
        return value
    if kind.kind == "f":
        return Single(value)
    return Small(value) if kind.itemsize < 4 else np.int64(value)
