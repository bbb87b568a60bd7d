"""EmittedRows of words that compiled folds add to: what `emit` and `later` are inside a fold.

A row is a few words of 64 bits; each value is turned into the declared type of its column, and the bits of that are
kept. The array grows as it fills, which is why this is an object with a method and not an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.experimental import structref
from numba.extending import intrinsic, overload_method

from dataflow.columns.batch import Array


@structref.register
class EmittedRowsType(types.StructRef):
    """The type of `EmittedRows`. `kinds` is a tuple with a value of each column's type."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Constants are not part of the type."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class EmittedRows(structref.StructRefProxy):
    """EmittedRows of words, made and filled in compiled code."""

    def __new__(cls, words: Any, used: Any, key: Any, kinds: Any) -> Any:
        return structref.StructRefProxy.__new__(cls, words, used, key, kinds)


structref.define_proxy(EmittedRows, EmittedRowsType, ["words", "used", "key", "kinds"])


@intrinsic
def _bits(typingctx: Any, value: Any) -> Any:
    """The 64 bits of a float64 or an integer of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.uint64))

    return types.uint64(value), generate


@intrinsic
def certain(typingctx: Any, value: Any) -> Any:
    """A value that is known not to be None: numba would go on treating it as one that may be."""
    kind = value.type if isinstance(value, types.Optional) else value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], signature.return_type)

    return kind(value), generate


def _word(kind: Any, name: str) -> str:
    """The expression that turns a value into the word of a column of a type."""
    if isinstance(kind, types.Float):
        return f"bits(np.float64({name}))"
    return f"bits(np.int64({name}))" if kind.signed or isinstance(kind, types.Boolean) else f"np.uint64({name})"


MOST = 24  # values of a row: numba needs the parameters of a method written out

_OPTIONAL = ", ".join(f"v{i}=None" for i in range(MOST))


def _appender(kinds: Any, given: list[Any], leading: list[str]) -> Any:
    """A function that appends a row: words that are given as expressions, then the values."""
    values = [value for value in given if not (value is None or isinstance(value, types.Omitted))]
    if len(values) != len(kinds):
        raise TypingError(f"a row of {len(kinds)} values is expected here, and {len(values)} were given")
    expressions = [*leading, *(_word(kind, f"v{i}") for i, kind in enumerate(kinds))]
    width = len(expressions)
    lines = [
        f"def append(self, {'time, ' if leading else ''}{_OPTIONAL}):",
        "    at = self.used",
        f"    if at + {width} > self.words.size:",
        "        wider = np.empty(2 * self.words.size, np.uint64)",
        "        wider[:at] = self.words[:at]",
        "        self.words = wider",
        "    words = self.words",
        *(f"    words[at + {i}] = {expression}" for i, expression in enumerate(expressions)),
        f"    self.used = at + {width}",
    ]
    scope: dict[str, Any] = {"np": np, "bits": _bits}
    exec("\n".join(lines), scope)
    return scope["append"]


def _row(kinds: Any, given: list[Any]) -> Any:
    return _appender(kinds, given, [])


def _at(kinds: Any, given: list[Any]) -> Any:
    return _appender(kinds, given, ["bits(np.int64(time))", "self.key"])


def _define(name: str, parameters: str, make: Any) -> None:
    """Teaches numba a method with many optional parameters."""
    given = ", ".join(f"v{i}" for i in range(MOST))
    scope: dict[str, Any] = {"make": make}
    exec(
        f"def method(self, {parameters}{_OPTIONAL}):\n    return make(self.field_dict['kinds'].types, [{given}])", scope
    )
    overload_method(EmittedRowsType, name)(scope["method"])


_define("row", "", _row)  # emit.row(a, b, ...): one row of output
_define("at", "time, ", _at)  # later.at(time, a, b, ...): a record of the current key for a later time


class PlainRows:
    """The same for folds that run uncompiled: `row` and `at` with the same meaning."""

    def __init__(self, kinds: list[Any]) -> None:
        self._kinds = kinds
        self.key = 0
        self._rows: list[tuple[Any, ...]] = []

    def row(self, *values: Any) -> None:
        """One row of output."""
        self._append((), values)

    def at(self, time: Any, *values: Any) -> None:
        """A record of the current key for a later time."""
        self._append((np.int64(time), np.uint64(self.key)), values)

    def _append(self, leading: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        if len(values) != len(self._kinds):
            raise TypeError(f"a row of {len(self._kinds)} values is expected here, and {len(values)} were given")
        cast = (np.asarray(value).astype(kind) for value, kind in zip(values, self._kinds, strict=True))
        self._rows.append((*leading, *cast))

    def words(self) -> Array:
        """The rows as words, row after row."""
        flat = [np.asarray(value).reshape(1).view(np.uint64)[0] for row in self._rows for value in row]
        return np.array(flat, np.uint64)
