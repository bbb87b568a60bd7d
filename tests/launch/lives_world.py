"""Worlds in which the state machine of lives is tried out: workers, a zygote and a storage that do what they like.

Messages keep their order between two parties, and otherwise arrive at any time. `World.run` checks what must hold
(docs/internals/restart.md) at each instruction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random

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
    SendBack,
    SendGo,
    Tell,
    Waited,
)
from dataflow.launch.verdict import Exited, Failed, Idle, Lost, Orphaned, Returned
from dataflow.recovery.manifest import SnapshotDamaged
from dataflow.recovery.storage import StorageError

PATIENCE, GRACE = 5.0, 2.0


@dataclass
class Actor:
    """A worker's process."""

    life: int  # that it is in, or gets ready for
    alive: bool = True
    idle: bool = False  # ready for its life, and not told to begin
    stuck: bool = False  # it does not hear what it is told
    orders: deque[SendBack | SendGo] = field(default_factory=deque)
    said: deque[Happening] = field(default_factory=deque)  # and not heard


class World:
    """Chance decides what happens next; `gloom` is how likely it is to be bad."""

    def __init__(self, seed: int, make: Callable[[range], Lives], workers: int = 3, gloom: float = 0.05) -> None:
        self.chance = Random(seed)
        self.workers = range(workers)
        self.lives = make(self.workers)
        self.gloom = gloom
        self.now = 0.0
        self.actors: dict[int, Actor] = {}
        self.choices: deque[Choose] = deque()
        self.zygote: deque[Happening] = deque()
        self.zygote_alive = True
        self.told: list[str] = []
        self.sent: set[tuple[str, int, int]] = set()  # orders, by kind, worker and life
        self.claimed: set[int] = set()  # lives whose choice was heard
        self.ended: Done | End | None = None

    def run(self, most: int = 5000) -> Done | End:
        """Lets things happen until the run has ended."""
        self._start_all()
        for _ in range(most):
            happenings = self._possible()
            assert happenings, "nothing can happen any more, and the run has not ended"
            self.chance.choice(happenings)()
            if self.ended is not None:
                return self.ended
        raise AssertionError("the run does not end")

    def _start_all(self) -> None:
        self.zygote_alive, self.zygote = True, deque()
        self.actors = {worker: Actor(self.lives.life, idle=True) for worker in self.workers}
        self.choices.clear()
        self._obey(self.lives.start())

    # What could happen next

    def _possible(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        for worker, actor in self.actors.items():
            if actor.said:
                found.append(lambda a=actor: self._hear(a.said.popleft()))  # type: ignore[misc]
            if actor.alive and not actor.stuck:
                if actor.orders:
                    found.append(lambda w=worker: self._act(w))  # type: ignore[misc]
                elif not actor.idle:
                    found.append(lambda w=worker: self._return(w))  # type: ignore[misc]
            if actor.alive and self.chance.random() < self.gloom:
                found.append(lambda w=worker: self._hurt(w))  # type: ignore[misc]
        if self.zygote:
            found.append(lambda: self._hear(self.zygote.popleft()))
        elif self.zygote_alive and self.chance.random() < self.gloom / 5:
            found.append(self._kill_zygote)
        if self.choices:
            found.append(self._choose)
        if self.lives.deadline < inf and (not found or self.chance.random() < 0.02):
            found.append(self._wait)
        return found

    def _return(self, worker: int) -> None:
        actor = self.actors[worker]
        actor.said += [Returned(worker, actor.life), Exited(worker, 0)]
        actor.alive = False

    def _act(self, worker: int) -> None:
        actor = self.actors[worker]
        order = actor.orders.popleft()
        if isinstance(order, SendBack):
            actor.life, actor.idle = order.life, True
            actor.said.append(Idle(worker, order.life))
        else:
            assert order.life == actor.life, "told to begin another life than it got ready for"
            actor.idle = False

    def _hurt(self, worker: int) -> None:
        actor = self.actors[worker]
        how = self.chance.randrange(5)
        if how == 0:
            actor.stuck = True
            actor.said.append(Lost(worker, (worker + 1) % len(self.workers)))
            return
        if how == 1:
            actor.said.append(Failed(worker, ValueError("bad")))
        elif how == 2 and not actor.idle:
            actor.said.append(Failed(worker, SnapshotDamaged("torn")))
        actor.said.append(Exited(worker, 0 if how == 3 else -9))  # 0: main has called os._exit
        actor.alive = False

    def _kill_zygote(self) -> None:
        self.zygote_alive = False
        for actor in self.actors.values():
            actor.alive = False
        self.zygote.append(Orphaned(RuntimeError("the zygote is gone")))

    def _choose(self) -> None:
        choose = self.choices.popleft()
        if self.chance.random() < self.gloom and choose.life > 1:
            self._hear(Failed(None, StorageError("away"), unbuilt=True))
        else:
            self.claimed.add(choose.life)
            self._hear(Chosen(choose.life))

    def _wait(self) -> None:
        self.now = max(self.now, self.lives.deadline)
        self._hear(Waited())

    # What follows

    def _hear(self, event: Happening) -> None:
        self.now += self.chance.random() / 100
        self._obey(self.lives.handle(event, self.now))

    def _obey(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            assert self.ended is None, "something is to be done after the end"
            if isinstance(instruction, Done | End):
                self._check_end(instruction)
                self.ended = instruction
            elif isinstance(instruction, Afresh):
                assert not self.zygote_alive
                self._start_all()
            elif isinstance(instruction, Tell):
                self.told += instruction.reasons
            elif isinstance(instruction, Choose):
                assert instruction.life == self.lives.life
                self.choices.append(instruction)
            elif isinstance(instruction, Begin):
                self._begin(instruction)
            elif isinstance(instruction, Kill):
                self._kill(instruction)
            else:
                self._send(instruction)

    def _check_end(self, ended: Done | End) -> None:
        if isinstance(ended, Done):
            life = self.lives.life
            assert ended.results == dict.fromkeys(self.workers, life), "results of another life"

    def _send(self, order: SendBack | SendGo) -> None:
        kind = type(order).__name__
        workers = order.workers if isinstance(order, SendBack) else tuple(self.workers)
        if isinstance(order, SendGo):
            assert order.life in self.claimed, "nothing was chosen for this life"
        for worker in workers:
            assert (kind, worker, order.life) not in self.sent, "told twice"
            self.sent.add((kind, worker, order.life))
            self.actors[worker].orders.append(order)

    def _begin(self, begin: Begin) -> None:
        for worker, actor in self.actors.items():
            if worker in begin.replaced:
                assert not actor.alive and not actor.said, "a process is replaced that has not ended"
                self.actors[worker] = Actor(begin.life, idle=True)
            else:
                ready = actor.life == begin.life and actor.idle and not any(isinstance(e, Idle) for e in actor.said)
                assert ready or not actor.alive, "a life begins before all have gone back"

    def _kill(self, kill: Kill) -> None:
        for worker in kill.workers:
            actor = self.actors[worker]
            if actor.alive:
                actor.alive = False
                actor.said.append(Exited(worker, -9))
