"""Expressions over columns: Arrow's, with a name and the columns that they need.

Arrow's functions evaluate them, batch by batch, called one by one: its engine (Acero) does the same in pieces of 32,768
rows that have to be put together again, and that costs more than the work itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dataflow.errors import ConstructionError
from dataflow.state.values import Value

Operand: TypeAlias = "Expression | int | float | str | bool | Value"


@dataclass(frozen=True, eq=False)
class Expression:
    """A value for each row. Operators make others: `(col("a") + 1).alias("b")`."""

    name: str
    arrow: pc.Expression
    needs: frozenset[str]
    function: str  # of Arrow's, over the operands; "" for a column or a literal
    operands: tuple[Expression, ...] = ()
    literal: pa.Scalar | None = None
    among: pa.Array | None = None  # what `is_in` looks in

    def evaluate(self, columns: Callable[[str], pa.Array]) -> pa.Array | pa.Scalar:
        """Its values, of columns by their names; a scalar if they are all the same."""
        if self.literal is not None:
            return self.literal
        if not self.function:
            return columns(*self.needs)
        values = [each.evaluate(columns) for each in self.operands]
        if self.among is not None:
            return pc.is_in(values[0], value_set=self.among)
        return pc.call_function(self.function, _alike(values))

    def alias(self, name: str) -> Expression:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return not self.function and self.literal is None

    def _with(self, other: Operand, function: str) -> Expression:
        right = other if isinstance(other, Expression) else lit(other)
        combined = _combine[function](self.arrow, right.arrow)
        return Expression(self.name, combined, self.needs | right.needs, function, (self, right))

    def __add__(self, other: Operand) -> Expression:
        return self._with(other, "add_checked")

    def __sub__(self, other: Operand) -> Expression:
        return self._with(other, "subtract_checked")

    def __mul__(self, other: Operand) -> Expression:
        return self._with(other, "multiply_checked")

    def __truediv__(self, other: Operand) -> Expression:
        return self._with(other, "divide_checked")

    def __gt__(self, other: Operand) -> Expression:
        return self._with(other, "greater")

    def __ge__(self, other: Operand) -> Expression:
        return self._with(other, "greater_equal")

    def __lt__(self, other: Operand) -> Expression:
        return self._with(other, "less")

    def __le__(self, other: Operand) -> Expression:
        return self._with(other, "less_equal")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # as all frames do
        return self._with(other, "equal")

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(other, "not_equal")

    def __and__(self, other: Operand) -> Expression:
        return self._with(other, "and_kleene")

    def __or__(self, other: Operand) -> Expression:
        return self._with(other, "or_kleene")

    def __invert__(self) -> Expression:
        return Expression(self.name, ~self.arrow, self.needs, "invert", (self,))

    __hash__ = None  # type: ignore[assignment]  # since == gives an expression

    def __bool__(self) -> bool:
        raise TypeError("an expression is neither true nor false: say & and | and ~ for and, or and not, in brackets")

    def is_in(self, values: Sequence[Value]) -> Expression:
        """Whether the value is among these."""
        looked = pa.array(list(values))
        return Expression(self.name, self.arrow.isin(looked), self.needs, "is_in", (self,), among=looked)

    def __repr__(self) -> str:
        return f"{self.name} = {self.arrow}"

    # Aggregates

    def sum(self) -> Aggregation:
        """The sum in a window."""
        return Aggregation(self.name, self, ("sum",))

    def min(self) -> Aggregation:
        """The least."""
        return Aggregation(self.name, self, ("min",))

    def max(self) -> Aggregation:
        """The greatest."""
        return Aggregation(self.name, self, ("max",))

    def mean(self) -> Aggregation:
        """The mean."""
        return Aggregation(self.name, self, ("mean",))

    def var(self) -> Aggregation:
        """The variance of the sample."""
        return Aggregation(self.name, self, ("variance",))

    def first(self) -> Aggregation:
        """The value of the first record."""
        return Aggregation(self.name, self, ("first",))

    def last(self) -> Aggregation:
        """The value of the last record."""
        return Aggregation(self.name, self, ("last",))

    def n_unique(self) -> Aggregation:
        """The number of distinct values."""
        return Aggregation(self.name, self, ("distinct",))

    def approx_n_unique(self) -> Aggregation:
        """About the number of distinct values."""
        return Aggregation(self.name, self, ("approximate_distinct",))

    def quantile(self, share: float) -> Aggregation:
        """A quantile, within 1 %."""
        return Aggregation(self.name, self, ("quantile", share))

    def count(self) -> Aggregation:
        """The number of records."""
        return Aggregation(self.name, self, ("count",))


@dataclass(frozen=True)
class Aggregation:
    """One value for each window and key."""

    name: str
    of: Expression
    what: tuple[Value, ...]

    def alias(self, name: str) -> Aggregation:
        """The same under another name."""
        return replace(self, name=name)


def col(name: str) -> Expression:
    """A column."""
    if not isinstance(name, str):
        raise ConstructionError(f"a column has a name, and {name!r} is none")
    return Expression(name, pc.field(name), frozenset([name]), "")


def lit(value: Value) -> Expression:
    """The same value for each row."""
    return Expression("literal", pc.scalar(value), frozenset(), "", literal=pa.scalar(value))


_combine: dict[str, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    "add_checked": operator.add,
    "subtract_checked": operator.sub,
    "multiply_checked": operator.mul,
    "divide_checked": operator.truediv,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "and_kleene": operator.and_,
    "or_kleene": operator.or_,
}


def _alike(values: list[pa.Array | pa.Scalar]) -> list[pa.Array | pa.Scalar]:
    """Operands, of which a literal that is an integer has the smallest type that holds it, as in Arrow's engine: a
    column of 32 bits plus 1 is one of 32 bits. Floats stay as wide as they are; there the engine makes 0.5 a float of
    32 bits, and what it multiplies as well."""
    if all(isinstance(value, pa.Scalar) for value in values):
        return values
    return [_smallest(value) if isinstance(value, pa.Scalar) else value for value in values]


def _smallest(value: pa.Scalar) -> pa.Scalar:
    if value.type != pa.int64():
        return value
    number = value.as_py()
    for kind, bits in ((pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32)):
        if number is not None and -(1 << bits - 1) <= number < 1 << bits - 1:
            return value.cast(kind)
    return value
