"""Programs with sources and sinks whose workers come and go, with snapshots and crashes: those of `tests.crashes`,
whose outside judges, with requests to scale in between."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import trio

import dataflow
import megaphone
from dataflow.errors import DataflowError
from dataflow.members.requests import ScaleChange
from dataflow.recovery.announcing import ChangeNotKept
from dataflow.recovery.storage import StorageError
from dataflow.testing import Crashed, Starving, simulate
from tests.crashes import running
from tests.crashes.description import ROWS, Control, Feed, Node, Output, Program, Send
from tests.crashes.driving import TURNS, Case, Life, Plan, random_plan
from tests.crashes.generating import random_program
from tests.crashes.timed_meaning import TIMED
from tests.members.checking import Checker

FIXED = {"native_running", "native_totals", "native_tally", "native_machine", "windows"}


def scalable_program(seed: int) -> Program:
    """A random program without inputs by hand, whose operators all follow the membership."""
    for number in count():
        program = random_program(seed * 1000 + number)
        fixed = any(node.kind in FIXED or (node.kind in TIMED and node.control is None) for node in program.nodes)
        if fixed or not program.feeds or any(feed.kind == "input" for feed in program.feeds):
            continue
        controls = tuple(replace(control, own=False, updates=()) for control in program.controls)
        feeds = tuple(_longer(feed, Random(f"feeds {seed}")) for feed in program.feeds)
        return replace(program, feeds=feeds, controls=controls, saves=False)
    raise AssertionError


def _longer(feed: Feed, chance: Random) -> Feed:
    """The same with more partitions, and more in them: so that some of them move while they are read."""
    slots = chance.choice((2, 3, 4, 5))
    last = max((send.when for send in feed.sends), default=0)
    again = [send for send in feed.sends for _ in range(chance.choice((1, 2, 3)))]
    times = [chance.randrange(last + 1) for _ in again]
    sends = (
        replace(send, slot=chance.randrange(slots), when=time, at=time) for send, time in zip(again, times, strict=True)
    )
    return replace(feed, slots=slots, sends=tuple(sends))


def small_program(seed: int) -> Program:
    """A source of several partitions, state by key, and sinks: with times of its own or without."""
    chance = Random(f"small {seed}")
    timed, epochs, slots = chance.random() < 0.5, 6, chance.choice((3, 4, 5))
    sends = []
    for slot in range(slots):
        for time in range(epochs) if timed else range(8):
            records = tuple((chance.randrange(4), chance.randrange(1, 9)) for _ in range(chance.randrange(1, 3)))
            sends.append(Send(slot, time, time, records))
    feed = Feed("source" if timed else "untimed", ROWS, slots, tuple(sends))
    state = Node("row_running" if timed else "tally", ROWS, ((0, 0),), (0,), 0)
    nodes = (Node("input", ROWS, (), (0,)), state)
    outputs = (Output("append", (1, 0)), *((Output("keyed", (1, 0)),) if timed else ()))
    return Program(epochs, (feed,), (Control(4, (), own=False),), nodes, outputs, ahead=2)


class ElasticCase(Case):
    """A case whose workers come and go, in every life."""

    def __init__(self, program: Program, plan: Plan, seed: int) -> None:
        super().__init__([program], plan, seed)
        self._seed = seed
        self.asked: list[ScaleChange] = []
        self.often = 0.02

    async def main(self, worker: dataflow.Worker) -> None:
        """Runs the program, and on worker 0 asks for other workers now and then."""
        chance = Random(f"elastic {self._seed} {worker.index} {self.happened.total()}")
        async with trio.open_nursery() as nursery:
            if worker.index == 0:
                nursery.start_soon(self._scale, worker, chance)
            program = running.Running(worker, self.outsides[0], alone=True)
            if program.controls and chance.random() < 0.3:
                nursery.start_soon(self._steer, program, chance)
            await program.run()
            nursery.cancel_scope.cancel()

    async def _scale(self, worker: dataflow.Worker, chance: Random) -> None:
        for _ in range(chance.choice((1, 2, 2, 3, 4))):
            for _ in range(chance.randrange(12)):
                await worker.step()
            workers = chance.randrange(1, 5)
            self.asked.append(worker.drain(workers) if chance.random() < 0.2 else worker.scale(workers))

    async def _steer(self, program: Any, chance: Random) -> None:
        """Moves a bin; to a worker that is not there, or too late, it is refused."""
        for _ in range(3):
            for _ in range(chance.randrange(20)):
                await program.worker.step()
            control, steering, _ = chance.choice(program.controls)
            with contextlib.suppress(DataflowError):
                steering._control.send([megaphone.Move(chance.randrange(control.bins), chance.randrange(4))])

    def _live(self, life: Life) -> bool:
        recovery = dataflow.Recovery(self.disk, every=life.every, keep=self.plan.keep)
        refused = self.disk.refused_reads + self.disk.claims_failed
        self.disk.noticed = self._watch(life.event)
        try:
            simulate(
                self.main, workers=life.workers, seed=life.seed, turns=2 * TURNS, debug=life.debug,
                scheduler=Starving() if life.starving else None, recovery=recovery, crash_after=life.crash_after,
                watch=Checker(life.seed, self.often),
            )  # fmt: skip
        except Crashed:
            self.happened["crashed"] += 1
        except ChangeNotKept:
            assert self.plan.failing
            self.happened["a change was not kept"] += 1
        except StorageError:
            if self.disk.refused_reads + self.disk.claims_failed == refused:
                raise
            self.happened["could not start"] += 1
        else:
            self.happened["ended"] += 1
            return True
        self.disk.crash()
        self._note()
        self._check()
        return False

    def _check_all(self) -> None:
        for outside in self.outsides:
            outside.check_all()


def run_elastic(seed: int, often: float = 0.02) -> ElasticCase:
    """One program through crashes and changes of the membership: of six one that is drawn, the others small."""
    program, plan = small_program(seed) if seed % 6 else scalable_program(seed), random_plan(seed)
    case = ElasticCase(program, plan, seed)
    case.often = often
    try:
        case.run()
    except Exception as error:
        error.add_note(f"seed {seed}; replay: python -m tests.soak --kind elastic --seed {seed}\n{plan}\n{program}")
        raise
    return case


def states(cases: list[ElasticCase]) -> Counter[str]:
    """What became of all requests."""
    return Counter(change.state for case in cases for change in case.asked)
