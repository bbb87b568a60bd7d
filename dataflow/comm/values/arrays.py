"""numpy's scalars and arrays as plain data: with their dtype, and nothing but arrays themselves.

How an array lies in memory (its order, strides, whether it may be written to) is not part of its value: what arrives is
in C order and may be written to.
"""

from __future__ import annotations

import functools
import re
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.comm.values.refusal import Refusal, brief, refuse
from dataflow.comm.values.shapes import require_bytes, require_integer, require_list

DType: TypeAlias = np.dtype[np.generic]
Array: TypeAlias = NDArray[np.generic]

_DTYPE = re.compile(r"[<>|=]([biufcmMSU][1-9][0-9]{0,6}(\[[0-9]{0,9}[a-zA-Z]{1,2}\])?|[qQ])")


def dtype_name(dtype: DType) -> str:
    """How a dtype is named in encoded data; TypeError for arrays of objects and records."""
    name = dtype.str if dtype.char not in "qQ" else dtype.byteorder + dtype.char  # a C type, not only a size
    if dtype.fields is None and _is_name(name):
        return name
    raise TypeError(f"numpy data of dtype {dtype} cannot be sent to another worker: use numbers, dates or strings")


@functools.lru_cache(256)
def _is_name(name: str) -> bool:
    return _DTYPE.fullmatch(name) is not None


def safe_dtype(name: object) -> DType:
    """The dtype of that name, if it is one that `dtype_name` could have written."""
    if type(name) is not str:
        raise ValueError(f"{brief(name)} is not a dtype for data")
    return _dtype(name)


@functools.lru_cache(256)  # one is looked up for each column that is received
def _dtype(name: str) -> DType:
    if not _is_name(name):
        raise ValueError(f"{brief(name)} is not a dtype for data")
    return np.dtype(name)


def of_array(array: Array) -> list[object]:
    """An array: its dtype, its shape, its values."""
    return [_name(array), list(array.shape), array.tobytes()]


def to_array(plain: object) -> Array:
    """The array that `of_array` was given."""
    name, shape, raw = require_list(plain, 3)
    sizes = [require_integer(size) for size in require_list(shape)]
    return np.frombuffer(bytearray(require_bytes(raw)), safe_dtype(name)).reshape(sizes)


def is_scalar(kind: type) -> bool:
    """Whether a type is one of numpy's own scalars: a class that inherits from one has more to it."""
    return issubclass(kind, np.generic) and kind.__module__ == "numpy"


def of_scalar(scalar: np.generic) -> list[object]:
    """A scalar: its dtype, its value."""
    return [_name(scalar), scalar.tobytes()]


def to_scalar(plain: object) -> np.generic:
    """The scalar that `of_scalar` was given."""
    name, raw = require_list(plain, 2)
    scalar: np.generic
    (scalar,) = np.frombuffer(require_bytes(raw), safe_dtype(name))
    return scalar


def of_text(text: np.str_ | np.bytes_) -> str | bytes:
    """numpy's strings: all of them, although numpy's own conversion leaves out zeros at the end."""
    if type(text) is np.str_:
        return str.__add__(text, "")
    if type(text) is np.bytes_:
        return bytes.__add__(text, b"")
    raise refuse(text)


def to_text(plain: object) -> np.str_ | np.bytes_:
    """The string that `of_text` was given."""
    return np.str_(plain) if type(plain) is str else np.bytes_(require_bytes(plain))


def _name(value: Array | np.generic) -> str:
    try:
        return dtype_name(value.dtype)
    except TypeError as error:
        raise Refusal(value, f"{str(error).capitalize()}.") from None
