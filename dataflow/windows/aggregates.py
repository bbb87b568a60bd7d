"""Aggregates over the records of a window: each has a state of plain data, which is added to, merged and finished.

The result depends on the set of records alone, not on their order: `first` and `last` go by time (of several at one
time, the least and the greatest value), and a fold gets its values in the order of time.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from dataflow.errors import ConstructionError
from dataflow.values import Record, Value
from dataflow.windows import partials, sketches
from dataflow.windows.partials import Groups

State: TypeAlias = Value  # of users' values
ValueOf: TypeAlias = str | Callable[[Record], Value]
Wanted: TypeAlias = "str | tuple[Value, ...]"
"""An aggregate as people write it: "count", ("sum", "price"), ("quantile", "price", 0.99)."""


class WindowAggregate(ABC):
    """How one aggregate is computed."""

    listed = False  # whether the result is a list

    @abstractmethod
    def new(self, time: int, value: Value) -> State:
        """The state of one record."""

    @abstractmethod
    def merge(self, left: State, right: State) -> State:
        """The state of both. Neither is used again."""

    def add(self, state: State, time: int, value: Value) -> State:
        """The state with one more record."""
        return self.merge(state, self.new(time, value))

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        """The states of groups of rows, of a column; None if they must be made row by row."""
        return None

    def copy(self, state: State) -> State:
        """A state that may be merged while the given one stays."""
        return state

    def finish(self, state: State) -> Value:
        """The result."""
        return state


class _Counting(WindowAggregate):
    def new(self, time: int, value: Value) -> State:
        return 1

    def merge(self, left: State, right: State) -> State:
        return left + right

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        return partials.count_states(groups, name)


class _Reducing(WindowAggregate):
    def __init__(self, function: Callable[[Value, Value], Value]) -> None:
        self._function = function

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        if self._function is operator.add:
            return partials.sum_states(groups, name)
        return partials.extreme_states(groups, name, self._function is min)

    def new(self, time: int, value: Value) -> State:
        return value

    def merge(self, left: State, right: State) -> State:
        return self._function(left, right)


class _Moments(WindowAggregate):
    """Number, mean and sum of squared distances from it (Chan, Golub and LeVeque 1979): mean, variance, deviation."""

    def __init__(self, what: str) -> None:
        self._what = what

    def new(self, time: int, value: Value) -> State:
        return (1, value, 0.0)

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        return partials.moment_states(groups, name)

    def merge(self, left: State, right: State) -> State:
        (n, mean, squares), (m, other, more) = left, right
        apart = other - mean
        return (n + m, mean + apart * m / (n + m), squares + more + apart * apart * n * m / (n + m))

    def finish(self, state: State) -> Value:
        n, mean, squares = state
        if self._what == "mean":
            return mean / 1
        variance = squares / (n - 1) if n > 1 else math.nan
        return variance if self._what == "variance" else math.sqrt(variance)


class _Mean(WindowAggregate):
    """Sum and number: exact for integers."""

    def new(self, time: int, value: Value) -> State:
        return (value, 1)

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        return partials.mean_states(groups, name)

    def merge(self, left: State, right: State) -> State:
        return (left[0] + right[0], left[1] + right[1])

    def finish(self, state: State) -> Value:
        return state[0] / state[1]


class _AtEnd(WindowAggregate):
    """The first or the last value."""

    def __init__(self, choose: Callable[[State, State], State]) -> None:
        self._choose = choose

    def new(self, time: int, value: Value) -> State:
        return (time, value)

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        return partials.end_states(groups, name, self._choose is min)

    def merge(self, left: State, right: State) -> State:
        return self._choose(left, right)

    def finish(self, state: State) -> Value:
        return state[1]


class _Tallying(WindowAggregate):
    """Numbers by something: distinct values, frequent ones, buckets, registers. A state is a dictionary."""

    def __init__(
        self,
        entry: Callable[[Value], tuple[Value, int]],
        both: Callable[[int, int], int],
        finish: Callable[[dict[Value, int]], Value],
        *,
        listed: bool = False,
        of_groups: Callable[[Groups, str], list[State] | None] | None = None,
    ) -> None:
        self._entry = entry
        self._both = both
        self._finish = finish
        self.listed = listed
        self._of_groups = of_groups

    def of_groups(self, groups: Groups, name: str) -> list[State] | None:
        return None if self._of_groups is None else self._of_groups(groups, name)

    def new(self, time: int, value: Value) -> State:
        key, number = self._entry(value)
        return {key: number}

    def add(self, state: State, time: int, value: Value) -> State:
        key, number = self._entry(value)
        state[key] = self._both(state[key], number) if key in state else number
        return state

    def merge(self, left: State, right: State) -> State:
        for key, number in right.items():
            left[key] = self._both(left[key], number) if key in left else number
        return left

    def copy(self, state: State) -> State:
        return dict(state)

    def finish(self, state: State) -> Value:
        return self._finish(state)


class _Top(WindowAggregate):
    """The k greatest values, the greatest first."""

    listed = True

    def __init__(self, k: int) -> None:
        self._k = k

    def new(self, time: int, value: Value) -> State:
        return [value]

    def merge(self, left: State, right: State) -> State:
        return sorted([*left, *right], reverse=True)[: self._k]


class _Folding(WindowAggregate):
    """Value fold: values are kept, and folded in the order of their times when the window is complete."""

    def __init__(self, initial: Callable[[], Value], step: Callable[[Value, Value], Value]) -> None:
        self._initial = initial
        self._step = step

    def new(self, time: int, value: Value) -> State:
        return [(time, value)]

    def add(self, state: State, time: int, value: Value) -> State:
        state.append((time, value))
        return state

    def merge(self, left: State, right: State) -> State:
        left.extend(right)
        return left

    def copy(self, state: State) -> State:
        return list(state)

    def finish(self, state: State) -> Value:
        result = self._initial()
        for _, value in sorted(state, key=lambda pair: (pair[0], repr(pair[1]))):
            result = self._step(result, value)
        return result


def _frequent(k: int) -> Callable[[dict[Value, int]], Value]:
    def finish(counts: dict[Value, int]) -> Value:
        return sorted(counts.items(), key=lambda pair: (-pair[1], repr(pair[0])))[:k]

    return finish


_PLAIN: dict[str, Callable[[], WindowAggregate]] = {
    "count": _Counting,
    "sum": lambda: _Reducing(operator.add),
    "min": lambda: _Reducing(min),
    "max": lambda: _Reducing(max),
    "mean": _Mean,
    "variance": lambda: _Moments("variance"),
    "deviation": lambda: _Moments("deviation"),
    "first": lambda: _AtEnd(min),
    "last": lambda: _AtEnd(max),
    "distinct": lambda: _Tallying(lambda value: (value, 1), max, len, of_groups=partials.distinct_states),
    "approximate_distinct": lambda: _Tallying(
        sketches.register, max, sketches.cardinality, of_groups=partials.register_states
    ),
}
_NUMBERED = {"quantile": "a share between 0 and 1", "top": "a number above zero", "frequent": "a number above zero"}


def aggregate_of(name: str, wanted: Wanted) -> tuple[WindowAggregate, ValueOf | None]:
    """An aggregate as people write it, and what it is of."""
    what, *rest = (wanted,) if isinstance(wanted, str) else wanted
    if what == "count" and not rest:
        return _Counting(), None
    if what in _PLAIN and what != "count" and len(rest) == 1:
        return _PLAIN[what](), _value_of(name, rest[0])
    if what in _NUMBERED and len(rest) == 2:
        return _numbered(name, what, rest[1]), _value_of(name, rest[0])
    if what == "fold" and len(rest) == 3 and callable(rest[1]) and callable(rest[2]):
        return _Folding(rest[1], rest[2]), _value_of(name, rest[0])
    raise ConstructionError(
        f"{name}={wanted!r} is not an aggregate: say 'count', ({' | '.join(map(repr, list(_PLAIN)[1:]))}, value), "
        "('quantile', value, share), ('top' | 'frequent', value, number) or ('fold', value, initial, step)"
    )


def _numbered(name: str, what: str, number: Value) -> WindowAggregate:
    if what == "quantile" and isinstance(number, float | int) and 0 <= number <= 1:
        return _Tallying(
            lambda value: (sketches.bucket(value), 1),
            operator.add,
            lambda buckets: sketches.quantile(buckets, number),
            of_groups=partials.bucket_states,
        )
    if what != "quantile" and type(number) is int and number > 0:
        if what == "top":
            return _Top(number)
        return _Tallying(lambda value: (value, 1), operator.add, _frequent(number), listed=True)
    raise ConstructionError(f"{name}: {what!r} needs {_NUMBERED[what]}, not {number!r}")


def _value_of(name: str, value: ValueOf) -> ValueOf:
    if isinstance(value, str) or callable(value):
        return value
    raise ConstructionError(f"{name} is of a column (or a field), or of a function of a record, not of {value!r}")


class WindowAggregates:
    """Several aggregates with their names."""

    def __init__(self, wanted: Mapping[str, Wanted], taken: Sequence[str]) -> None:
        if not wanted:
            raise ConstructionError("a window needs an aggregate at least, such as n='count'")
        for name in wanted:
            if name in taken:
                raise ConstructionError(f"{name}={wanted[name]!r}: give the aggregate another name than {name!r}")
        made = {name: aggregate_of(name, spec) for name, spec in wanted.items()}
        self.names = tuple(made)
        self.values: list[ValueOf | None] = [value for _, value in made.values()]
        self._each = [aggregate for aggregate, _ in made.values()]

    @property
    def listed(self) -> list[str]:
        """Those whose results are lists."""
        return [name for name, each in zip(self.names, self._each, strict=True) if each.listed]

    def new(self, time: int, values: Sequence[Value]) -> list[State]:
        """The states of one record."""
        return [each.new(time, value) for each, value in zip(self._each, values, strict=True)]

    def add(self, states: list[State], time: int, values: Sequence[Value]) -> None:
        """Adds a record."""
        for place, (each, value) in enumerate(zip(self._each, values, strict=True)):
            states[place] = each.add(states[place], time, value)

    def of_groups(self, groups: Groups) -> list[list[State]]:
        """The states of each group of rows of a batch of columns."""
        columns = []
        for each, name in zip(self._each, self.values, strict=True):
            if name is not None and not isinstance(name, str):
                raise TypeError("columns came, and an aggregate is of a function: name a column")
            states = each.of_groups(groups, name or "")
            columns.append(_one_by_one(each, groups, name) if states is None else states)
        return [list(states) for states in zip(*columns, strict=True)]

    def merge(self, left: list[State], right: list[State]) -> None:
        """Adds the right ones, which are not used again, to the left ones."""
        for place, each in enumerate(self._each):
            left[place] = each.merge(left[place], right[place])

    def merged(self, parts: Sequence[list[State]]) -> list[State]:
        """The states of all together; the parts stay."""
        found = [each.copy(state) for each, state in zip(self._each, parts[0], strict=True)]
        for part in parts[1:]:
            self.merge(found, [each.copy(state) for each, state in zip(self._each, part, strict=True)])
        return found

    def finish(self, states: Sequence[State]) -> dict[str, Value]:
        """The results by name."""
        return {name: each.finish(state) for name, each, state in zip(self.names, self._each, states, strict=True)}


def _one_by_one(aggregate: WindowAggregate, groups: Groups, name: str | None) -> list[State]:
    """States of groups, made of their rows as any other state is."""
    assert name is not None
    values, times = groups.values(name), groups.times.tolist()
    states = []
    for start, count in zip(groups.starts.tolist(), groups.counts.tolist(), strict=True):
        state = aggregate.new(times[start], values[start])
        for place in range(start + 1, start + count):
            state = aggregate.add(state, times[place], values[place])
        states.append(state)
    return states
