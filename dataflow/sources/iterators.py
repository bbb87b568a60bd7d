"""Any iterator that can be started again in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.operators.source import Reader

D = TypeVar("D")

Several = Iterable[D] | AsyncIterable[D]

_END = object()


class _Restartable(Partitions[D]):
    """Records with the positions behind them."""

    def __init__(
        self, start: Callable[[str, object | None], Several[tuple[object, D]]], names: Sequence[str], batch: int | None
    ) -> None:
        if batch is not None and (type(batch) is not int or batch < 1):
            raise ConstructionError(f"batch must be at least 1, not {batch!r}")
        if isinstance(names, str) or len(set(names)) != len(names):
            raise ConstructionError(f"partitions are a list of names, each once, not {names!r}")
        self._start = start
        self._names = list(names)
        self._batch = batch

    async def partitions(self) -> list[str]:
        """Those that were named."""
        return self._names

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The rest of a partition."""
        items = self._start(partition, position)
        size = self._batch or (1 if isinstance(items, AsyncIterable) else 1000)
        behind, records = position, list[D]()
        reader = Reader(items)
        try:
            while (item := await reader.next(_END)) is not _END:
                behind, record = _pair(item)
                records.append(record)
                if len(records) == size:
                    yield behind, None, records
                    records = []
        finally:
            await reader.close()
        if records:
            yield behind, None, records


def _pair(item: tuple[object, D]) -> tuple[object, D]:
    try:
        position, record = item
    except (TypeError, ValueError):
        raise SourceError(f"a restartable iterator gives (position, record) pairs, and gave {item!r}") from None
    return position, record


def restartable(
    function: Callable[[object | None], Several[tuple[object, D]]], batch: int | None = None
) -> Partitions[D]:
    """What `function(position)` gives: (position, record) pairs, from a position on (None: from the beginning).

    A position is any plain data, and says that everything up to this record has been given: a row's number, a cursor. A
    function that is started at a position must give exactly what followed it before. `batch` records are sent at each
    time: 1000 unless given, one if the iterator is asynchronous. One worker reads it; see `shares` for several.
    """
    if not callable(function):
        raise ConstructionError(f"restartable needs a function of a position, not {function!r}")
    return _Restartable(lambda _, position: function(position), ["all"], batch)


def shares(
    function: Callable[[str, object | None], Several[tuple[object, D]]],
    partitions: Sequence[str],
    batch: int | None = None,
) -> Partitions[D]:
    """`function(partition, position)` for each of several partitions, which the workers divide. See `restartable`."""
    if not callable(function):
        raise ConstructionError(f"shares needs a function of a partition and a position, not {function!r}")
    return _Restartable(function, partitions, batch)


def generator(function: Callable[[int], Several[D]], batch: int | None = None) -> Partitions[D]:
    """What `function(start)` gives: the records from number `start` on, the same whenever it is asked.

    The position is the number of records. `generator(lambda start: itertools.count(start))` counts for ever.
    """
    if not callable(function):
        raise ConstructionError(f"generator needs a function of a number, not {function!r}")

    return _Generated(function, batch)


class _Generated(_Restartable[D]):
    """Records whose position is their number."""

    def __init__(self, function: Callable[[int], Several[D]], batch: int | None) -> None:
        super().__init__(lambda *_: (), ["all"], batch)
        self._function = function

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The records from a number on."""
        if position is not None and type(position) is not int:
            raise SourceError(f"a generator's position is a number of records, not {position!r}")
        number = position or 0
        items = self._function(number)
        size = self._batch or (1 if isinstance(items, AsyncIterable) else 1000)
        reader, records = Reader(items), list[D]()
        try:
            while (record := await reader.next(_END)) is not _END:
                records.append(record)
                if len(records) == size:
                    number += size
                    yield number, None, records
                    records = []
        finally:
            await reader.close()
        if records:
            yield number + len(records), None, records
