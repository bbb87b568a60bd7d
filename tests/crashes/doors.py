"""The ends of a program: a source with partitions and a sink that commits, on the bare doors of `dataflow.build.cuts`.

They know nothing of `dataflow.sources` and `dataflow.sinks`, which have tests of their own: here the keeper is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.cuts import Keeps, Participant, Share
from dataflow.channels.pact import Exchange
from dataflow.columns import Columns
from dataflow.columns.pact import ExchangeColumns
from dataflow.errors import InputClosed, TimeError
from dataflow.run.completion import Completion
from tests.crashes.building import payload
from tests.crashes.description import COLUMNS, Feed
from tests.crashes.outside import Outside, Row

AHEAD = 2  # times of a source that may be outstanding


# -------------------------------------------------------------------------------------------------------------- sources


def source(scope: Any, feed: Feed, outside: Outside, name: str) -> Any:
    """A stream of what the partitions of a feed have: partition p on worker p modulo workers."""
    builder = OperatorBuilder(scope, name)
    builder.add_output(initial=True)
    (stream,) = builder.build(lambda context: _Source(scope, context, feed, outside, name).step, keeps=Keeps.SHARE)
    return stream


class _Source(Participant):
    """Sends what its partitions have, in the order of time; a position is the number of a partition's next send."""

    def __init__(self, scope: Any, context: Context, feed: Feed, outside: Outside, name: str) -> None:
        self.name = name
        self._feed, self._outside, self._context = feed, outside, context
        self._mine = range(scope.worker, feed.slots, scope.peers)
        self._positions = dict.fromkeys(self._mine, 0)
        self._sent = {slot: feed.of(slot) for slot in self._mine}
        self._capability: Capability | None = context.capability()
        self._completion = Completion(scope.dataflow)
        self._dataflow = scope.dataflow
        self._resumed = trio.Event()
        self._gate = scope.dataflow.enrol(self, self.step)
        context.spawn(self._run)

    def step(self) -> None:
        """Gives the share of a cut, if one waits and everything before it has been sent."""
        gate = self._gate
        while gate.cut is not None and (self._capability is None or self._capability.time >= gate.cut):
            cut = gate.cut
            plain = [[slot, self.position_at(slot, cut)] for slot in self._mine]
            last = max((send.at for sends in self._sent.values() for send in sends), default=None)
            gate.give(Share(plain, seen=last))

    def position_at(self, slot: int, cut: int) -> int:
        """Behind the last record that was sent before a cut."""
        return sum(send.at < cut for send in self._sent[slot])

    def restore(self, shares: Mapping[int, object]) -> None:
        """Where each partition goes on."""
        for positions in shares.values():
            assert isinstance(positions, list)
            for slot, position in positions:
                if slot in self._positions:
                    self._positions[slot] = position

    def resume(self) -> None:
        """May begin."""
        self._resumed.set()

    async def commit(self, time: int, plain: object, token: object) -> None:
        """What is before these positions will not be asked for again."""
        assert isinstance(plain, list)
        for slot, position in plain:
            key = f"{self.name}, {slot}"
            self._outside.acknowledged[key] = max(position, self._outside.acknowledged.get(key, 0))

    async def _run(self) -> None:
        await self._completion.wait_built()
        await self._resumed.wait()
        left = [(send.at, slot, number, send) for slot in self._mine for number, send in enumerate(self._sent[slot])]
        times: list[int] = []
        for time, slot, number, send in sorted(left, key=lambda each: each[:3]):
            if number < self._positions[slot]:
                continue
            assert number >= self._outside.acknowledged.get(f"{self.name}, {slot}", 0), "this was acknowledged"
            assert self._capability is not None
            self._capability.downgrade(max(time, self._capability.time))
            self.step()
            if not times or times[-1] != time:
                times.append(time)
                if len(times) > AHEAD:
                    await self._completion.wait_passed(times[-1 - AHEAD])
            if self._dataflow.dropped:
                return
            self._context.outputs[0].give(self._capability, payload(self._feed.form, send.records), time)
        assert self._capability is not None
        self._capability.drop()
        self._capability = None
        self.step()


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
