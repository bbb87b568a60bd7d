"""Faults, one at a time, that the fuzzer must find: each breaks one rule of the engine by patching it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dataflow.build import notificator
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.stream import Stream
from dataflow.channels.pact import Exchange
from dataflow.columns import grouping as groups
from dataflow.columns import pact as pacts
from dataflow.columns.batch import Columns
from dataflow.columns.windows import Windows
from dataflow.operators import grouping, loops, replay, rows, timing
from dataflow.run import stepping
from dataflow.state.stores import join_store as joining
from dataflow.state.stores.fold_store import FoldStore
from dataflow.state.stores.row_bins import RowBins
from dataflow.state.tables import heaps
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import HashTable
from megaphone.control.configuration import Configurations
from tests.fuzz.description import Program

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, tuple[Callable[[Patch], None], frozenset[str]]] = {}  # by name, and the kinds of nodes it concerns


def concerns(*kinds: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Registers a fault that only shows in programs with one of these kinds of nodes; in any, if none is named."""

    def register(fault: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[fault.__name__] = (fault, frozenset(kinds))
        return fault

    return register


def relevant(name: str, program: Program) -> bool:
    """Whether a program could show a fault."""
    kinds = MUTANTS[name][1]
    nodes = [node for flow in program.flows for node in flow.nodes]
    found = {node.kind for node in nodes} | {"migrating" for node in nodes if node.control is not None}
    return not kinds or bool(kinds & found)


# ------------------------------------------------------------------------------------------------------------ progress


@concerns("aggregate", "reduce", "running", "count")
def notified_too_early(patch: Patch) -> None:
    """A notificator does not wait for the frontier."""
    patch.setattr(notificator.Notificator, "_complete", lambda self, time: True)


@concerns("running")
def notified_out_of_order(patch: Patch) -> None:
    """Of the times that are complete, the latest comes first."""

    def next_due(self: Any) -> Any:
        return max((time for time in self.pending if self._complete(time)), default=None)

    patch.setattr(notificator.Notificator, "_next_due", next_due)


@concerns("aggregate", "reduce", "running", "first")
def frontier_not_held(patch: Patch) -> None:
    """A capability that an operator retains does not hold the frontier back."""
    uncounted: set[int] = set()
    retain, drop = MessageCapability.retain, Capability.drop

    def retain_nothing(self: Any, output: int = 0) -> Capability:
        capability = retain(self, output)
        uncounted.add(id(capability))
        capability._output.count(capability.time, -1)
        return capability

    def drop_nothing(self: Capability) -> None:
        if id(self) in uncounted:
            uncounted.discard(id(self))
            self._live = False
        else:
            drop(self)

    patch.setattr(MessageCapability, "retain", retain_nothing)
    patch.setattr(Capability, "drop", drop_nothing)


@concerns()
def progress_in_halves(patch: Patch) -> None:
    """A batch of progress is not applied as a whole: what is over is told first, what has begun with the next."""
    flush = stepping.Stepping.flush

    def flush_half(self: Any) -> None:
        begun = {pointstamp: diff for pointstamp, diff in self._counts.items() if diff > 0}
        if len(begun) == len(self._counts):
            begun = {}  # nothing is over: all of it is told
        for pointstamp in begun:
            del self._counts[pointstamp]
        flush(self)
        for pointstamp, diff in begun.items():
            self.outbox.pending.update(pointstamp, diff)

    patch.setattr(stepping.Stepping, "flush", flush_half)


# ---------------------------------------------------------------------------------------------------- rows and columns


def _sometimes_turned(split: Callable[..., Any]) -> Callable[..., Any]:
    calls = itertools.count()

    def wrong(self: Any, batch: Any, peers: int) -> Any:
        parts = list(split(self, batch, peers))
        return parts if next(calls) % 2 else parts[1:] + parts[:1]

    return wrong


@concerns("aggregate", "reduce", "running", "join")
def routed_wrong(patch: Patch) -> None:
    """Every other batch of rows goes to another worker than its keys say."""
    patch.setattr(Exchange, "split", _sometimes_turned(Exchange.split))


@concerns("machine", "pairs", "aggregate", "batches")
def columns_routed_wrong(patch: Patch) -> None:
    """Every other batch of columns goes to another worker than its keys say."""
    patch.setattr(pacts.ExchangeColumns, "split", _sometimes_turned(pacts.ExchangeColumns.split))


@concerns("delay")
def delayed_record_dropped(patch: Patch) -> None:
    """Of several records that are delayed to one time, the last is lost."""
    delay = timing.delay

    def careless(stream: Stream[Any], later: Any, name: str = "delay") -> Stream[Any]:
        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                output.give(message, batch[:-1] if len(batch) > 1 else batch)

        return delay(stream, later, name).unary("careless", lambda _: step)

    patch.setattr(timing, "delay", careless)


@concerns("join")
def pairs_doubled(patch: Patch) -> None:
    """A pair that the right record completes comes out twice."""
    match = grouping._match_right

    def doubled(batch: Any, key: Any, lefts: Any, rights: Any) -> list[Any]:
        pairs: list[Any] = match(batch, key, lefts, rights)
        return pairs + pairs[:1]

    patch.setattr(grouping, "_match_right", doubled)


@concerns("filter")
def filter_off_by_one(patch: Patch) -> None:
    """The mask of a filter of columns is applied to the next row."""
    filter = Columns.filter
    patch.setattr(Columns, "filter", lambda self, mask: filter(self, np.roll(np.asarray(mask), 1)))


@concerns("windows")
def window_too_long(patch: Patch) -> None:
    """A window includes the pane that begins at its end."""
    make = Windows.__init__

    def inclusive(self: Any, *args: Any) -> None:
        make(self, *args)
        self.size += self.slide

    patch.setattr(Windows, "__init__", inclusive)


@concerns("aggregate")
def merged_wrong(patch: Patch) -> None:
    """Partial minima are added up."""
    patch.setitem(groups._AGAIN, "min", "sum")


@concerns("concat")
def concat_drops_an_input(patch: Patch) -> None:
    """The last of several inputs is left out."""
    concat = rows.concat
    patch.setattr(rows, "concat", lambda scope, streams, name="concat": concat(scope, streams[:2], name))


@concerns("iterate")
def round_lost(patch: Patch) -> None:
    """What comes round for the second time ends there."""
    pass_on = loops._pass_on

    def lossy(context: Any) -> Any:
        step, (input,) = pass_on(context), context.inputs

        def without() -> None:
            for time, batch in input.queue:
                if isinstance(time, tuple) and time[-1] == 1 and isinstance(batch, list):
                    batch.clear()
            step()

        return without

    patch.setattr(loops, "_pass_on", lossy)


@concerns("replay")
def capture_forgets(patch: Patch) -> None:
    """A captured batch has lost its last record."""
    capture = replay.capture

    def lossy(stream: Any, into: Callable[[Any], Any], name: str = "capture") -> Any:
        def shorter(event: Any) -> None:
            if isinstance(event, replay.CapturedBatch) and isinstance(event.records, tuple):
                event = replay.CapturedBatch(event.time, event.records[:-1])
            into(event)

        return capture(stream, shorter, name)

    patch.setattr(replay, "capture", lossy)


# ------------------------------------------------------------------------------------------------- state and migration


@concerns("totals", "versus", "row_machine")
def state_lost(patch: Patch) -> None:
    """A bin of rows arrives without its state."""
    arrive = RowBins.arrive

    def empty(self: Any, piece: Any) -> Any:
        found = arrive(self, piece)
        self._states.pop(piece.bin, None)
        return found

    patch.setattr(RowBins, "arrive", empty)


@concerns("totals", "versus")
def post_dated_lost(patch: Patch) -> None:
    """A bin of rows arrives without its post-dated records."""
    arrive = RowBins.arrive

    def empty(self: Any, piece: Any) -> Any:
        found = arrive(self, piece)
        for time in [*self._pending.get(piece.bin, ())]:
            self._forget(piece.bin, time)
        return found

    patch.setattr(RowBins, "arrive", empty)


@concerns("machine", "two_folds", "batches")
def columns_post_dated_lost(patch: Patch) -> None:
    """The post-dated records of a bin of columns are not seen where they arrive."""
    patch.setattr(Pending, "arrived", lambda self, bin: heaps.set_leaf(self.tree, bin, heaps.NEVER))


@concerns("machine", "two_folds", "batches", "ordered")
def columns_state_lost(patch: Patch) -> None:
    """A bin of columns arrives with totals of zero."""
    arrived = HashTable.arrived

    def wiped(self: Any, bin: int) -> None:
        arrived(self, bin)
        if "total" in self.fields:
            self["total"][self.scan()[1]] = 0

    patch.setattr(HashTable, "arrived", wiped)


@concerns("migrating")
def stale_configuration(patch: Patch) -> None:
    """At the very time of an update, the configuration before it is used."""
    patch.setattr(Configurations, "at", lambda self, time: self._at(time - 1).table)


@concerns("migrating")
def pins_too_soon(patch: Patch) -> None:
    """A key is looked for where it will be pinned, not where it is."""
    patch.setattr(Configurations, "overrides_at", lambda self, time: self.latest_overrides)


@concerns("machine", "two_folds")
def due_before_new(patch: Patch) -> None:
    """What is due at a time is put off once more."""
    fire = FoldStore._fire
    patch.setattr(FoldStore, "_fire", lambda self, time: [*fire(self, time)][:0])


@concerns("pairs")
def forgets_the_unique(patch: Patch) -> None:
    """In a join both sides are taken to be unique: who has met somebody is forgotten."""
    keep = joining.JoinStore._keep

    def forgetful(self: Any, side: int, *rest: Any) -> None:
        unique, self._unique = self._unique, 1 - side
        keep(self, side, *rest)
        self._unique = unique

    patch.setattr(joining.JoinStore, "_keep", forgetful)
