"""Hooks: how recovery, membership, commands and pages reach the state of a running dataflow.

The engine defines what it asks of a stateful operator, and whoever builds one registers what it has, under the
operator's name. State is kept in numbered *shards*; how keys are grouped into shards, and how a shard moves, is the
operator's own business. An operator that only keeps state registers `Durable`; one whose state moves between workers
registers `Control` and `Placement` as well. `Lookup` (a key's state), `Steering` (migrations that somebody asks for)
and `Loads` (what shards cost) are for those who look at a run from outside. So is `DecisionLoop`: a program's loops
show what they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    def groups(self) -> NDArray[np.int64]:
        """How many shards there are in each group of neighbours that moves as one, in their order."""

    def group_name(self, shard: int) -> str:
        """What the group is called that has a shard."""


class StateMover(Protocol):
    """Moves an operator's state to where workers are, step by step; on one worker, for all."""

    def begin(self, workers: Sequence[int], placement: object, strategy: object) -> None:
        """Begins to move all state to these workers. CannotScale if it cannot."""

    def step(self) -> bool:
        """Does the next step if the last is done; whether all are."""

    @property
    def progress(self) -> tuple[int, int]:
        """How many shards have moved, of how many."""

    def watch(self, watcher: Callable[[], None]) -> None:
        """Has somebody called whenever a step may be done."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What an operator knows of a key on this worker."""

    shard: int  # in which the key is, wherever that is
    found: bool  # whether the key has state here
    state: object = None


class Lookup(Protocol):
    """The state of single keys on this worker."""

    def look(self, key: object) -> Looked:
        """What there is of a key here. TypeError or ValueError if it cannot be a key of this operator. Nothing changes,
        and nobody waits; what comes back may be the state itself: to be read now, and not kept."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A migration that somebody asked for: how far it has come."""

    to: str
    strategy: str
    steps: int  # as far as they are known: a budget may cut one in two
    steps_done: int
    shards: int
    shards_done: int
    failure: str = ""  # why it was given up, if it was

    @property
    def under_way(self) -> bool:
        """Whether there is more to come."""
        return not self.failure and self.steps_done < self.steps


class Steering(Protocol):
    """Migrations of an operator's state, as words: for those who steer from outside, on worker 0."""

    @property
    def last(self) -> Movement | None:
        """The migration that was begun last, by `migrate`."""

    def migrate(self, to: str, strategy: str, dry: bool = False) -> Movement:
        """Begins a migration, or only says what it would be. DataflowError if the words make no sense, or one is under
        way."""

    def cancel(self) -> Movement | None:
        """Gives up the steps that have not begun."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardLoads:
    """What is known of the shards of an operator on all workers, in their last interval. Arrays by shard."""

    seconds: float  # how long an interval is; 0 if nothing was reported
    records: NDArray[np.int64]
    nanoseconds: NDArray[np.int64]
    bytes: NDArray[np.int64]
    heavy: Sequence[tuple[object, int, int]]  # keys, the records of each, and the worker; heaviest first


@dataclass(frozen=True, slots=True, eq=False)
class ShardReport:
    """What one worker counted in one interval, or a part of it. Arrays by shard of `shards`, or by heavy key."""

    worker: int
    seconds: float  # how long the interval was
    shards: NDArray[np.int64]
    records: NDArray[np.int64]
    nanoseconds: NDArray[np.int64]
    bytes: NDArray[np.int64]
    keys: Sequence[object]  # heavy ones
    key_shards: Sequence[int]  # where they belong; empty if keys cannot live apart
    key_records: Sequence[int]
    per_record: float  # nanoseconds
    whole: bool  # whether this is the last part of an interval


@dataclass(frozen=True, slots=True, eq=False)
class LoadNews:
    """Reports that came since somebody asked last; `number` is that of the next one, to ask from."""

    number: int
    reports: tuple[ShardReport, ...]
    lost: int  # reports that came in between and were not kept for so long
    apart: Sequence[tuple[object, int, int]] = ()  # keys that live apart, with the shard where they belong, the worker


class Loads(Protocol):
    """What the shards of an operator cost."""

    def loads(self) -> ShardLoads:
        """As last reported. O(shards)."""

    def news(self, since: int) -> LoadNews:
        """The reports of all workers from this number on. Reports are kept from the first time that somebody asks,
        the last few hundred of them."""


class DecisionLoop(Protocol):
    """A loop of the program's that decides something again and again: where bins are, which plan a join has, how many
    workers there are."""

    dry_run: bool  # whether it only says what it would do; may be set at any time

    @property
    def title(self) -> str:
        """What it is."""

    @property
    def lately(self) -> Iterable[tuple[float, bool, bool, str]]:
        """What it decided of late, in order: when (wall clock), whether something was to change, whether that was only
        said, and what, and why."""


class UpdateFeed(Protocol):
    """An input that accepts records at a time of their own: an `InputHandle`."""

    @property
    def time(self) -> Time:
        """The least time at which something can be sent."""

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
    lookup: Lookup | None = None
    steering: Steering | None = None
    loads: Loads | None = None
    mover: StateMover | None = None


class HookRegistry:
    """The stateful operators of one dataflow on one worker, in the order in which they were built."""

    def __init__(self) -> None:
        self._operators: list[Stateful] = []
        self.feeds: dict[Source, UpdateFeed] = {}  # by the stream they feed: how updates get onto a control stream

    def register(
        self,
        name: str,
        durable: Durable,
        *,
        control: Control | None = None,
        placement: Placement | None = None,
        mover: StateMover | None = None,
        lookup: Lookup | None = None,
        steering: Steering | None = None,
        loads: Loads | None = None,
    ) -> None:
        """Registers an operator. Several may have one name, as long as nobody asks for them by it."""
        self._operators.append(Stateful(name, durable, control, placement, lookup, steering, loads, mover))

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
