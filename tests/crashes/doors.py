"""The ends of a program: a source in memory that can be set where it was, a sink that prepares and commits, and how
something is said on the run's own control stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dataflow.channels.pact import Exchange
from dataflow.columns import Columns
from dataflow.columns.pact import ExchangeColumns
from dataflow.errors import InputClosed, TimeError
from dataflow.operators.partitions import Partitions
from dataflow.operators.sinks import Place, Sink, Writer
from tests.crashes.building import payload
from tests.crashes.description import COLUMNS, Feed
from tests.crashes.outside import Outside, Row, WrongRows


class Kept(Partitions[Any]):
    """What the partitions of a feed have, in memory; a position is the number of a partition's next batch."""

    def __init__(self, feed: Feed, outside: Outside, name: str) -> None:
        self._feed, self._outside, self._name = feed, outside, name
        self.timed = feed.kind == "source"

    async def partitions(self) -> list[str]:
        """Their names."""
        return [str(slot) for slot in range(self._feed.slots)]

    def read(self, partition: str, position: object) -> Iterator[tuple[int, int | None, Any]]:
        """The rest of a partition."""
        sends = self._feed.of(int(partition))
        start = 0 if position is None else position
        assert isinstance(start, int)
        if start < self._outside.acknowledged.get((self._name, partition), 0):
            raise WrongRows(f"{self._name}, partition {partition}: {start} is asked for, which was acknowledged")
        for number, send in enumerate(sends[start:], start):
            yield number + 1, send.at if self.timed else None, payload(self._feed.form, send.records)

    async def acknowledge(self, partition: str, position: object) -> None:
        """What is before a position will not be asked for again."""
        assert isinstance(position, int)
        before = self._outside.acknowledged.get((self._name, partition), 0)
        self._outside.acknowledged[self._name, partition] = max(position, before)


class Ledger(Sink):
    """Rows that go outside, by key if that is what the sink is for."""

    def __init__(self, outside: Outside, number: int) -> None:
        self._outside, self._number = outside, number

    def route(self) -> Any:
        """Rows of a key are written by one worker, if they replace each other."""
        output = self._outside.program.outputs[self._number]
        if output.kind == "append":
            return None
        form = self._outside.program.nodes[output.ref[0]].form
        return ExchangeColumns(("k",)) if form == COLUMNS else Exchange(lambda record: record[0])

    def open(self, place: Place) -> Writer:
        """Where a worker writes."""
        return _Writer(self._outside, self._number)


class _Writer(Writer):
    """Rows that are not committed, in the order in which they came."""

    def __init__(self, outside: Outside, number: int) -> None:
        self._outside, self._number = outside, number
        self._rows: list[Row] = []
        self._busy = False

    async def write(self, time: int, batch: Any) -> None:
        """Takes a batch of a complete time, or nothing of it."""
        self._outside.answer()
        if self._rows and time < self._rows[-1][0]:
            raise WrongRows(f"sink {self._number} gets rows of {time} after those of {self._rows[-1][0]}")
        rows = zip(batch["k"].tolist(), batch["v"].tolist(), strict=True) if isinstance(batch, Columns) else batch
        self._rows += sorted((time, int(k), int(v)) for k, v in rows)

    async def prepare(self, time: int) -> object:
        """What was written and is not committed. Nothing at or after the cut may have been written."""
        late = [row for row in self._rows if row[0] >= time]
        if late:
            raise WrongRows(f"sink {self._number} has {late[:5]} before the cut at {time}")
        return await self._outside.prepare(self._number, time, self._rows)

    async def commit(self, token: object) -> None:
        """Shows it."""
        assert isinstance(token, str)
        await self._outside.commit(self._number, token)
        done = self._outside.prepared_before(token)
        self._rows = [row for row in self._rows if row[0] >= done]

    async def recover(self, tokens: Sequence[object]) -> None:
        """Shows what may not have been shown."""
        for token in tokens:
            assert isinstance(token, str)
            await self._outside.commit(self._number, token)


class Steering:
    """How something is said on the run's own control stream, which is where the sources are: perhaps too far."""

    def __init__(self, control: Any, outside: Outside) -> None:
        self._control, self._outside = control, outside

    def send(self, updates: list[Any], at: int) -> None:
        """Says it, at a time; if that is past, nobody hears of it."""
        try:
            self._control.send(updates, at)
        except (TimeError, InputClosed):
            self._outside.unheard += 1
