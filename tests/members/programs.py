"""Random programs whose workers come and go."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

import trio

import megaphone
from dataflow.errors import DataflowError
from dataflow.lowlevel import Keeps, ToWorker
from dataflow.members.requests import ScaleChange
from dataflow.run.worker import Worker
from megaphone.errors import ControlError
from tests.members.meaning import NAMES, STATEFUL, Stamped

BINS = 8
END = 20  # a time after which nothing is sent


@dataclass
class Case:
    """A program and what becomes of it: all drawn from a seed."""

    seed: int
    stages: list[tuple[str, ...]] = field(default_factory=list)  # by dataflow
    workers: int = 2
    scales: dict[int, tuple[str, Any]] = field(default_factory=dict)  # by time: what worker 0 asks for
    moves: float = 0.0
    fed_control: bool = False
    sent: list[list[Stamped]] = field(default_factory=list)
    out: list[list[Stamped]] = field(default_factory=list)
    changes: list[ScaleChange] = field(default_factory=list)
    members: list[Any] = field(default_factory=list)
    paced: bool = True  # whether mains wait for what they have sent
    joined: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        chance = random.Random(f"members {self.seed}")
        flows = 2 if chance.random() < 0.2 else 1
        self.stages = [_stages(chance) for _ in range(flows)]
        self.sent, self.out = [[] for _ in self.stages], [[] for _ in self.stages]
        self.workers = chance.choice([1, 1, 2, 2, 3])
        for _ in range(chance.choice([1, 1, 2, 2, 3])):
            at = chance.randrange(END - 8)
            if chance.random() < 0.25:
                self.scales[at] = ("drain", chance.randrange(1, 5))
            else:
                self.scales[at] = ("scale", chance.choice([1, 2, 3, 3, 4, 5]))
        self.moves = chance.choice([0.0, 0.1, 0.3])
        self.fed_control = chance.random() < 0.3

    async def main(self, worker: Worker) -> None:
        """What each worker does."""
        chance = random.Random(f"{self.seed} {worker.index}")
        inputs, controls, streams = [], [], []
        for number, stages in enumerate(self.stages):
            with worker.dataflow() as scope:
                handle, stream = scope.input("data")
                if self.fed_control:
                    control, updates = scope.input("control")
                else:
                    control = updates = scope.control(lead=chance.choice([0]))
                for place, stage in enumerate(stages):
                    stream = BUILD[stage](stream, updates, f"{stage} {place}")
                    if stage in STATEFUL:
                        streams.append((control, f"{stage} {place}"))
                stream.inspect(lambda t, r, to=self.out[number]: to.append((t, r)))
                probe = stream.probe()
            inputs.append(handle)
            controls.append(control)
            if chance.random() < 0.3:
                await trio.lowlevel.checkpoint()
        if worker.index == 0 and chance.random() < 0.3:
            await self._watch(worker)
        if worker.index >= self.workers:
            self.joined.add(worker.index)
        for time in range(worker.resume_at, END):
            self._steer(worker, time, chance, streams)
            for number, handle in enumerate(inputs):
                self._feed(handle, number, time, chance, worker.index)
            for control in controls:
                if self.fed_control and not control.closed and control.time < time + 1:
                    control.advance_to(time + 1)
            if chance.random() < 0.7:
                await worker.step()
            if self.paced and chance.random() < 0.6 and not probe.done:
                await probe.wait_passed(time - chance.randrange(4))

    async def _watch(self, worker: Worker) -> None:
        async for members in worker.members():
            self.members.append(members)
            break

    def _feed(self, handle: Any, number: int, time: int, chance: random.Random, index: int) -> None:
        if handle.closed:
            return
        if handle.time < time:
            handle.advance_to(time)
        if handle.time > time:
            return
        for _ in range(chance.randrange(3)):
            records = [(chance.randrange(6), chance.randrange(9)) for _ in range(chance.randrange(1, 4))]
            at = time + (chance.randrange(1, 4) if chance.random() < 0.25 else 0)
            handle.send(records, at=at)
            self.sent[number] += [(at, record) for record in records]
        handle.advance_to(time + 1)

    def _steer(self, worker: Worker, time: int, chance: random.Random, streams: list[Any]) -> None:
        if worker.index == 0 and time in self.scales:
            kind, what = self.scales[time]
            self.changes.append(worker.scale(what) if kind == "scale" else worker.drain(what))
        elif chance.random() < 0.03 and worker.index > 0:
            self.changes.append(worker.scale(chance.randrange(1, 5)))
        if streams and chance.random() < self.moves:
            control, name = chance.choice(streams)
            update = megaphone.Move(chance.randrange(BINS), chance.randrange(5), name)
            with contextlib.suppress(ControlError, DataflowError):  # that worker is not there
                control.send([update], at=control.time + chance.randrange(3))


def _stages(chance: random.Random) -> tuple[str, ...]:
    stages: list[str] = ["count"] if chance.random() < 0.3 else []
    for _ in range(chance.randrange(1, 4)):
        stage = chance.choice([*NAMES, *STATEFUL])
        stages.append(stage)
    return tuple(stages)


def _running(stream: Any, control: Any, name: str) -> Any:
    def fold(time: int, batch: list[Any], state: dict[Any, int], later: Any) -> Any:
        for key, _ in batch:
            state[key] = state.get(key, 0) + 1
            yield key, state[key]

    return megaphone.unary(control, stream, key=lambda r: r[0], fold=fold, bins=BINS, name=name, interval=0)


def _postponed(stream: Any, control: Any, name: str) -> Any:
    def fold(time: int, batch: list[Any], state: dict[Any, int], later: Any) -> Any:
        for key, value, *again in batch:
            state[key] = state.get(key, 0) + value
            if not again and value % 3 == 0:
                later.notify_at(time + 1 + value % 4, (key, 1, True))
        yield from ((key, state[key]) for key in {record[0] for record in batch})

    return megaphone.unary(control, stream, key=lambda r: r[0], fold=fold, bins=BINS, name=name, interval=None)


def _halve(stream: Any, control: Any, name: str) -> Any:
    def body(inner: Any) -> Any:
        again = inner.filter(lambda r: r[1] > 1).map(lambda r: (r[0], r[1] // 2)).exchange(lambda r: r[1])
        return again, inner.filter(lambda r: r[1] <= 1)

    return stream.iterate(body)


def _round(stream: Any, control: Any, name: str) -> Any:
    loop, cycle = stream.scope.feedback(1)
    both = stream.concat(cycle)
    stream.filter(lambda r: r[1] % 2 == 1).map(lambda r: (r[0], r[1] + 1)).connect_loop(loop)
    return both


BUILD = {
    "add": lambda stream, control, name: stream.map(lambda r: (r[0], r[1] + 1)),
    "count": lambda stream, control, name: stream.count(key=lambda r: r[0]),
    "exchange": lambda stream, control, name: stream.exchange(lambda r: r[1]),
    "gather": lambda stream, control, name: stream.unary(
        "gather", lambda _: _pass_on, pact=ToWorker(0), keeps=Keeps.NOTHING
    ),
    "delay": lambda stream, control, name: stream.delay(lambda t, r: t + r[0] % 3),
    "halve": _halve,
    "round": _round,
    "running": _running,
    "postponed": _postponed,
}


def _pass_on(input: Any, output: Any) -> None:
    for message, batch in input:
        output.give(message, batch)
