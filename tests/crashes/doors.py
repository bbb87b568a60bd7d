"""The ends of a program: a source in memory that can be set where it was, and a sink that prepares and commits, on the
bare door of `dataflow.build.cuts`: what it is told, and when, is what is judged here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Keeps, Participant, Share
from dataflow.channels.pact import Exchange
from dataflow.columns import Columns
from dataflow.columns.pact import ExchangeColumns
from dataflow.errors import InputClosed, TimeError
from dataflow.operators.partitions import Partitions
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


# ---------------------------------------------------------------------------------------------------------------- sinks


def sink(stream: Any, outside: Outside, number: int, name: str) -> Any:
    """Writes rows, by key and in the order of time, and shows them with each snapshot."""
    builder = OperatorBuilder(stream.scope, name)
    output = outside.program.outputs[number]
    form = outside.program.nodes[output.ref[0]].form
    by_key: Any = ExchangeColumns(("k",)) if form == COLUMNS else Exchange(lambda record: record[0])
    builder.add_input(stream, by_key if output.kind == "keyed" else None)
    builder.add_output()
    (out,) = builder.build(
        lambda context: _Sink(stream.scope, context, outside, number, name).step, frontier=True, keeps=Keeps.SHARE
    )
    return out


class _Sink(Participant):
    """Rows that are not committed, in the order of their times."""

    def __init__(self, scope: Any, context: Context, outside: Outside, number: int, name: str) -> None:
        self.name = name
        self._outside, self._number, self._context = outside, number, context
        self._rows: list[Row] = []
        self._seen: int | None = None
        self._gate = scope.dataflow.enrol(self, self.step)

    def step(self) -> None:
        """Takes rows; gives the share of a cut if nothing before it can come."""
        (input,), gate = self._context.inputs, self._gate
        for message, batch in input:
            rows = zip(batch["k"].tolist(), batch["v"].tolist(), strict=True) if isinstance(batch, Columns) else batch
            self._rows += [(message.time, int(k), int(v)) for k, v in rows]
            self._seen = max(message.time, self._seen or 0)
        while gate.cut is not None and not input.could_see(gate.cut - 1):
            gate.give(Share(prepare=partial(self._prepare, gate.cut), seen=self._seen))

    async def _prepare(self, cut: int) -> str:
        """What is not committed by now. A snapshot's outcome is known before the next one's output is prepared, or rows
        would be prepared twice."""
        return await self._outside.prepare(self._number, sorted(row for row in self._rows if row[0] < cut))

    def restore(self, shares: Mapping[int, object]) -> None:
        """What was not committed is committed by the engine."""

    async def commit(self, time: int, plain: object, token: object) -> None:
        """Shows what was prepared before a time, here or by a worker that is gone."""
        assert isinstance(token, str)
        self._rows = [row for row in self._rows if row[0] >= time]
        await self._outside.commit(self._number, time, token)


# ------------------------------------------------------------------------------------------------------------- the rest


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
