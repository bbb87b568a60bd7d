"""Supervising workers that have several lives: carries out what `lives` says.

docs/internals/restart.md has the messages. Processes of workers that have ended are replaced by the one that they were
forked from; the others stay, and are told to go back.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

import trio

from dataflow.launch.errand import Anew
from dataflow.launch.lives import (
    Afresh,
    Begin,
    Choose,
    Chosen,
    Done,
    End,
    Happening,
    Instruction,
    Kill,
    Lives,
    Recruit,
    SendBack,
    SendGo,
    Tell,
    Waited,
)
from dataflow.launch.orders import Back, Go
from dataflow.launch.process import Process, Settings
from dataflow.launch.recruiting import dismiss, recruit
from dataflow.launch.starting import Crew, start_anew
from dataflow.launch.verdict import ByWorker, Exited, Failed, Recruits
from dataflow.launch.watching import (
    answer_managers,
    print_output,
    serve_door,
    watch_for_silence,
    watch_process,
    watch_zygote,
)
from dataflow.recovery.beginning import Beginning, Beginnings
from dataflow.run.signal import Signal


@dataclass
class _Attendance:
    """The tasks that attend to one process."""

    process: Process
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    over: trio.Event = field(default_factory=trio.Event)


class Rolling:
    """Supervises the processes of a crew, until the run is over or they must all be started afresh."""

    def __init__(self, crew: Crew, settings: Settings, lives: Lives, beginnings: Beginnings) -> None:
        self._crew = crew
        self._settings = settings
        self._lives = lives
        self._beginnings = beginnings
        self._events: deque[Happening] = deque()
        self._news = Signal()
        self._attended: dict[int, _Attendance] = {}
        self._choosing = trio.Lock()  # one at a time
        self._choice = trio.CancelScope()
        self._beginning: Beginning | None = None
        self._nursery: trio.Nursery

    async def run(self) -> ByWorker | None:
        """The results; None if all processes are to be started afresh. Raises what ends the run."""
        crew, settings = self._crew, self._settings
        assert crew.zygote is not None
        async with trio.open_nursery() as self._nursery:
            start = self._nursery.start_soon
            for printer in (crew.stdout, crew.stderr):
                start(printer.watch)
            for output in crew.zygote.outputs:
                start(print_output, output)
            for process in crew.processes:
                self._attend(process)
            start(watch_zygote, crew, crew.zygote, self._tell)
            start(watch_for_silence, crew, crew.zygote, settings.patience, self._tell)
            start(serve_door, crew)
            start(answer_managers, crew, settings)
            results = await self._carry_on()
            self._nursery.cancel_scope.cancel()
        return results

    def _tell(self, event: Happening) -> None:
        self._events.append(event)
        self._news.set()

    def _recruit(self, event: Recruits) -> None:
        """The leader asks for workers that join, or has no use for them."""
        if event.what == "start" and self._beginning is not None:
            resume = self._beginning.resume.for_joiner().encode()
            for process in recruit(self._crew, event, self._settings.prefix):
                self._attend(process)
                process.say(Go(self._lives.life, resume))
        elif event.what == "dismiss":
            dismiss(self._crew, event)

    async def _carry_on(self) -> ByWorker | None:
        instructions = self._lives.start()
        while True:
            for instruction in instructions:
                if isinstance(instruction, Done):
                    return instruction.results
                if isinstance(instruction, Afresh):
                    return None
                await self._carry_out(instruction)
            instructions = self._lives.handle(await self._next(), time.monotonic())

    async def _next(self) -> Happening:
        while not self._events:
            with trio.move_on_after(max(0.0, self._lives.deadline - time.monotonic())) as waiting:
                await self._news.wait()
            if waiting.cancelled_caught and not self._events:
                return Waited()
        return self._events.popleft()

    async def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, SendBack):
            self._beginnings.failure_seen()
            self._choice.cancel()
            for worker in instruction.workers:
                self._attended[worker].process.say(Back(instruction.life))
        elif isinstance(instruction, Kill):
            self._kill(instruction)
        elif isinstance(instruction, Begin):
            await self._begin(instruction)
        elif isinstance(instruction, Choose):
            self._nursery.start_soon(self._choose, instruction)
        elif isinstance(instruction, SendGo):
            self._go(instruction)
        elif isinstance(instruction, Recruit):
            self._recruit(instruction.wanted)
        elif isinstance(instruction, Tell):
            self._say(instruction)
        elif isinstance(instruction, End):
            raise instruction.error

    # A life begins

    async def _begin(self, begin: Begin) -> None:
        for worker in begin.replaced:
            await self._leave(worker)
        start_anew(self._crew, Anew(begin.life, begin.replaced), self._settings.prefix)
        for process in self._crew.processes:
            if process.index in begin.replaced:
                self._attend(process)

    async def _choose(self, choose: Choose) -> None:
        with trio.CancelScope() as scope:
            async with self._choosing:
                self._choice = scope
                if choose.life != self._lives.life:
                    return
                try:
                    self._beginning = await self._beginnings.choose(choose.older)
                except Exception as error:  # the policy says whether there is a point in trying again
                    self._tell(Failed(None, error, unbuilt=True))
                else:
                    self._tell(Chosen(choose.life))

    def _go(self, go: SendGo) -> None:
        assert self._beginning is not None
        resume = self._beginning.resume.encode()
        for attendance in self._attended.values():
            attendance.process.say(Go(go.life, resume))

    def _say(self, tell: Tell) -> None:
        where = f", from {self._beginning.title}" if tell.begins and self._beginning is not None else ""
        for reason in tell.reasons:
            self._crew.stderr.put(f"dataflow: {reason}{where}\n")

    # Processes

    def _attend(self, process: Process) -> None:
        self._attended[process.index] = attendance = _Attendance(process)
        self._nursery.start_soon(self._attend_to, attendance)

    async def _attend_to(self, attendance: _Attendance) -> None:
        with attendance.scope:
            async with trio.open_nursery() as nursery:
                for output in attendance.process.outputs:
                    nursery.start_soon(print_output, output)
                nursery.start_soon(watch_process, attendance.process, self._tell)
        attendance.over.set()

    async def _leave(self, worker: int) -> None:
        """Ends our side of the connections with a process that has ended."""
        attendance = self._attended.pop(worker)
        attendance.scope.cancel()
        await attendance.over.wait()
        for output in attendance.process.outputs:
            output.drain(whole=True)
            output.close()
        attendance.process.control.close()

    def _kill(self, kill: Kill) -> None:
        for worker in kill.workers:
            process = self._attended[worker].process
            process.kill()
            if process.pid is None:  # it could not be started
                self._tell(Exited(worker, -9))
