"""Arithmetic for folds that raises where plain arithmetic wraps around at 64 bits.

A fold is compiled, and compiled integers wrap silently, as in C: 2^63 - 1 and 1 is -2^63. Say instead

    state.total = add(state.total, value)

and what does not fit is an OverflowError, whose notes name the operator, the key, the bin and the time. For integers of
64 bits with a sign; state of fewer bits is checked with `fits` when it is written. It costs a few instructions each.
"""

from __future__ import annotations

_LEAST = -(2**63)


def add(left: int, right: int) -> int:
    """left + right; OverflowError if int64 cannot hold it.

    >>> add(2, 3)
    5
    """
    total = left + right
    if (left ^ total) & (right ^ total) < 0:  # it has a sign that neither of them has
        raise OverflowError("a sum of integers is beyond 64 bits")
    return total


def subtract(left: int, right: int) -> int:
    """left - right; OverflowError if int64 cannot hold it.

    >>> subtract(2, 3)
    -1
    """
    difference = left - right
    if (left ^ right) & (left ^ difference) < 0:
        raise OverflowError("a difference of integers is beyond 64 bits")
    return difference


def multiply(left: int, right: int) -> int:
    """left * right; OverflowError if int64 cannot hold it.

    >>> multiply(-4, 3)
    -12
    """
    product = left * right
    if left != 0 and (product // left != right or (left == -1 and right == _LEAST)):
        raise OverflowError("a product of integers is beyond 64 bits")
    return product


def fits(value: int, bits: int) -> int:
    """The value; OverflowError if a signed integer of so many bits cannot hold it: `state.small = fits(n, 32)`.

    >>> fits(-128, 8)
    -128
    """
    if value >> (bits - 1) != 0 and value >> (bits - 1) != -1:
        raise OverflowError("an integer is beyond the bits of what it is written to")
    return value
