"""Checks of numbers in what users send: bins and workers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from megaphone.errors import ControlError


def all_within(values: Sequence[int] | NDArray[np.integer], end: int, what: str) -> NDArray[np.int64]:
    """Numbers of bins or workers as an array; ControlError names one that is none."""
    try:
        numbers = np.asarray(values)
    except ValueError:  # lists of different lengths
        numbers = np.empty(0, object)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        numbers = np.array([within(value, end, what) for value in values], np.int64)  # which says what is odd
    outside = numbers[(numbers < 0) | (numbers >= end)]
    if outside.size:
        raise ControlError(f"there is no {what} {int(outside[0])}: there are {end}, from 0 to {end - 1}")
    return numbers.astype(np.int64)


def within(value: SupportsIndex, end: int, what: str) -> int:
    """The number of a bin or worker; ControlError if it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ControlError(f"{brief(value)} is not the number of a {what}") from None
    if not 0 <= number < end:
        raise ControlError(f"there is no {what} {brief(number)}: there are {end}, from 0 to {end - 1}")
    return number


def brief(value: object) -> str:
    """What somebody gave us, for an error."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
