"""The main of a recoverable program: builds it, and feeds it from where it goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import trio

import dataflow
import megaphone
from tests.crashes import building, doors
from tests.crashes.description import Control, Feed, Program, Update
from tests.crashes.outside import Outside, WrongRows


async def main(worker: dataflow.Worker, outsides: list[Outside]) -> None:
    """Runs the programs of some outsides on a worker, each in a dataflow of its own."""
    runnings = [Running(worker, outside, alone=len(outsides) == 1) for outside in outsides]
    async with trio.open_nursery() as nursery:
        for running in runnings:
            nursery.start_soon(running.run)


class Running:
    """A program on a worker."""

    def __init__(self, worker: dataflow.Worker, outside: Outside, alone: bool) -> None:
        self.worker, self.outside = worker, outside
        self.program: Program = outside.program
        self._saves = self.program.saves and alone  # what main saves is of its first dataflow
        program = self.program
        self.inputs: list[tuple[Feed, Any]] = []
        self.controls: list[tuple[Control, Any, Any]] = []  # how to say something there, if main feeds it, its handle
        self.probes: list[dataflow.Probe] = []
        self.made: list[Any] = []  # operators that migrate
        self._streams: list[list[Any]] = []
        self._configurations: list[Any] = []
        with worker.dataflow(outside.flow) as scope:
            self._start: int = scope.resume_at
            for number, control in enumerate(program.controls):
                self._configurations.append(self._add_control(scope, control, number))
            for number, node in enumerate(program.nodes):
                self._streams.append(self._add_node(scope, node, f"node {number}"))
            for number, output in enumerate(program.outputs):
                stream = self._streams[output.ref[0]][output.ref[1]]
                self.probes.append(stream.sink(doors.Ledger(outside, number), name=f"sink {number}").probe())

    def _add_control(self, scope: Any, control: Control, number: int) -> Any:
        if control.own:
            handle, stream = scope.input(f"control {number}")
            self.controls.append((control, handle, handle))
            return stream
        stream = scope.control(name=f"control {number}")
        self.controls.append((control, doors.Steering(stream, self.outside), None))
        return stream

    def _add_node(self, scope: Any, node: Any, name: str) -> list[Any]:
        if node.kind == "input":
            return [self._add_feed(scope, self.program.feeds[node.numbers[0]], name)]
        configuration = None if node.control is None else self._configurations[node.control]
        bins = 0 if node.control is None else self.program.controls[node.control].bins
        streams = [self._streams[i][port] for i, port in node.inputs]
        return building.build(node, name, streams, configuration, bins, self.made)

    def _add_feed(self, scope: Any, feed: Feed, name: str) -> Any:
        if feed.kind != "input":
            return scope.source(doors.Kept(feed, self.outside, name), name=name, ahead=2)
        handle, stream = scope.input(name)
        self.inputs.append((feed, handle))
        return stream

    # Feeding it

    async def run(self) -> None:
        """Feeds it, and waits for its end."""
        await self.feed()
        for probe in self.probes:
            await probe.wait_done()
        placed = [
            (each.handle.configuration.tolist(), each.handle.pinned, each.handle.tree.names) for each in self.made
        ]
        self.outside.placed[self.worker.index] = placed

    async def feed(self) -> None:
        """Sends what this worker has to say from where it goes on, epoch by epoch; then ends."""
        start = self._start
        self._check_saved(start)
        if self.program.untimed and start == 0 and self.worker.index == 0:
            for control, steering, _ in self.controls:
                for update in control.updates:  # all at once: what has not had its effect comes back after a crash
                    steering.send([said(update, self.worker.peers)], at=update.at)
        for epoch in range(start, self.program.epochs):
            if epoch in self.program.lazy:
                await trio.sleep(0.25)
            self._say(epoch)
            for probe in self.probes:
                await probe.wait_passed(epoch - self.program.ahead)
        for handle in (*(handle for _, handle in self.inputs), *(own for _, _, own in self.controls if own)):
            handle.close()

    def _say(self, epoch: int) -> None:
        if self._saves:
            self.worker.save({"epoch": epoch, "slots": self._slots()})
        for feed, handle in self.inputs:
            for slot in range(self.worker.index, feed.slots, self.worker.peers):
                for send in feed.of(slot):
                    if send.when == epoch:
                        handle.send(building.payload(feed.form, send.records), at=send.at)
        for control, steering, _ in self.controls:
            for number, update in enumerate(control.updates):
                if update.when == epoch and number % self.worker.peers == self.worker.index:
                    steering.send([said(update, self.worker.peers)], at=update.at)
        for handle in (*(handle for _, handle in self.inputs), *(own for _, _, own in self.controls if own)):
            handle.advance_to(epoch + 1)

    def _slots(self) -> int:
        return sum(len(range(self.worker.index, feed.slots, self.worker.peers)) for feed, _ in self.inputs)

    def _check_saved(self, start: int) -> None:
        """What was saved last before the snapshot comes back: by old worker, its last epoch."""
        if not (self._saves and start and self.inputs):
            return
        for saved in self.worker.saved_by_all.values():
            if not (isinstance(saved, dict) and saved["epoch"] <= start):
                raise WrongRows(f"going on from {start}, and main has saved {saved}")


def said(update: Update, peers: int) -> Any:
    """An update for as many workers as there are."""
    what, *rest = update.what
    if what == "split":
        return megaphone.Split(str(rest[0]), _int(rest[1]))
    if what == "merge":
        return megaphone.Merge(str(rest[0]), None if rest[1] is None else _int(rest[1]) % peers)
    if what in ("move", "pin"):
        return (megaphone.Move if what == "move" else megaphone.Pin)(rest[0], _int(rest[1]) % peers)
    if what == "replan":
        return megaphone.Replan(str(rest[0]), method=str(rest[1]))
    if what == "moves":
        return megaphone.Moves(np.array(rest[0]), np.array(rest[1]) % peers)
    if what == "assign":
        return megaphone.Assign(tuple((np.array(rest[0]) % peers).tolist()))
    return megaphone.Unpin(rest[0])


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
