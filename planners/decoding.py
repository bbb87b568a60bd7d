"""What files say, checked where it is read. A BadRequest names the file, what is wrong with it, and what to do.

A file may be truncated or damaged, or come from another program or another person. `read_object` reads JSON; `parquet`
turns what the reader of a Parquet file raises into a BadRequest. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from planners.errors import BadRequest

MOST = 2**63  # whole numbers are below: they become arrays


def read_object(path: str | Path, advice: str) -> dict[str, object]:
    """The JSON object in a file; `advice` is what to do if there is none. FileNotFoundError if there is no file."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    return parse_object(data, str(path), advice)


def parse_object(data: bytes | str, name: str, advice: str) -> dict[str, object]:
    """The JSON object that these bytes are."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of thousands of digits; too deep
        raise BadRequest(f"{name} is not JSON ({_briefly(error)}): {advice}") from None
    if not isinstance(found, dict):
        raise BadRequest(f"{name} is not a JSON object, with names and values: {advice}")
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number that JSON has")


def _briefly(told: object) -> str:
    text = " ".join(str(told).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def member(found: Mapping[str, object], name: str) -> object:
    """What an object must have."""
    if name not in found:
        raise BadRequest(f"{name!r} is missing")
    return found[name]


def mapping(found: Mapping[str, object], name: str) -> dict[str, object]:
    """An object within an object."""
    value = member(found, name)
    if not isinstance(value, dict):
        raise BadRequest(f"{name!r} is not an object")
    return value


def string(found: Mapping[str, object], name: str) -> str:
    """A string."""
    value = member(found, name)
    if not isinstance(value, str):
        raise BadRequest(f"{name!r} is not a string")
    return value


def number(found: Mapping[str, object], name: str) -> int | float:
    """A finite number."""
    return _number(member(found, name), f"{name!r} is a number")


def whole(found: Mapping[str, object], name: str) -> int:
    """A whole number, zero or more."""
    value = _number(member(found, name), f"{name!r} is a number")
    if not isinstance(value, int) or value < 0:
        raise BadRequest(f"{name!r} is a whole number, zero or more, and not {value!r}")
    return value


def numbers(found: Mapping[str, object], name: str) -> list[int | float]:
    """A list of finite numbers."""
    return [_number(value, f"{name} are numbers") for value in _list(member(found, name), name)]


def wholes(found: Mapping[str, object], name: str) -> list[int]:
    """A list of whole numbers."""
    values = [_number(value, f"{name} are whole numbers") for value in _list(member(found, name), name)]
    if not all(isinstance(value, int) for value in values):
        raise BadRequest(f"{name} are whole numbers, and there is another among them")
    return [int(value) for value in values]


def rows(found: Mapping[str, object], name: str) -> list[list[int | float]]:
    """A list of lists of finite numbers, all of one length."""
    lists = [numbers({name: row}, name) for row in _list(member(found, name), name)]
    if len({len(row) for row in lists}) > 1:
        raise BadRequest(f"the rows of {name!r} are not equally long")
    return lists


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise BadRequest(f"{name!r} is not a list")
    return value


def _number(value: object, rule: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(f"{rule}, and not {_briefly(repr(value))}")
    if (isinstance(value, int) and not -MOST <= value < MOST) or not math.isfinite(value):
        raise BadRequest(f"{rule}, finite and below 2^63, and not {_briefly(value)}")
    return value


@contextmanager
def naming(path: str | Path, advice: str) -> Iterator[None]:
    """A BadRequest that is raised within names the file, and says what to do."""
    try:
        yield
    except BadRequest as error:
        raise BadRequest(f"{path}: {str(error).rstrip('.')}: {advice}") from None


@contextmanager
def parquet(path: str | Path, advice: str) -> Iterator[None]:
    """Whatever the reader of Parquet files raises at a damaged file becomes a BadRequest."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, OverflowError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno:  # there is no such file, or it cannot be opened
            raise BadRequest(f"cannot read {path}: {os.strerror(error.errno)}") from None
        raise BadRequest(f"cannot read {path} as Parquet ({_briefly(error)}): {advice}") from None
