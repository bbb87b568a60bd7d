"""What is joined: the streams, the key that all records of a result share, the window, and predicates between pairs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TypeAlias

from dataflow.state.values import Key, Record
from megaphone.plans.composites import Composite, Parts, Pick, picking
from megaphone.plans.trees import BadPlan, Streams, Tree, parse

Predicate: TypeAlias = Callable[[Record, Record], bool]
KeyFunction: TypeAlias = Callable[[Record], Key]


@dataclass(frozen=True)
class Query:
    """A result is one record of each stream, all with the same key, each two of which satisfy their predicate if there
    is one, and whose times are at most `window` apart (maximum less minimum: section 2.1 with its error mended).

    `on`: a function from a record to its key, or the position of a field; in columns the name of a column. Without it
    there is one key. `where`: by two names of streams, a function of a record of each.
    """

    streams: tuple[str, ...]
    window: int
    on: KeyFunction | int | str | None = None
    where: Mapping[tuple[str, str], Predicate] = field(default_factory=dict)
    _joints: dict[tuple[Streams, Streams], Joint] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", checked_streams(self.streams, 2))
        if type(self.window) is not int or self.window < 1:
            raise BadPlan(f"a window is a positive integer, in units of the dataflow's time, not {self.window!r}")
        if type(self.on) is not str:
            checked_key(self.on)
        if not isinstance(self.where, Mapping):
            raise BadPlan(f"where= has predicates by two streams, {{('a', 'b'): predicate}}, not {self.where!r}")
        for pair, predicate in self.where.items():
            _check_predicate(pair, predicate, self.streams)

    def slot(self, stream: str) -> int:
        """The place of a stream's record in a result."""
        return self.streams.index(stream)

    def key_of(self, record: Record) -> Key:
        """The key of a record."""
        return None if self.key is None else self.key(record)

    @cached_property
    def key(self) -> KeyFunction | None:
        """From a record to its key, if there is one."""
        return key_by(self.on)

    def plan(self, text: str) -> Tree:
        """A plan for this query; BadPlan says what is wrong with the text."""
        return parse(text, self.streams)

    def joint(self, left: Streams, right: Streams) -> Joint:
        """How the two sides of a join come together: the predicates are those of pairs that meet here for the first
        time."""
        if (left, right) not in self._joints:
            checks = [
                Check(self.slot(one), self.slot(other), predicate)
                for (one, other), predicate in self.where.items()
                if (one in left and other in right) or (other in left and one in right)
            ]
            pick = picking(len(self.streams), map(self.slot, left))
            self._joints[left, right] = Joint(self.window, pick, tuple(checks))
        return self._joints[left, right]


@dataclass(frozen=True, slots=True)
class Check:
    """A predicate between the records in two slots."""

    one: int
    other: int
    predicate: Predicate

    def holds(self, parts: Parts) -> bool:
        """Whether a composite's parts satisfy it; errors of the predicate name both records."""
        first, second = parts[self.one], parts[self.other]
        assert first is not None and second is not None
        try:
            return bool(self.predicate(first[1], second[1]))
        except Exception as error:
            error.add_note(f"in the predicate of {first[1]!r} and {second[1]!r}")
            raise


@dataclass(frozen=True, slots=True)
class Joint:
    """How composites of two sides of a join come together."""

    window: int
    pick: Pick
    checks: tuple[Check, ...]

    def combine(self, one: Composite, other: Composite) -> Composite | None:
        """Both together, if they may be: within the window (first to last), and if all predicates hold."""
        first = one[1] if one[1] < other[1] else other[1]
        last = one[2] if one[2] > other[2] else other[2]
        if last - first > self.window:
            return None
        parts = self.pick(one[0] + other[0])
        for check in self.checks:
            if not check.holds(parts):
                return None
        return parts, first, last


def key_by(on: KeyFunction | int | str | None) -> KeyFunction | None:
    """From a record to its key."""
    return on if on is None or callable(on) else itemgetter(on)


def checked_key(on: object) -> None:
    """BadPlan unless keys of rows can be found by this."""
    if on is not None and not callable(on) and (type(on) is not int or on < 0):
        raise BadPlan(f"on= is a function from a record to its key, or the position of a field, not {on!r}")


def _check_predicate(pair: object, predicate: object, streams: Sequence[str]) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2 or len(set(pair)) != 2 or not set(pair) <= set(streams):
        raise BadPlan(f"where= has {pair!r}: name two of the streams {', '.join(streams)}")
    if not callable(predicate):
        raise BadPlan(f"the predicate of {' and '.join(pair)} is {predicate!r}, which cannot be called")
    try:
        signature = inspect.signature(predicate)
    except ValueError:  # a function of the interpreter's own, of which nothing is known
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise BadPlan(
            f"the predicate of {' and '.join(pair)} cannot be called with a record of each: {error}"
        ) from None


def checked_streams(streams: Sequence[str], least: int) -> tuple[str, ...]:
    """Names of streams; BadPlan if they cannot be, or are fewer than `least`."""
    names = tuple(streams)
    if len(names) < least:
        raise BadPlan(f"a join has two streams at least, not {len(names)}" if least == 2 else "there is no stream")
    for name in names:
        if type(name) is not str or not name or any(c.isspace() or c in "()[]" for c in name):
            raise BadPlan(f"{name!r} cannot name a stream: use a word without spaces and brackets")
    if len(set(names)) < len(names):
        raise BadPlan(f"two streams have one name: {', '.join(names)}")
    return names
