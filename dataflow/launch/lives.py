"""The lives of a run with recovery: who goes back when somebody fails, and when the next life begins. Pure.

docs/internals/restart.md has the states and what must hold. Events in, instructions out: `rolling` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from dataflow.errors import WorkerFailed
from dataflow.launch.verdict import ByWorker, Event, Exited, Failed, Idle, Orphaned, Recruits, Verdict
from dataflow.recovery.restarts import Enough, Older, Restarts, explain_decision


@dataclass(frozen=True, slots=True)
class Chosen:
    """The snapshot for a life has been chosen and claimed."""

    life: int


@dataclass(frozen=True, slots=True)
class Waited:
    """The deadline has passed."""


Happening: TypeAlias = Event | Chosen | Waited


@dataclass(frozen=True, slots=True)
class Choose:
    """Choose and claim a snapshot for a life, and say `Chosen`. `older`: one before the last that was chosen."""

    life: int
    older: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """Fork these workers, and connect all for a life."""

    life: int
    replaced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SendBack:
    """Tell these workers to go back and to get ready for a life."""

    workers: tuple[int, ...]
    life: int


@dataclass(frozen=True, slots=True)
class Kill:
    """These workers do not answer."""

    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SendGo:
    """Tell all workers to begin a life."""

    life: int


@dataclass(frozen=True, slots=True)
class Recruit:
    """Start workers that join those that run, or end ones that have not joined."""

    wanted: Recruits


@dataclass(frozen=True, slots=True)
class Tell:
    """Failures that have not been told: one line for each, without where all go on from, if they do (`begins`)."""

    reasons: tuple[str, ...]
    begins: bool


@dataclass(frozen=True, slots=True)
class Afresh:
    """End what is left, and start all processes for that life: the process that workers are forked from is gone, or
    there are to be other workers than at first."""

    life: int
    workers: int


@dataclass(frozen=True, slots=True)
class End:
    """The run has failed, and that is how."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Done:
    """All workers have returned."""

    results: ByWorker


Instruction: TypeAlias = Choose | Begin | SendBack | Kill | SendGo | Recruit | Tell | Afresh | End | Done


class Lives:
    """The state of a run. `deadline`: when `Waited` is due; times are seconds of any clock that does not stop."""

    def __init__(
        self, workers: range, restarts: Restarts, patience: float, grace: float, replace: bool = True
    ) -> None:
        """`replace`: whether a worker whose process has died is replaced."""
        self.workers = workers
        self._replace = replace
        self._restarts = restarts
        self._patience = patience  # how long workers may take to go back
        self._grace = grace  # how long to wait for the cause of a connection's loss
        self.life = 1
        self.deadline = inf
        self._verdict = Verdict(workers)
        self._scaled = False  # whether workers have joined or left in this life, or were about to
        self._older = False  # whether the last snapshot that was chosen is damaged
        self._reasons: list[str] = []  # of failures that have not been told
        self._back = False  # whether all have been told to go back, and not all have
        self._awaited: set[int] = set()  # invariant: empty unless `_back`; those who are neither idle nor gone
        self._gone: set[int] = set()  # those whose processes have ended, in this life

    def start(self) -> list[Instruction]:
        """All processes are being started, for `life`."""
        self._verdict = Verdict(self.workers)
        self._scaled = False
        self._back, self._awaited, self._gone = False, set(), set()
        self.deadline = inf
        return [Choose(self.life, self._older)]

    def handle(self, event: Happening, now: float) -> list[Instruction]:
        """What is to be done because of an event."""
        if isinstance(event, Chosen):
            return self._chosen(event)
        if isinstance(event, Exited):
            self._gone.add(event.worker)
        if isinstance(event, Orphaned):
            return self._fail(event.error, now, afresh=True)
        return self._while_back(event, now) if self._back else self._while_running(event, now)

    def _chosen(self, event: Chosen) -> list[Instruction]:
        if event.life != self.life or self._back:
            return []  # that life is over
        self._older = False
        reasons, self._reasons = tuple(self._reasons), []
        told: list[Instruction] = [Tell(reasons, True)] if reasons else []
        return [*told, SendGo(self.life)]

    # While a life is lived

    def _while_running(self, event: Event | Waited, now: float) -> list[Instruction]:
        verdict = self._verdict
        if isinstance(event, Recruits):
            verdict.handle(event)
            self._scaled = True
            return [Recruit(event)]
        if isinstance(event, Waited):
            verdict.give_up_waiting()
        else:
            verdict.handle(event)
        if verdict.error is not None:
            unbuilt = self.life == 1 and verdict.unbuilt
            choosing = isinstance(event, Failed) and event.worker is None
            return self._fail(verdict.error, now, unbuilt=unbuilt, choosing=choosing)
        if verdict.complete:
            return [Done(verdict.results)]
        if verdict.suspicious:
            self.deadline = min(self.deadline, now + self._grace)
        return []

    def _fail(
        self,
        error: BaseException,
        now: float,
        *,
        unbuilt: bool = False,
        choosing: bool = False,
        afresh: bool = False,
    ) -> list[Instruction]:
        """A failure that is no consequence of another."""
        decision = self._restarts.decide(error, now, unbuilt=unbuilt, choosing=choosing)
        if isinstance(decision, Enough):
            if decision.why:
                error.add_note(decision.why)
            told: list[Instruction] = [Tell(tuple(self._reasons), False)] if self._reasons else []
            return [*told, End(error)]
        self._reasons.append(explain_decision(error, decision))
        self._older = self._older or isinstance(decision, Older)
        count = self._next_count(error)
        if afresh or count is not None:
            self.life += 1
            self.workers = range(count or len(self.workers))
            return [Afresh(self.life, len(self.workers))]
        return [] if self._back else self._go_back(now)

    def _next_count(self, error: BaseException) -> int | None:
        """How many workers the next life has, if it is not to have the same processes: some have joined or left, or one
        has died and is not replaced."""
        members = self._verdict.members
        count = len(members)
        if not self._replace and isinstance(error, WorkerFailed) and error.worker in members:
            count -= 1
        return max(1, count) if self._scaled or count < len(members) else None

    def _go_back(self, now: float) -> list[Instruction]:
        self.life += 1
        self._back = True
        self._awaited = set(self.workers) - self._gone
        self.deadline = now + self._patience
        return [SendBack(tuple(sorted(self._awaited)), self.life), *self._begin_if_all_are_back()]

    # While all go back

    def _while_back(self, event: Event | Waited, now: float) -> list[Instruction]:
        instructions: list[Instruction] = []
        if isinstance(event, Waited):
            self.deadline = inf
            return [Kill(tuple(sorted(self._awaited)))]
        if isinstance(event, Idle):
            self._awaited.discard(event.worker)
        elif isinstance(event, Exited):
            if event.worker not in self._awaited:  # it was idle: this is nobody else's fault
                instructions = self._fail(Verdict.obituary(event), now)
            self._awaited.discard(event.worker)
        elif isinstance(event, Failed) and not isinstance(event.error, Exception):
            return [End(event.error)]  # it was told to end, and so are all
        if instructions:
            return instructions
        return self._begin_if_all_are_back()

    def _begin_if_all_are_back(self) -> list[Instruction]:
        if self._awaited:
            return []
        replaced, self._gone = tuple(sorted(self._gone)), set()
        self._back = False
        self._verdict = Verdict(self.workers)
        self.deadline = inf
        return [Begin(self.life, replaced), Choose(self.life, self._older)]
