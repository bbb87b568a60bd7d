"""Cuts: what operators have to do with snapshots. Pure; docs/internals/recovery.md is the specification.

The cut at t is every effect of times before t, and none of later ones. An operator that keeps something from one time
to the next is a *participant*: it *enrols* with its dataflow and gets a `Gate`, which says how far it may go. When
everything before the cut is done there, it gives its *share* of the cut, and goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dataflow.errors import DataflowError

if TYPE_CHECKING:
    from dataflow.build.hooks import Words
    from dataflow.time.order import Time

FOREVER = (1 << 63) - 1
"""The time of the final cut: after all others."""

PIECE = 1 << 17  # words of state in one piece of a copy: a megabyte


Place: TypeAlias = "Callable[[int], Words]"
"""Memory for so many words of a copy."""


class Unrecoverable(DataflowError):
    """A dataflow, with recovery, that has something which cannot be recovered."""


class StateMismatch(DataflowError):
    """What was saved does not fit the program."""


class Keeps(Enum):
    """What an operator keeps from one time to the next, as far as its dataflow must know."""

    NOTHING = "nothing"  # all that it holds came from times that are not complete, and comes again
    SHARE = "a share"  # a participant has enrolled for it
    UNKNOWN = "unknown"  # nobody has said: it cannot be recovered


@dataclass
class Share:
    """What a participant gives to a cut. `plain` must be encodable (see `dataflow.comm.codec`)."""

    plain: object = None
    frozen: FrozenShards | None = None
    prepare: Callable[[], Awaitable[object]] | None = None  # makes output durable; returns its token, encodable
    seen: Time | None = None  # the greatest time that the participant knows of


class Participant(ABC):
    """Takes part in cuts under a name that no other participant of the dataflow has."""

    name: str

    @abstractmethod
    def restore(self, shares: Mapping[int, object]) -> None:
        """Takes the plain shares of a manifest, by the number that each worker had then. Called once, when the dataflow
        is complete and nothing has run, only if there is a manifest to go on from. Shards follow, before `resume`."""

    def resume(self) -> None:  # noqa: B027  # few have anything to do
        """All shards are back (or there were none): the participant may start. Called once, with or without a
        manifest."""

    async def commit(self, time: Time, plain: object, token: object) -> None:  # noqa: B027  # most have no need
        """The snapshot at a time is durable, with this participant's plain share and token. Idempotent. For recovery,
        the tokens of all old workers are committed by worker 0."""

    def get_ready(self) -> Iterator[None]:
        """Makes memory ready for the next share, a little with each step."""
        return iter(())

    @property
    def owes_nothing(self) -> bool:
        """Whether nothing that only this worker has could be wanted by a later cut: then the worker may leave."""
        return True

    def mark(self, shards: Iterable[int]) -> None:  # noqa: B027  # most have no shards
        """These shards count as changed: their snapshot was abandoned, or their file is nearly empty."""


class ShardedParticipant(Participant):
    """A participant with state in shards."""

    shards: int  # how many there are, on all workers together

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """What the state is: see `Durable.describe`."""

    @abstractmethod
    def require_fit(self, saved: Mapping[str, str]) -> None:
        """Refuses state that was saved under a description that does not fit."""

    @abstractmethod
    def owns(self, shard: int) -> bool:
        """Whether a shard belongs to this worker, as of where the run goes on."""

    @abstractmethod
    def put(self, shard: int, piece: Words) -> None:
        """Puts a piece of a shard back."""


class Cutting(Protocol):
    """What a gate needs of the keeper of its dataflow."""

    def gave(self, gate: Gate, share: Share) -> None:
        """A participant has given its share of the cut at its gate."""


class Gate:
    """How far a participant may go. Without recovery there is none.

    Invariant: `cut` is None or equal to `limit`. The participant must not apply anything at or after `limit`, nor take
    state out or let state in at such times.
    """

    def __init__(self, participant: Participant, keeper: Cutting, activate: Callable[[], None], limit: Time) -> None:
        self.participant = participant
        self.limit = limit  # closed until it is resumed
        self.cut: Time | None = None  # the cut that waits for this participant's share, if one does
        self._keeper = keeper
        self._activate = activate
        self._blocked = False  # whether the participant has found it closed since the limit last moved

    def opens(self, time: Time) -> bool:
        """Whether things at `time` may be done now. If not, the participant is activated when the limit has moved."""
        if time < self.limit:
            return True
        self._blocked = True
        return False

    def move(self, limit: Time, cut: Time | None) -> None:
        """Moves the limit. For the keeper."""
        if (limit, cut) != (self.limit, self.cut):
            self.limit, self.cut = limit, cut
            if self._blocked or cut is not None:
                self._blocked = False
                self._activate()

    def give(self, share: Share) -> None:
        """Gives the share of the cut that waits. The limit moves on at once."""
        assert self.cut is not None, "no cut waits for this share"
        self._keeper.gave(self, share)


class FrozenShards:
    """Shards of an operator as they are at a cut, copied one by one: as the writer asks, or before they change."""

    def __init__(
        self,
        copy: Callable[[int, Place | None], list[Words]],
        shards: Iterable[int],
        empty: Iterable[int] = (),
        thaw: Callable[[], None] = lambda: None,
        size: int = 0,
    ) -> None:
        """`copy` copies a shard, to a place or else to memory of its own. `shards`: those to copy. `empty`: those that
        have changed and hold nothing now. `thaw` is called when nothing is left to copy. `size`: about how many
        bytes they are."""
        self.size = size
        self.shards = sorted(shards)
        self.empty = sorted(empty)
        self._copy_of = copy
        self._thaw = thaw
        self._left = dict.fromkeys(self.shards)
        self._copied: deque[tuple[int, list[Words]]] = deque((shard, []) for shard in self.empty)

    def touch(self, shards: Iterable[int] | None = None) -> None:
        """Copies these now (all, if None), where that has not been done: they are about to change."""
        if self._left:
            for shard in tuple(self._left) if shards is None else shards:
                if shard in self._left:
                    self._copied.append((shard, self._copy(shard, None)))

    def pop(self, place: Place | None = None) -> tuple[int, list[Words]] | None:
        """A shard that was not popped before, with its pieces; None if that was all. One that has to be copied first
        goes to a `place`, if there is one."""
        if self._copied:
            return self._copied.popleft()
        if not self._left:
            return None
        shard = next(iter(self._left))
        return shard, self._copy(shard, place)

    @property
    def complete(self) -> bool:
        """Whether everything has been copied, so that shards may change freely."""
        return not self._left

    def cancel(self) -> None:
        """Nobody wants the copies any more."""
        self._left.clear()
        self._copied.clear()
        self._thaw()

    def _copy(self, shard: int, place: Place | None) -> list[Words]:
        del self._left[shard]
        copied = self._copy_of(shard, place)
        if not self._left:
            self._thaw()
        return copied
