"""Streams: what operators are applied to. Each method adds an operator to the dataflow and returns what comes out of
it.

The methods are the operators of `dataflow.operators`; the documentation of each is there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Generic, Literal, Never, TypeVar, overload

from dataflow.build import builder
from dataflow.build.cuts import Keeps
from dataflow.build.functions import StreamFunctions
from dataflow.channels.pact import Pact
from dataflow.columns.operators import ColumnOperators
from dataflow.errors import ConstructionError
from dataflow.operators import committed, grouping, loops, probe, replay, rows, sink, sinks, timing
from dataflow.progress.graph import Source
from dataflow.time.order import Time, TimeSummary
from dataflow.values import Key, Record

if TYPE_CHECKING:
    from numpy import datetime64

    from dataflow.build.builder import Context
    from dataflow.build.scope import Scope
    from dataflow.channels.ports import InputPort, OutputPort
    from dataflow.columns.batch import Columns
    from dataflow.events.operator import EventStream
    from dataflow.time.durations import Duration

D = TypeVar("D", covariant=True)
E = TypeVar("E")
F = TypeVar("F")
K = TypeVar("K")  # of keys
S = TypeVar("S")  # of states


class Stream(StreamFunctions[D], Generic[D]):
    """The records that leave one output of one operator."""

    def __init__(self, scope: Scope, source: Source) -> None:
        self.scope = scope
        self.source = source

    def require_usable(self, what: str) -> None:
        """ConstructionError if the stream's scope has ended."""
        self.scope.require_open(what)

    def __repr__(self) -> str:
        graph = self.scope.dataflow.graph
        return f"<stream: {graph.name(self.source)}>"

    def __iter__(self) -> Never:
        raise ConstructionError("a stream cannot be iterated: its records arrive later. Use inspect, sink or capture")

    # Record by record (see also `StreamFunctions`)

    def inspect(self, function: Callable[[Time, D], object], name: str = "inspect") -> Stream[D]:
        """Calls `function(time, record)` for each record, and passes it on."""
        return rows.inspect(self, function, name)

    @overload
    def inspect_batch(
        self: Stream[Columns], function: Callable[[Time, Columns], object], name: str = ...
    ) -> Stream[Columns]: ...

    @overload
    def inspect_batch(self, function: Callable[[Time, list[D]], object], name: str = ...) -> Stream[D]: ...

    def inspect_batch(
        self,
        function: Callable[[Time, Columns], object] | Callable[[Time, list[D]], object],
        name: str = "inspect_batch",
    ) -> Stream[object]:
        """Calls `function(time, batch)` for each batch, a list of records or `Columns`, and passes it on."""
        return rows.inspect_batch(self, function, name)

    def concat(self, *others: Stream[E], name: str = "concat") -> Stream[D | E]:
        """All records of this stream and of others."""
        return rows.concat(self.scope, (self, *others), name)

    def partition(self, parts: int, route: Callable[[D], int], name: str = "partition") -> list[Stream[D]]:
        """`parts` streams; a record goes to the one that `route(record)` names."""
        return rows.partition(self, parts, route, name)

    def branch(self, predicate: Callable[[D], object], name: str = "branch") -> tuple[Stream[D], Stream[D]]:
        """Two streams: the records for which `predicate(record)` is true, and the others."""
        return rows.branch(self, predicate, name)

    # Between workers

    def exchange(self, key: Callable[[D], object], name: str = "exchange") -> Stream[D]:
        """Brings records with equal `key(record)` to the same worker."""
        return rows.exchange(self, key, name)

    def broadcast(self, name: str = "broadcast") -> Stream[D]:
        """Brings every record to every worker."""
        return rows.broadcast(self, name)

    # By time and by key

    def delay(self, later: Callable[[Time, D], Time], name: str = "delay") -> Stream[D]:
        """Moves each record to the time `later(time, record)`."""
        return timing.delay(self, later, name)

    def event_time(
        self,
        time: str | Callable[[D], int | float | date | datetime64],
        delay: int | Duration = 0,
        *,
        every: int | Duration | None = None,
        partition: Callable[[D], Hashable] | str | None = None,
        idle_after: float | Duration | None = None,
        late: Literal["error", "stream", "count"] = "error",
        name: str = "event_time",
    ) -> EventStream[D]:
        """Records in any order, at their own times. `time`: a function of a record, or the name of a column (or of a
        field of dictionaries); an integer in the dataflow's units, or a moment. docs/windows.md explains the rest.

        `delay`: how far out of order they come. A record that is more than this before the latest one that came before
        it, in its partition, is *late*: an error, a record of the stream `.late` (`late="stream"`), or counted there
        and told at the end (`late="count"`). `partition`: which partition a record is of; each worker's records are
        one unless you say. `idle_after`: a partition, or a worker, that is silent for so long holds the others back no
        longer. `every`: times are rounded down to multiples of this. Rows are sent at their times; a batch of columns
        is sent whole, at a time that is not after any of its rows, unless `every` is given.
        """
        from dataflow.events.operator import event_time

        return event_time(
            self, time, delay, every=every, partition=partition, idle_after=idle_after, late=late, name=name
        )

    @overload
    def aggregate(
        self, key: Callable[[D], K], initial: Callable[[], S], fold: Callable[[S, D], S], *, name: str = ...
    ) -> Stream[tuple[K, S]]: ...

    @overload
    def aggregate(
        self,
        key: Callable[[D], K],
        initial: Callable[[], S],
        fold: Callable[[S, D], S],
        emit: Callable[[K, S], E],
        name: str = ...,
    ) -> Stream[E]: ...

    def aggregate(
        self,
        key: Callable[[D], K],
        initial: Callable[[], S],
        fold: Callable[[S, D], S],
        emit: Callable[[K, S], E] | None = None,
        name: str = "aggregate",
    ) -> Stream[E] | Stream[tuple[K, S]]:
        """For each key at each time, `initial()` folded over its records; `emit(key, state)`, or (key, state), comes
        out."""
        return grouping.aggregate(self, key, initial, fold, emit, name)

    def reduce(
        self, key: Callable[[D], K], function: Callable[[K, list[D]], Iterable[E]], name: str = "reduce"
    ) -> Stream[E]:
        """For each key at each time, every item of `function(key, records)`."""
        return grouping.reduce(self, key, function, name)

    @overload
    def count(self, key: None = None, name: str = ...) -> Stream[int]: ...

    @overload
    def count(self, key: Callable[[D], K], name: str = ...) -> Stream[tuple[K, int]]: ...

    def count(self, key: Callable[[D], K] | None = None, name: str = "count") -> Stream[int] | Stream[tuple[K, int]]:
        """(key, number of records) for each key at each time; without a key, the number of records at each time."""
        return grouping.count(self, key, name)

    @overload
    def join(
        self,
        other: Stream[E],
        key: Callable[[D], K],
        other_key: Callable[[E], K] | None = None,
        *,
        name: str = ...,
    ) -> Stream[tuple[K, D, E]]: ...

    @overload
    def join(
        self,
        other: Stream[E],
        key: Callable[[D], Key],  # not K: mypy would infer nothing from lambdas
        other_key: Callable[[E], Key] | None = None,
        *,
        emit: Callable[[Key, D, E], F],
        name: str = ...,
    ) -> Stream[F]: ...

    @overload
    def join(
        self,
        other: Stream[E],
        key: Callable[[D], Key],  # not K: mypy would infer nothing from lambdas
        other_key: Callable[[E], Key] | None,
        emit: Callable[[Key, D, E], F],
        /,
        name: str = ...,
    ) -> Stream[F]: ...

    def join(
        self,
        other: Stream[E],
        key: Callable[[D], K],
        other_key: Callable[[E], K] | None = None,
        emit: Callable[[K, D, E], F] | None = None,
        name: str = "join",
    ) -> Stream[F] | Stream[tuple[K, D, E]]:
        """For each pair of records with equal keys at equal times, `emit(key, left, right)`, or those three."""
        by: Callable[[Record], K] = key if other_key is None else other_key
        return grouping.join(self, other, key, by, emit, name)

    # Loops

    def enter(self, scope: Scope, name: str = "enter") -> Stream[D]:
        """Brings the stream into a nested scope, at the first time of its new level."""
        return loops.enter(self, scope, name)

    def leave(self, name: str = "leave") -> Stream[D]:
        """Brings the stream out of its nested scope."""
        return loops.leave(self, name)

    def connect_loop(self, loop: loops.LoopHandle) -> None:
        """Sends the records round the loop: they come out of its stream, later."""
        loop.connect(self)

    @overload
    def iterate(
        self, body: Callable[[Stream[D]], tuple[Stream[object], Stream[E]]], summary: TimeSummary = ...
    ) -> Stream[E]: ...

    @overload
    def iterate(self, body: Callable[[Stream[D]], Stream[E]], summary: TimeSummary = ...) -> Stream[E]: ...

    def iterate(
        self,
        body: Callable[[Stream[D]], Stream[E] | tuple[Stream[object], Stream[E]]],
        summary: TimeSummary = 1,
    ) -> Stream[E]:
        """Sends records round `body` until none are left. See dataflow.operators.loops.iterate."""
        return loops.iterate(self, body, summary)

    # Where records go

    def probe(self) -> probe.Probe:
        """Something to ask, and to wait on, for how far this stream has come."""
        return probe.probe(self)

    @overload
    def sink(self, write: sinks.Sink, name: str = ...) -> Stream[Never]: ...

    @overload
    def sink(self: Stream[Columns], write: Callable[[Time, Columns], object], name: str = ...) -> Stream[Never]: ...

    @overload
    def sink(self, write: Callable[[Time, list[D]], object], name: str = ...) -> Stream[Never]: ...

    def sink(self, write: sink.Write | sinks.Sink, name: str = "sink") -> Stream[Never]:
        """Calls `write(time, batch)` for each batch (records or `Columns`), awaiting it if it is asynchronous.

        What `dataflow.sinks` makes (tables of a database, files, your own `Sink`) is written in the order of times and
        committed with each snapshot, and at the end. The stream that is returned carries no records; its frontier says
        what has been written.
        """
        if isinstance(write, sinks.Sink):
            return committed.committed(self, write, name)
        return sink.sink(self, write, name)

    def capture(self, into: Callable[[replay.Event], object], name: str = "capture") -> Stream[D]:
        """Calls `into(event)` with everything that happens on the stream, for Scope.replay; passes the records on."""
        return replay.capture(self, into, name)

    # Columns

    @property
    def columns(self) -> ColumnOperators:
        """The operators on batches of columns: `stream.columns.filter(...)`; see dataflow.columns.operators."""
        return ColumnOperators(self)

    # For operator authors

    def unary(
        self,
        name: str,
        make: Callable[[Context], Callable[[InputPort[D], OutputPort[E]], None]],
        *,
        pact: Pact | None = None,
        frontier: bool = False,
        initial: bool = False,
        keeps: Keeps = Keeps.UNKNOWN,
    ) -> Stream[E]:
        """A generic operator with one input: see dataflow.build.builder.unary."""
        return builder.unary(self, name, make, pact=pact, frontier=frontier, initial=initial, keeps=keeps)

    @overload
    def unary_notify(
        self: Stream[Columns],
        name: str,
        on_batch: builder.OnColumns[E],
        on_notify: builder.OnNotify[E],
        *,
        pact: Pact | None = ...,
        keeps: Keeps = ...,
    ) -> Stream[E]: ...

    @overload
    def unary_notify(
        self,
        name: str,
        on_batch: builder.OnRows[D, E],
        on_notify: builder.OnNotify[E],
        *,
        pact: Pact | None = ...,
        keeps: Keeps = ...,
    ) -> Stream[E]: ...

    def unary_notify(
        self,
        name: str,
        on_batch: builder.OnColumns[E] | builder.OnRows[D, E],
        on_notify: builder.OnNotify[E],
        *,
        pact: Pact | None = None,
        keeps: Keeps = Keeps.UNKNOWN,
    ) -> Stream[E]:
        """A generic operator that is notified of completed times: see dataflow.build.builder.unary_notify."""
        return builder.unary_notify(self, name, on_batch, on_notify, pact=pact, keeps=keeps)

    def binary(
        self,
        other: Stream[F],
        name: str,
        make: Callable[[Context], Callable[[InputPort[D], InputPort[F], OutputPort[E]], None]],
        *,
        pacts: tuple[Pact | None, Pact | None] = (None, None),
        frontier: bool = False,
        initial: bool = False,
        keeps: Keeps = Keeps.UNKNOWN,
    ) -> Stream[E]:
        """A generic operator with two inputs: see dataflow.build.builder.binary."""
        return builder.binary(self, other, name, make, pacts=pacts, frontier=frontier, initial=initial, keeps=keeps)
