"""Scopes: where operators are built. The root of a dataflow, and nested scopes, in which times have one more level."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, overload

from dataflow.channels.pact import ArrowStream
from dataflow.errors import ConstructionError
from dataflow.operators import inputs, loops, replay, rows, source
from dataflow.operators.latecomers import LateApart
from dataflow.operators.partitioned import partitioned
from dataflow.operators.partitions import Partitions
from dataflow.progress.paths import Levels, PathSummary, advance, identity
from dataflow.time.durations import Duration
from dataflow.time.order import Time, TimeSummary
from dataflow.time.timestamp import Checked, Domain, Product, TimeType, domain_of
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.columns.batch import Columns
    from dataflow.operators.following import ControlStream
    from dataflow.operators.inputs import InputHandle, UnorderedInput
    from dataflow.operators.latecomers import TimedStream
    from dataflow.operators.loops import LoopHandle
    from dataflow.run.dataflow import Dataflow

D = TypeVar("D")
Items: TypeAlias = Iterable[D] | AsyncIterable[D]
Frame: TypeAlias = Mapping[str, object] | ArrowStream


class Scope:
    """Builds operators that share one type of time. Ends with its `with` block."""

    def __init__(self, dataflow: Dataflow, levels: Levels, parent: Scope | None = None) -> None:
        self.dataflow = dataflow
        self.levels = levels
        self.parent = parent
        self.domain: Domain = levels[0] if len(levels) == 1 else Product(*levels)
        self._open = True

    @property
    def title(self) -> str:
        """How errors call it."""
        root = f"dataflow {self.dataflow.name!r}"
        return root if self.parent is None else f"a nested scope (depth {len(self.levels) - 1}) of {root}"

    @property
    def worker(self) -> int:
        """The index of the worker on which this part of the dataflow is built."""
        return self.dataflow.pump.index

    @property
    def peers(self) -> int:
        """The number of workers that build it."""
        return self.dataflow.pump.peers

    # Where records come from

    @overload
    def input(self, name: str = ...) -> tuple[InputHandle, Stream[Record]]: ...

    @overload
    def input(self, name: str = ..., *, of: type[D]) -> tuple[InputHandle[D], Stream[D]]: ...

    def input(self, name: str = "input", *, of: type[object] | None = None) -> tuple[InputHandle, Stream[Record]]:
        """An input that main feeds: (handle, stream).

        `of` is for type checkers only: `scope.input(of=int)` gives an `InputHandle[int]` and a `Stream[int]`.
        """
        return inputs.input(self, name)

    @overload
    def unordered_input(self, name: str = ...) -> tuple[UnorderedInput, Stream[Record]]: ...

    @overload
    def unordered_input(self, name: str = ..., *, of: type[D]) -> tuple[UnorderedInput[D], Stream[D]]: ...

    def unordered_input(
        self, name: str = "unordered input", *, of: type[object] | None = None
    ) -> tuple[UnorderedInput, Stream[Record]]:
        """An input that main feeds at any time for which it holds a capability: (handle, stream). `of`: see `input`."""
        return inputs.unordered_input(self, name)

    @overload
    def source(self, records: LateApart[D], *, ahead: int = ..., name: str = ...) -> TimedStream[D]: ...

    @overload
    def source(self, records: Partitions[D], *, ahead: int = ..., name: str = ...) -> Stream[D]: ...

    @overload
    def source(
        self,
        records: Items[tuple[Time, Iterable[D]]] | Callable[[], Items[tuple[Time, Iterable[D]]]],
        *,
        batch: int | None = ...,
        ahead: int = ...,
        every: float | Duration | None = ...,
        timed: Literal[True],
        name: str = ...,
    ) -> Stream[D]: ...

    @overload
    def source(
        self,
        records: Frame | Callable[[], Frame],
        *,
        batch: int | None = ...,
        ahead: int = ...,
        every: float | Duration | None = ...,
        timed: Literal[False] = ...,
        name: str = ...,
    ) -> Stream[Columns]: ...

    @overload
    def source(
        self,
        records: Items[D] | Callable[[], Items[D]],
        *,
        batch: int | None = ...,
        ahead: int = ...,
        every: float | Duration | None = ...,
        timed: Literal[False] = ...,
        name: str = ...,
    ) -> Stream[D]: ...

    def source(
        self,
        records: source.Items | Callable[[], source.Items] | Partitions[D] | LateApart[D],
        *,
        batch: int | None = None,
        ahead: int = 8,
        every: float | Duration | None = None,
        timed: bool = False,
        name: str = "source",
    ) -> Stream[Record]:
        """The records of an iterable or asynchronous iterable, `batch` of them at each time 0, 1, 2, ...

        At most `ahead` times are outstanding in the dataflow. With `every`, one time each so many seconds,
        or "250ms", or a timedelta. With `timed`, items are (time, records) pairs in the order of their times.

        What `dataflow.sources` makes (files, generators, your own `Partitions`) is read by all workers together, and
        goes on where it was after a crash.
        """
        if isinstance(records, LateApart) and not isinstance(records, Partitions):
            raise ConstructionError(f"{name}: {records!r} marks late records, and is no source with partitions")
        if isinstance(records, Partitions):
            if (batch, every, timed) != (None, None, False):
                raise ConstructionError(f"{name}: batch, every and timed are {records!r}'s own business")
            return partitioned(self, records, ahead=ahead, name=name)
        return source.source(self, records, batch=batch, ahead=ahead, every=every, timed=timed, name=name)

    def replay(self, *captures: Iterable[replay.Event], name: str = "replay") -> Stream[Record]:
        """The streams that were captured (see Stream.capture), as if they happened again."""
        return replay.replay(self, captures, name)

    def concat(self, streams: Iterable[Stream[D]], name: str = "concat") -> Stream[D]:
        """All records of several streams."""
        return rows.concat(self, tuple(streams), name)

    def control(self, lead: int = 1, name: str = "control") -> ControlStream[Record]:
        """A configuration stream that the run itself advances, with the inputs and sources of the dataflow: give it to
        `megaphone`'s operators. Updates are sent with its `send`, and by commands and loops. It is kept `lead` ahead,
        so that records need not wait for it. There is one for each name."""
        if name not in self.dataflow.controls:
            from dataflow.operators.following import control

            self.dataflow.controls[name] = control(self, lead, name)
        return self.dataflow.controls[name]

    @property
    def resume_at(self) -> int:
        """The time from which this dataflow is fed: 0, or that of the snapshot that it goes on from."""
        if self.dataflow.beginning is not None:
            time: int = self.dataflow.beginning.decision.time
            return time
        return self.dataflow.resume_at or 0

    # Loops

    @contextmanager
    def nested(self, time: TimeType = int) -> Iterator[Scope]:
        """A scope in which times have one more level, of type `time`: `with scope.nested() as loop: ...`."""
        self.require_open("a nested scope")
        domain = domain_of(time)
        inner = Scope(self.dataflow, (*self.levels, Checked(domain) if self.dataflow.debug else domain), self)
        try:
            yield inner
        finally:
            inner.close()

    def feedback(self, summary: TimeSummary = 1, name: str = "feedback") -> tuple[LoopHandle, Stream[Record]]:
        """The start of a loop: (handle, stream). What is connected to the handle comes out of the stream later.

        `summary` says how much later, in the innermost level of this scope's time.
        """
        return loops.feedback(self, summary, name)

    # For builders

    def path(self, summary: PathSummary | TimeSummary | None) -> PathSummary:
        """A summary of the innermost level as a path within this scope; None for the identity."""
        if isinstance(summary, PathSummary):
            return summary
        if summary is None:
            return identity(self.levels)
        outer = tuple(domain.identity for domain in self.levels[:-1])
        return advance(self.levels, (*outer, self.levels[-1].summary(summary)))

    def require_open(self, what: str) -> None:
        """ConstructionError if the scope's block has ended."""
        if not self._open:
            raise ConstructionError(f"{what} cannot be added: the `with` block of {self.title} has ended")

    def close(self) -> None:
        """Ends the scope: nothing can be added any more."""
        self._open = False
