"""EmittedRows of words that compiled folds add to: what `emit` and `later` are inside a fold.

A row is a few words of 64 bits; each value is turned into the declared type of its column, and the bits of that are
kept. The array grows as it fills, which is why this is an object with a method and not an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.errors import TypingError
from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature
from numba.experimental import structref
from numba.extending import intrinsic, overload_method
from numpy.typing import NDArray

from dataflow.compiled.intrinsics import Definition
from dataflow.state.arrays import Words
from dataflow.state.values import Value

Appender: TypeAlias = Callable[..., object]
Scalar: TypeAlias = np.generic | NDArray[np.generic]


@structref.register
class EmittedRowsType(types.StructRef):
    """The type of `EmittedRows`. `kinds` is a tuple with a value of each column's type."""

    def preprocess_fields(self, fields: Iterable[tuple[str, Type]]) -> tuple[tuple[str, Type], ...]:
        """Constants are not part of the type."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class EmittedRows(structref.StructRefProxy):
    """EmittedRows of words, made and filled in compiled code."""

    def __new__(cls, words: Words, used: int, key: np.uint64, kinds: tuple[np.generic, ...]) -> EmittedRows:
        made: EmittedRows = structref.StructRefProxy.__new__(cls, words, used, key, kinds)
        return made


structref.define_proxy(EmittedRows, EmittedRowsType, ["words", "used", "key", "kinds"])


@intrinsic
def _bits(typingctx: object, value: Type) -> Definition:
    """The 64 bits of a float64 or an integer of 64 bits."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.bitcast(args[0], context.get_value_type(types.uint64))

    return types.uint64(value), generate


@intrinsic
def certain(typingctx: object, value: Type) -> Definition:
    """A value that is known not to be None: numba would go on treating it as one that may be."""
    kind = value.type if isinstance(value, types.Optional) else value

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        return context.cast(builder, args[0], signature.args[0], signature.return_type)

    return kind(value), generate


def _word(kind: Type, name: str) -> str:
    """The expression that turns a value into the word of a column of a type."""
    if isinstance(kind, types.Float):
        return f"bits(np.float64({name}))"
    return f"np.uint64({name})" if kind == types.uint64 else f"bits(np.int64({name}))"


MOST = 24  # values of a row: numba needs the parameters of a method written out

_OPTIONAL = ", ".join(f"v{i}=None" for i in range(MOST))


def _appender(kinds: Sequence[Type], given: list[Type | None], leading: list[str]) -> Appender:
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
    return _defined("append", "\n".join(lines), {"np": np, "bits": _bits})


def _row(kinds: Sequence[Type], given: list[Type | None]) -> Appender:
    return _appender(kinds, given, [])


def _at(kinds: Sequence[Type], given: list[Type | None]) -> Appender:
    return _appender(kinds, given, ["bits(np.int64(time))", "self.key"])


def _define(name: str, parameters: str, make: Callable[[Sequence[Type], list[Type | None]], Appender]) -> None:
    """Teaches numba a method with many optional parameters."""
    given = ", ".join(f"v{i}" for i in range(MOST))
    text = f"def method(self, {parameters}{_OPTIONAL}):\n    return make(self.field_dict['kinds'].types, [{given}])"
    overload_method(EmittedRowsType, name)(_defined("method", text, {"make": make}))


def _defined(name: str, text: str, scope: dict[str, object]) -> Appender:
    """The function that a text defines, which uses what is in scope."""
    exec(text, scope)
    made = scope[name]
    assert callable(made)
    return made


_define("row", "", _row)  # emit.row(a, b, ...): one row of output
_define("at", "time, ", _at)  # later.at(time, a, b, ...): a record of the current key for a later time


class PlainRows:
    """The same for folds that run uncompiled: `row` and `at` with the same meaning."""

    def __init__(self, kinds: list[np.dtype[np.generic]]) -> None:
        self._kinds = kinds
        self.key = 0
        self._rows: list[tuple[Scalar, ...]] = []

    def row(self, *values: Value) -> None:
        """One row of output."""
        self._append((), values)

    def at(self, time: int, *values: Value) -> None:
        """A record of the current key for a later time."""
        self._append((np.int64(time), np.uint64(self.key)), values)

    def _append(self, leading: tuple[Scalar, ...], values: tuple[Value, ...]) -> None:
        if len(values) != len(self._kinds):
            raise TypeError(f"a row of {len(self._kinds)} values is expected here, and {len(values)} were given")
        cast = (np.asarray(value).astype(kind) for value, kind in zip(values, self._kinds, strict=True))
        self._rows.append((*leading, *cast))

    def words(self) -> Words:
        """The rows as words, row after row."""
        flat = [np.asarray(value).reshape(1).view(np.uint64)[0] for row in self._rows for value in row]
        return np.array(flat, np.uint64)
