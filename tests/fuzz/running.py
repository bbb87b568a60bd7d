"""Builds, feeds and runs the program of a description, and compares what comes out with what it means."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import dataflow
import megaphone
from dataflow.testing import Starving, simulate
from tests.fuzz import build_columns, build_rows, build_state, direct
from tests.fuzz.description import (
    COLUMNS,
    ROWS,
    Control,
    Feed,
    Flow,
    Node,
    Program,
    Ref,
    Send,
    Update,
    replayed,
    stages,
)
from tests.fuzz.generating import random_program

Found = tuple[int, Ref, int, int, int]  # dataflow, stream, time, key, value
STRATEGIES = (megaphone.all_at_once, megaphone.fluid, lambda: megaphone.batched(2, gap=1), megaphone.matched)


class WrongRows(AssertionError):
    """What came out is not what the description means."""


# --------------------------------------------------------------------------------------------------------- one dataflow


class Running:
    """A dataflow on a worker: its inputs, its controls, and what came out of it here."""

    def __init__(self, worker: dataflow.Worker, program: Program, number: int, earlier: dict[int, Running]) -> None:
        self.program, self.number, self.flow = program, number, program.flows[number]
        self.worker = worker
        self._replayed = replayed(program, number)
        self.found: list[Found] = []
        self.late: list[Found] = []
        self.captured: dict[Ref, list[Any]] = {}
        self.probes: list[dataflow.Probe] = []
        self.inputs: list[tuple[Feed, Any]] = []
        self.controls: list[Any] = []  # a handle, and the controller that drives it if there is one
        self._streams: list[list[Any]] = []
        with worker.dataflow(f"flow {number}") as scope:
            self._configurations = [self._add_control(scope, c) for c in self.flow.controls]
            for node in self.flow.nodes:
                self._streams.append(self._build(scope, node, earlier))
            for ref in self.flow.watched:
                self._watch(ref)

    def _add_control(self, scope: Any, control: Control) -> Any:
        handle, stream = scope.input("control")
        self.controls.append([handle, None])
        return stream

    def _build(self, scope: Any, node: Node, earlier: dict[int, Running]) -> list[Any]:
        streams = [self._streams[i][port] for i, port in node.inputs]
        if node.kind == "input":
            return [self._add_input(scope, self.flow.feeds[node.numbers[0]])]
        if node.kind == "replay":
            return [self._replay(scope, node, earlier)]
        if node.kind == "partition":
            return build_rows.partition(streams[0], node.numbers[0])
        if node.kind == "concat":
            return [streams[0].concat(*streams[1:])]
        rooms: Any = build_rows if node.form == ROWS else build_columns
        if node.kind == "join":
            return [rooms.join(*streams)]
        if node.kind in build_state.KINDS:
            return [self._build_state(node, streams)]
        return [rooms.UNARY[node.kind](streams[0], node.numbers)]

    def _build_state(self, node: Node, streams: list[Any]) -> Any:
        control = None if node.control is None else self.flow.controls[node.control]
        configuration = None if node.control is None else self._configurations[node.control]
        handle, stream = build_state.build(node, streams, control, configuration, self.program.compiled)
        if control is not None and control.controller:
            assert node.control is not None
            entry = self.controls[node.control]
            entry[1] = megaphone.Controller(entry[0], handle, lead=control.lead)
        return stream

    def _add_input(self, scope: Any, feed: Feed) -> Any:
        if feed.kind == "source":
            return scope.source([(s.at, payload(feed, s)) for s in self._mine(feed.sends)], timed=True)
        handle, stream = scope.input() if feed.kind == "input" else scope.unordered_input()
        self.inputs.append((feed, handle))
        return stream

    def _mine(self, sends: tuple[Send, ...]) -> list[Send]:
        return sorted((s for s in sends if s.worker == self.worker.index), key=lambda s: s.at)

    def _replay(self, scope: Any, node: Node, earlier: dict[int, Running]) -> Any:
        source, number, port, encoded = node.numbers
        events = earlier[source].captured[number, port]
        if encoded:
            file = io.BytesIO()
            writer = dataflow.EventWriter(file)
            for event in events:
                writer.write(event)
            file.seek(0)
            events = list(dataflow.read_events(file))
        return scope.replay(events)

    def _watch(self, ref: Ref) -> None:
        stream = self._streams[ref[0]][ref[1]]
        self.captured[ref] = []
        columns = self.flow.nodes[ref[0]].form == COLUMNS
        place = len(self.probes)

        def note(time: int, batch: Any) -> None:
            rows = zip(batch["k"].tolist(), batch["v"].tolist(), strict=True) if columns else batch
            found = [(self.number, ref, time, int(k), int(v)) for k, v in rows]
            self.found += found
            if place < len(self.probes) and self.probes[place].passed(time):
                self.late += found

        if ref in self._replayed:
            stream = stream.capture(self.captured[ref].append)
        self.probes.append(stream.inspect_batch(note).probe())

    @property
    def captured_whole(self) -> bool:
        """Whether the frontier of everything that is replayed later is empty."""
        events = [self.captured[ref] for ref in self._replayed]
        changes = [[diff for event in each for _, diff in getattr(event, "changes", ())] for each in events]
        return all(1 + sum(each) == 0 for each in changes)

    # Feeding it

    def feed(self, epoch: int, advance: bool) -> None:
        """Sends what this worker has to say in an epoch."""
        for feed, handle in self.inputs:
            for send in self._mine(feed.sends):
                if send.when == epoch:
                    self._send(feed, handle, send)
            if advance:
                _advance(feed, handle, epoch + 1)
        for control, (handle, controller) in zip(self.flow.controls, self.controls, strict=True):
            for update in control.updates:
                if update.worker == self.worker.index and update.when == epoch:
                    _say(handle, controller, update)
            if advance:
                (controller or handle).advance_to(epoch + 1)

    def _send(self, feed: Feed, handle: Any, send: Send) -> None:
        if feed.kind == "input":
            handle.send(payload(feed, send), at=send.at)
        else:
            with handle.capability.delayed(send.at) as capability:
                handle.send(payload(feed, send), capability)

    def close(self) -> None:
        """Ends all inputs."""
        for handle in (*(handle for _, handle in self.inputs), *(handle for handle, _ in self.controls)):
            handle.close()


def payload(feed: Feed, send: Send) -> Any:
    """The records of a send, in the form of its input."""
    return list(send.records) if feed.form == ROWS else build_rows.columns_of(send.records)


def _advance(feed: Feed, handle: Any, time: int) -> None:
    if feed.kind == "input":
        handle.advance_to(time)
    else:
        handle.capability.downgrade(time)


def _say(handle: Any, controller: Any, update: Update) -> None:
    what, *rest = update.what
    if what == "migrate":
        to, strategy, pins = rest
        if not controller.busy:
            controller.migrate(to=to, strategy=STRATEGIES[strategy](), pins=dict(pins) or None)
        return
    made: Any = {
        "move": megaphone.Move,
        "moves": lambda bins, workers: megaphone.Moves(np.array(bins), np.array(workers)),
        "assign": megaphone.Assign,
        "pin": megaphone.Pin,
        "unpin": megaphone.Unpin,
    }[str(what)]
    handle.send([made(*rest)], at=update.at)


# ----------------------------------------------------------------------------------------------------------- a program


async def main(worker: dataflow.Worker, program: Program) -> tuple[list[Found], list[Found]]:
    """Runs the program on a worker: what came out here, and what of that came too late."""
    done: dict[int, Running] = {}
    for numbers in stages(program):
        flows = [Running(worker, program, number, done) for number in numbers]
        await _feed(program, flows)
        for flow in flows:
            flow.close()
        for flow in flows:
            for probe in flow.probes:
                await probe.wait_done()
            while not flow.captured_whole:  # the last event of a capture may come after a probe behind it is done
                await worker.step()
            done[flow.number] = flow
    return [f for flow in done.values() for f in flow.found], [f for flow in done.values() for f in flow.late]


async def _feed(program: Program, flows: list[Running]) -> None:
    for epoch in range(program.epochs):
        advance = epoch not in program.lazy
        for flow in flows:
            flow.feed(epoch, advance)
        if advance:
            for flow in flows:
                for probe in flow.probes:
                    await probe.wait_passed(epoch - program.ahead)


def check(program: Program, results: list[tuple[list[Found], list[Found]]]) -> None:
    """WrongRows, with the difference, unless the workers' results together are what the program means."""
    meaning = direct.evaluate(program)
    late = [found for _, lates in results for found in lates]
    if late:
        raise WrongRows(f"after its time was over: (dataflow, stream, time, key, value) {late[:5]}")
    found: dict[tuple[int, Ref], Counter[Any]] = {}
    for rows, _ in results:
        for number, ref, *row in rows:
            found.setdefault((number, ref), Counter())[tuple(row)] += 1
    for number, flow in enumerate(program.flows):
        for ref in flow.watched:
            wanted = direct.expected(program, number, ref, meaning)
            got = found.get((number, ref), Counter())
            if got != wanted:
                raise WrongRows(_difference(flow, number, ref, got, wanted))


def _difference(flow: Flow, number: int, ref: Ref, got: Counter[Any], wanted: Counter[Any]) -> str:
    missing, extra = sorted((wanted - got).elements())[:6], sorted((got - wanted).elements())[:6]
    node = flow.nodes[ref[0]]
    return (
        f"dataflow {number}, stream {ref} ({node.kind} of {node.form}): of {wanted.total()} (time, key, value) "
        f"missing {missing}, not expected {extra}"
    )


# ------------------------------------------------------------------------------------------------------- ways to run it


@dataclass(frozen=True)
class Way:
    """How a program is run: "simulated", "starving", "in process" or "processes"."""

    kind: str
    seed: int = 0
    debug: bool = False

    def __call__(self, program: Program) -> None:
        """Runs the program and compares."""
        if self.kind in ("simulated", "starving"):
            scheduler = Starving() if self.kind == "starving" else None
            results = simulate(
                main, program, workers=program.peers, seed=self.seed, debug=self.debug, scheduler=scheduler
            )
        else:
            here = self.kind == "in process"
            results = dataflow.execute(main, program, workers=program.peers, in_process=here, debug=self.debug)
        check(program, results)


def random_way(seed: int) -> Way:
    """Mostly simulated, with and without starving; sometimes as users run programs."""
    chance = Random(f"way {seed}")
    (kind,) = chance.choices(("simulated", "starving", "in process", "processes"), weights=(46, 40, 12, 2))
    return Way(kind, seed, chance.random() < 0.15)


def run_case(seed: int) -> None:
    """One random program in one random way. What fails names its seed and the smallest program that still fails."""
    program, way = random_program(seed), random_way(seed)
    try:
        way(program)
    except Exception as error:
        from tests.fuzz.shrinking import shrink

        smaller = shrink(program, way, error)
        error.add_note(f"seed {seed}, {way}; a small program that fails in the same way:\n{smaller}")
        raise
