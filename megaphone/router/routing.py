"""F: routes records by the configuration at their time, and starts migrations (section 3.4).

F has two inputs, data and control, and two outputs to S, data and state. It keeps data back while the configuration
at its time is not certain. For each time at which bins move it holds a capability, from when it hears of that until
it has sent its own share of those bins; it sends them when the output frontier of S shows nothing before that time.
Where bins have plans, F tells its S in the same way that they get another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic

import numpy as np
from sortedcontainers import SortedDict

from dataflow.build.cuts import Gate
from dataflow.build.hooks import HookRegistry
from dataflow.columns import Columns
from dataflow.lowlevel import Batch, Broadcast, Capability, Context, InputPort, MessageCapability, OutputPort, Pact
from dataflow.members.roster import Roster
from dataflow.state.kept import KeptState
from dataflow.state.pieces import Piece, Words, join, pack
from dataflow.state.store import B, Store
from dataflow.state.values import Record
from dataflow.time.order import Time
from megaphone.control.arranging import Arrangement
from megaphone.control.configuration import Configurations, Migration
from megaphone.control.replans import KnownPlans, Replan
from megaphone.control.updates import Update, check_update, require_there
from megaphone.keys.keyspace import KeySpace
from megaphone.keys.pins import KeyMoves, Pins
from megaphone.plans.door import replan_pieces
from megaphone.router.following import FollowingRouter

PIECE = 1 << 17  # words of state in one message: a megabyte
PIECES = 4 << 20  # bytes of state that F sends before others get their turn
WINDOW = 64 << 20  # bytes of state that F has on its way: it sends no more until some have been taken


class ControlPact(Broadcast):
    """Every worker gets every update. An update that makes no sense is refused where it is sent, and goes to nobody."""

    name = "control"
    validates = True
    audience = True  # who joins later is handed what was said before

    def __init__(
        self, operator: str, bins: int, roster: Roster, keys: KeySpace[Any], plans: KnownPlans, hooks: HookRegistry
    ) -> None:
        self._operator = operator
        self._hooks = hooks
        self._bins = bins
        self._roster = roster
        self._keys = keys
        self._plans = plans

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        checked = [self.checked(update) for update in batch]
        self._plans.sent([update for update in checked if isinstance(update, Replan) and self.concerns(update)])
        return super().split(checked, peers)

    def check(self, batch: Batch) -> None:
        """Refuses updates that make no sense."""
        for update in batch:
            self.checked(update)

    def checked(self, update: object) -> Update:
        """The update in the form in which it travels; ControlError if it makes no sense for this operator."""
        if isinstance(update, Update) and not self.concerns(update):
            self._hooks.named(update.operator)  # an operator that nobody knows is a mistake
            return update
        checked = check_update(update, self._bins, self._roster.span)
        require_there(checked, self._roster)
        if isinstance(checked, Replan):
            return self._plans.checked(checked)
        return replace(checked, keys=self._keys.check(checked.keys)) if isinstance(checked, Pins) else checked

    def concerns(self, update: Update) -> bool:
        """Whether an update is for this operator."""
        return update.operator in ("", self._operator)


class Parts(Collection[Record]):
    """A batch that has been split already: one part per worker, of rows or of columns."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Batch]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(self.parts)

    def __contains__(self, record: object) -> bool:
        return any(record == mine for mine in self)


class Routed(Pact):
    """Each part goes to its worker."""

    name = "routed"
    validates = True  # parts must be taken apart, even for one worker
    addressed = True

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        assert isinstance(batch, Parts), "F sends nothing else on these channels"
        return batch.parts


class RoutedState(Routed):
    """The same, and receivers acknowledge what they have taken to F."""

    name = "routed state"
    acknowledged = True


@dataclass
class Shared(Generic[B]):
    """What F and S of one operator on one worker have in common (section 4.2: a shared pointer to the bins)."""

    store: Store[B]  # what S holds, and F takes from
    plans: KnownPlans  # what was said of the plans of bins
    nothing_before: Callable[[Time], bool]  # whether S's output frontier shows nothing before a time
    on_its_way: Callable[[], int] = field(default=lambda: 0)  # bytes of state that F has sent and no S has taken
    state_changed: Callable[[], None] = field(default=lambda: None)  # activates S: F has taken a bin
    activate_router: Callable[[], None] = field(default=lambda: None)  # activates F: the output frontier of S has moved
    kept: KeptState[B] | None = None  # the share of the bins in snapshots

    @property
    def gate(self) -> Gate | None:
        """How far F and S may go before a snapshot; None without recovery."""
        return None if self.kept is None else self.kept.gate

    def touch(self, bins: Sequence[int]) -> None:
        """These bins are about to change or to leave: what a snapshot wants of them is copied first."""
        if self.kept is not None:
            self.kept.touch(bins)


def _message(packed: Sequence[Sequence[Words]]) -> Parts:
    """Packed pieces, by destination, as a message to each."""
    return Parts([_as_batch(join(pieces)) if pieces else () for pieces in packed])


def _as_batch(words: Words) -> Columns:
    return Columns.trusted({"words": words}, len(words))


class Router(ABC, Generic[B]):
    """The step of F. Inputs: data, one or two, then control. Outputs: records, one for each data input, then state."""

    def __init__(
        self, context: Context, shared: Shared[B], initial: Arrangement, ports: int, keys: KeySpace[Any]
    ) -> None:
        self._context = context
        self._shared = shared
        self._data: Sequence[InputPort] = context.inputs[:ports]
        self._control: InputPort = context.inputs[ports]
        assert isinstance(self._control.pact, ControlPact)
        self._pact: ControlPact = self._control.pact
        self._records: Sequence[OutputPort] = context.outputs[:ports]
        self._state: OutputPort = context.outputs[ports]
        self._sending: Iterator[tuple[Parts, int]] | None = None  # what is left of the migration that has begun
        self._configurations: Configurations[Any] = Configurations(initial, keys, shared.plans)
        self._held: dict[Time, Capability] = {}  # for the state output, by configuration time
        self._due: deque[Migration] = deque()  # final, and not yet sent
        # Kept back, by time: (capability, input, batch)
        self._uncertain: SortedDict[Time, list[tuple[Capability, int, Batch]]] = SortedDict()
        context.follow(FollowingRouter(self, context), routes=True)

    def resize(self) -> None:
        """Workers have joined."""

    def take_over(self, pending: Iterable[Time], waiting: Sequence[tuple[Time, list[Update]]]) -> None:
        """A joiner has been handed the configurations of the others: it holds what they hold for times that are to
        come, and has heard what waits at their control inputs."""
        for time in pending:
            self._held[time] = self._state.adopt(time)
        self._control.queue.extend(waiting)
        self._context.activate()

    @property
    def plans(self) -> KnownPlans:
        """What was said of the plans of bins."""
        return self._shared.plans

    @property
    def control(self) -> InputPort:
        """Where updates arrive."""
        return self._control

    @property
    def state(self) -> OutputPort:
        """Where state leaves."""
        return self._state

    def step(self) -> None:
        """Control and state come before data."""
        self._shared.plans.trusts = False  # what an earlier life had accepted has been sent again
        if self._has_nothing_to_do():
            return
        self._accept_updates()
        self._install_final_configurations()
        self._start_due_migrations()
        self._route_certain_records()
        self._retire_configurations()

    def _has_nothing_to_do(self) -> bool:
        """Whether only a frontier has moved, for which nothing waits: most steps of an epoch."""
        if self._control.queue or self._due or self._uncertain or not self._configurations.settled:
            return False
        return not any(port.queue for port in self._data)

    def _accept_updates(self) -> None:
        for message, everything in self._control:
            updates = [update for update in everything if self._pact.concerns(update)]
            if updates and self._configurations.accept(message.time, updates):
                self._held[message.time] = message.retain(self._state.number)

    def _install_final_configurations(self) -> None:
        self._due.extend(self._configurations.finalise(lambda time: not self._control.could_see(time)))

    def _start_due_migrations(self) -> None:
        """Sends every bin that leaves this worker, at the time of its migration, over several steps if that is much."""
        gate = self._shared.gate
        while self._due and self._shared.nothing_before(self._due[0].time):
            if gate is not None and not gate.opens(self._due[0].time):
                return
            if self._sending is None:
                self._sending = self.departures(self._due[0])
            capability = self._held[self._due[0].time]
            if not self._send_pieces(capability):
                return
            self._sending = None
            del self._held[self._due.popleft().time]
            capability.drop()

    def _send_pieces(self, capability: Capability) -> bool:
        """Sends as much as may be on its way at once; returns whether that was all."""
        assert self._sending is not None
        sent = 0
        while self._shared.on_its_way() < WINDOW:  # else F is activated when some has been taken
            piece = next(self._sending, None)
            if piece is None:
                return True
            parts, size = piece
            self._state.give(capability, parts)
            self._shared.state_changed()
            sent += size
            if sent >= PIECES:  # others get their turn, and the network; the rest is copied when it is sent
                self._context.activate()
                return False
        return False

    def departures(self, migration: Migration) -> Iterator[tuple[Parts, int]]:
        """Takes out what leaves this worker: messages of about PIECE words, with their sizes in bytes."""
        packed: list[list[Words]] = [[] for _ in range(self._context.span)]
        size = 0
        for destination, piece in self._departing(migration):
            if size and size + len(piece.words) > PIECE:
                yield _message(packed), size * 8
                packed, size = [[] for _ in packed], 0
            packed[destination].append(pack(piece))
            size += len(piece.words)
        if any(packed):
            yield _message(packed), size * 8

    def _departing(self, migration: Migration) -> Iterator[tuple[int, Piece]]:
        """Pieces of what leaves, and to which worker."""
        for bins, replan in migration.replans:  # to this worker's own S: it has those bins from then on
            mine = bins[migration.table[bins] == self._context.worker]
            for piece in replan_pieces(migration.time, mine, replan):
                yield self._context.worker, piece
        if migration.keys is not None:
            yield from self._departing_keys(migration.keys)  # first: a key that is apart does not leave with its bin
        mine = migration.origins == self._context.worker
        bins, destinations = migration.bins[mine], migration.destinations[mine]
        here = self._shared.store.has(bins)  # of 2^20 bins most may be empty
        for bin, destination in zip(bins[here].tolist(), destinations[here].tolist(), strict=True):
            self._shared.touch([bin])
            for piece in self._shared.store.take_bin(bin, PIECE):
                yield destination, piece

    def _departing_keys(self, moves: KeyMoves) -> Iterator[tuple[int, Piece]]:
        for i in np.flatnonzero(moves.origins == self._context.worker).tolist():
            were, will = bool(moves.were_apart[i]), bool(moves.apart[i])
            self._shared.touch(self._configurations.keys.bins_of(moves.keys[i : i + 1]).tolist())
            for piece in self._shared.store.take_key(moves.keys[i], were, will, PIECE):
                yield int(moves.destinations[i]), piece

    @abstractmethod
    def route(self, time: Time, port: int, batch: Batch) -> Parts:
        """The parts of a batch, by the configuration at its time."""

    def _route_certain_records(self) -> None:
        for port, input in enumerate(self._data):
            for message, batch in input:
                if self._control.could_see(message.time):
                    self._keep_back(message, port, batch)
                else:
                    self.give(message, message.time, port, batch)
            self.give_rest(port)
        while self._uncertain and not self._control.could_see(self._uncertain.peekitem(0)[0]):
            time, kept = self._uncertain.popitem(0)
            for capability, port, batch in kept:
                self.give(capability, time, port, batch)
                capability.drop()
        for port in range(len(self._data)):
            self.give_rest(port)

    def give(self, capability: Capability | MessageCapability, time: Time, port: int, batch: Batch) -> None:
        """Sends a batch, at once or together with others in `give_rest`."""
        self._records[port].give(capability, self.route(time, port, batch))

    def give_rest(self, port: int) -> None:  # most routers keep none back
        """Sends what `give` has not sent yet. For routers that put batches together."""

    def _keep_back(self, message: MessageCapability, port: int, batch: Batch) -> None:
        kept = self._uncertain.setdefault(message.time, [])
        kept.append((message.retain(self._records[port].number), port, batch))

    def _retire_configurations(self) -> None:
        """No record before a configuration's time can come any more: what it replaced is not needed."""
        first = self._uncertain.peekitem(0)[0] if self._uncertain else None
        gate = self._shared.gate

        def is_past(time: Time) -> bool:
            if first is not None and first < time:
                return False
            if gate is not None and not time < gate.limit:
                return False  # a snapshot may still ask for what was so before
            return not any(port.frontier.less_than(time) for port in self._data)

        if self._configurations.size > 1:
            self._configurations.retire(is_past)

    @property
    def configurations(self) -> Configurations[Any]:
        """The history that is still needed."""
        return self._configurations
