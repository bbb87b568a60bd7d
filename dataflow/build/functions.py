"""What streams have for functions of single records. `errors="stream"`: records at which a function raises come as
(record, text) on the stream `.errors` of what is returned, and the others go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar, cast, overload

from dataflow.operators import rows
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.operators.asynchronous import Retry
    from dataflow.operators.failing import CheckedStream
    from dataflow.time.durations import Duration

D = TypeVar("D", covariant=True)
E = TypeVar("E")
T = TypeVar("T")


class _Operators(Protocol):
    """`operators.rows`, or `operators.failing`."""

    def map(self, stream: Stream[T], function: Callable[[T], E], name: str) -> Stream[E]: ...

    def flat_map(self, stream: Stream[T], function: Callable[[T], Iterable[E]], name: str) -> Stream[E]: ...

    def filter(self, stream: Stream[T], predicate: Callable[[T], object], name: str) -> Stream[T]: ...


def _operators(name: str, errors: str) -> _Operators:
    from dataflow.operators import failing

    failing.require_errors(errors, name)
    return cast(_Operators, failing if errors == "stream" else rows)


class StreamFunctions(Generic[D]):
    """Part of `Stream`."""

    @property
    def _stream(self) -> Stream[D]:
        return cast("Stream[D]", self)

    @overload
    def map(self, function: Callable[[D], E], name: str = ..., errors: Literal["raise"] = ...) -> Stream[E]: ...

    @overload
    def map(
        self, function: Callable[[D], E], name: str = ..., *, errors: Literal["stream"]
    ) -> CheckedStream[E]: ...

    def map(
        self, function: Callable[[D], E], name: str = "map", errors: Literal["raise", "stream"] = "raise"
    ) -> Stream[E]:
        """`function(record)` for each record."""
        return _operators(name, errors).map(self._stream, function, name)

    @overload
    def flat_map(
        self, function: Callable[[D], Iterable[E]], name: str = ..., errors: Literal["raise"] = ...
    ) -> Stream[E]: ...

    @overload
    def flat_map(
        self, function: Callable[[D], Iterable[E]], name: str = ..., *, errors: Literal["stream"]
    ) -> CheckedStream[E]: ...

    def flat_map(
        self,
        function: Callable[[D], Iterable[E]],
        name: str = "flat_map",
        errors: Literal["raise", "stream"] = "raise",
    ) -> Stream[E]:
        """Every item of `function(record)`, for each record."""
        return _operators(name, errors).flat_map(self._stream, function, name)

    @overload
    def filter(
        self, predicate: Callable[[D], object], name: str = ..., errors: Literal["raise"] = ...
    ) -> Stream[D]: ...

    @overload
    def filter(
        self, predicate: Callable[[D], object], name: str = ..., *, errors: Literal["stream"]
    ) -> CheckedStream[D]: ...

    def filter(
        self, predicate: Callable[[D], object], name: str = "filter", errors: Literal["raise", "stream"] = "raise"
    ) -> Stream[D]:
        """The records for which `predicate(record)` is true."""
        return _operators(name, errors).filter(self._stream, predicate, name)

    def map_async(
        self,
        function: Callable[[D], Awaitable[E]],
        *,
        concurrency: int = 64,
        ordered: bool = True,
        timeout: float | Duration | None = None,
        retry: int | Retry = 0,
        errors: Literal["raise", "stream"] = "raise",
        name: str = "map_async",
    ) -> CheckedStream[E]:
        """`await function(record)` for each record, at most `concurrency` at a time on each worker; answers come out
        at the records' times.

        `ordered`: in the order of the records, or as they come. `timeout`: of each call, seconds or a duration; then
        it is a TimeoutError. `retry`: how often a call that fails is tried again, or a `Retry`. What fails after that
        is raised, or comes as (record, text) on the stream `.errors` (`errors="stream"`).
        """
        from dataflow.operators.asynchronous import map_async

        return map_async(
            self._stream,
            function,
            concurrency=concurrency,
            ordered=ordered,
            timeout=timeout,
            retry=retry,
            errors=errors,
            size=None,
            name=name,
        )

    def map_async_batches(
        self,
        function: Callable[[Record], Awaitable[Iterable[E]]],
        *,
        size: int = 1024,
        concurrency: int = 8,
        ordered: bool = True,
        timeout: float | Duration | None = None,
        retry: int | Retry = 0,
        errors: Literal["raise", "stream"] = "raise",
        name: str = "map_async_batches",
    ) -> CheckedStream[E]:
        """The same with batches of at most `size` records of one time (a list, or columns): `await function(batch)` is
        a list of records, or columns."""
        from dataflow.operators.asynchronous import map_async

        return map_async(
            self._stream,
            function,
            concurrency=concurrency,
            ordered=ordered,
            timeout=timeout,
            retry=retry,
            errors=errors,
            size=size,
            name=name,
        )
