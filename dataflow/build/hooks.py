"""Hooks: how recovery, membership, commands and pages reach the state of a running dataflow.

The engine defines what it asks of a stateful operator, and whoever builds one registers what it has, under the
operator's name. State is kept in numbered *shards*; how keys are grouped into shards, and how a shard moves, is the
operator's own business. An operator that only keeps state registers `Durable`; one whose state moves between workers
registers `Control` and `Placement` as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.errors import ConstructionError, DataflowError
from dataflow.progress.graph import Source

if TYPE_CHECKING:
    from dataflow.time.order import Time

Words: TypeAlias = NDArray[np.uint64]


class Control(Protocol):
    """Changes where an operator's state is."""

    def accept(self, update: object, at: Time) -> None:
        """Accepts an update that takes effect at a time, on all workers. One worker says it. An error if the update
        makes no sense for this operator, or if its time is past: then nothing changes."""


class Durable(Protocol):
    """The state of an operator on this worker, to save and to restore."""

    @property
    def shards(self) -> int:
        """How many shards there are, on all workers together."""

    def describe(self) -> Mapping[str, str]:
        """What the state is: the kind of the store, and the types of its fields. State that was saved under another
        description cannot be put back."""

    def sizes(self) -> NDArray[np.int64]:
        """By shard, about how many bytes this worker has of it. O(shards)."""

    def track_changes(self) -> None:
        """From now on `take_changed` says which shards have changed. Until somebody asks for it, it costs nothing."""

    def take_changed(self) -> NDArray[np.intp]:
        """The shards that have changed here since this was last asked: at first, all that have something in them."""

    def copy(self, shard: int, limit: int) -> Iterator[Words]:
        """A copy of a shard, in pieces of about `limit` words. Nobody may change the shard before the last piece has
        been asked for."""

    def copy_apart(self, limit: int) -> Iterator[Words]:
        """A copy of the keys that are in no shard here, in pieces."""

    def put(self, piece: Words) -> None:
        """Puts a piece in. Pieces come in any order; a shard is there when all of its pieces have come. ValueError if
        the piece cannot be right. This gives the operator no capability: whoever puts post-dated records back must see
        to it that their times are held."""


class Placement(Protocol):
    """Where an operator's state is."""

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have shards."""

    def workers(self) -> NDArray[np.uint16]:
        """By shard, its worker as of now."""


class UpdateFeed(Protocol):
    """An input that accepts records at a time of their own: an `InputHandle`."""

    def send(self, records: list[object], at: Time) -> None:
        """Sends records at a time; an error if that is past, or the input is closed."""


class UnknownOperator(DataflowError, LookupError):
    """A name that no stateful operator has."""


@dataclass(frozen=True, eq=False)
class Stateful:
    """What an operator has registered."""

    name: str
    durable: Durable
    control: Control | None = None
    placement: Placement | None = None


class HookRegistry:
    """The stateful operators of one dataflow on one worker, in the order in which they were built."""

    def __init__(self) -> None:
        self._operators: list[Stateful] = []
        self.feeds: dict[Source, UpdateFeed] = {}  # by the stream they feed: how updates get onto a control stream

    def register(
        self, name: str, durable: Durable, *, control: Control | None = None, placement: Placement | None = None
    ) -> None:
        """Registers an operator. Several may have one name, as long as nobody asks for them by it."""
        self._operators.append(Stateful(name, durable, control, placement))

    def __iter__(self) -> Iterator[Stateful]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def named(self, name: str) -> Stateful:
        """The operator of a name. UnknownOperator if there is none, ConstructionError if there are several."""
        found = [operator for operator in self._operators if operator.name == name]
        if not found:
            known = ", ".join(sorted({repr(operator.name) for operator in self._operators})) or "none"
            raise UnknownOperator(f"there is no stateful operator {name!r}; there are: {known}")
        if len(found) > 1:
            raise ConstructionError(
                f"{len(found)} stateful operators are called {name!r}: give each a name= of its own, by which it can "
                "be told from the others"
            )
        return found[0]
