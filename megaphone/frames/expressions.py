"""Expressions over columns: Arrow's, with a name and the columns that they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

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

    def alias(self, name: str) -> Expression:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return len(self.needs) == 1 and self.arrow.equals(pc.field(*self.needs))

    def _with(self, other: Operand, combine: Callable[[pc.Expression, pc.Expression], pc.Expression]) -> Expression:
        right = other if isinstance(other, Expression) else lit(other)
        return Expression(self.name, combine(self.arrow, right.arrow), self.needs | right.needs)

    def __add__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a / b)

    def __gt__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a > b)

    def __ge__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a >= b)

    def __lt__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a < b)

    def __le__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a <= b)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # as all frames do
        return self._with(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(other, lambda a, b: a != b)

    def __and__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a & b)

    def __or__(self, other: Operand) -> Expression:
        return self._with(other, lambda a, b: a | b)

    def __invert__(self) -> Expression:
        return replace(self, arrow=~self.arrow)

    __hash__ = None  # type: ignore[assignment]  # since == gives an expression

    def __bool__(self) -> bool:
        raise TypeError("an expression is neither true nor false: say & and | and ~ for and, or and not, in brackets")

    def is_in(self, values: Sequence[Value]) -> Expression:
        """Whether the value is among these."""
        return replace(self, arrow=self.arrow.isin(list(values)))

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
    return Expression(name, pc.field(name), frozenset([name]))


def lit(value: Value) -> Expression:
    """The same value for each row."""
    return Expression("literal", pc.scalar(value), frozenset())
