"""Runs a random program to its end through random crashes, and judges what the outside sees of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import dataflow
from dataflow.recovery.storage import StorageError
from dataflow.testing import Crashed, Starving, simulate
from tests.crashes.description import Program
from tests.crashes.disk import Disk
from tests.crashes.generating import random_program
from tests.crashes.outside import Outside
from tests.crashes.running import main

TURNS = 60_000  # more are taken for a program that does not end


EVENTS = ("putting a file", "put a file", "putting a manifest", "put a manifest", "preparing", "committing")
EVENTS += ("committed", "reading", "deleting")


@dataclass(frozen=True)
class Life:
    """One start of a program: with how many workers, which seed, and until when: a turn, or the so manieth event of a
    kind; neither: to its end."""

    workers: int
    seed: int
    crash_after: int | None = None
    event: tuple[str, int] | None = None
    every: float = 1e-6
    starving: bool = False
    debug: bool = False


@dataclass(frozen=True)
class Plan:
    """What happens to a program."""

    lives: tuple[Life, ...]  # the last one is not crashed
    failing: float  # how often the storage and the sinks fail
    keep: int = 2
    again: bool = False  # whether it is started once more after its end


def random_plan(seed: int) -> Plan:
    """Crashes at random turns and at moments of interest, some in a row, each time with another number of workers."""
    chance = Random(f"crashes {seed}")
    lives: list[Life] = []
    workers = (chance.choice((2, 3)),) if chance.random() < 0.3 else (1, 2, 2, 3)
    for _ in range(chance.choice((1, 1, 2, 2, 3, 4))):
        life = _life(chance, seed * 100 + len(lives), workers)
        if chance.random() < 0.3:
            life = replace(life, crash_after=chance.choice((chance.randrange(1, 100), chance.randrange(50, 600))))
        else:
            life = replace(life, event=(chance.choice(EVENTS), chance.choice((1, 1, 2, 2, 3, 5, 8))))
        lives.append(life)
    lives.append(_life(chance, seed * 100 + len(lives), workers))
    failing, keep = chance.choice((0.0, 0.0, 0.03, 0.15)), chance.choice((1, 2, 3))
    return Plan(tuple(lives), failing, keep, again=chance.random() < 0.1)


def _life(chance: Random, seed: int, workers: tuple[int, ...]) -> Life:
    every, starving = chance.choice((1e-6, 1e-6, 1e-6, 0.1, 1.0)), chance.random() < 0.2
    return Life(chance.choice(workers), seed, every=every, starving=starving, debug=chance.random() < 0.1)


class Case:
    """A program, its storage and its outside, through all its lives."""

    def __init__(self, programs: Sequence[Program], plan: Plan, seed: int) -> None:
        self.plan = plan
        chance = Random(f"outside {seed}")
        self.disk = Disk(chance, plan.failing)
        names = zip(("flow", "other"), programs, strict=False)
        self.outsides = [Outside(program, self.disk, chance, plan.failing, name) for name, program in names]
        self.happened: Counter[str] = Counter()  # for those who ask whether cases get everywhere

    def run(self) -> None:
        """All lives, then what is there at the end."""
        for life in self.plan.lives:
            if self._live(life):
                break
        else:
            self._live_quietly(self.plan.lives[-1])
        self._check_all()
        if self.plan.again:
            self._live_quietly(self.plan.lives[0])
            self._check_all()

    def _live_quietly(self, life: Life) -> None:
        """A life without crashes and failures, so that there is an end."""
        self.disk.failing = 0.0
        for outside in self.outsides:
            outside.failing = 0.0
        ended = self._live(Life(life.workers, life.seed + 50, every=life.every))
        assert ended, "a life without failures does not end"

    def _live(self, life: Life) -> bool:
        """One life; whether it came to its end."""
        recovery = dataflow.Recovery(self.disk, every=life.every, keep=self.plan.keep)
        refused = self.disk.refused_reads + self.disk.claims_failed
        self.disk.noticed = self._watch(life.event)
        try:
            simulate(
                main, self.outsides, workers=life.workers, seed=life.seed, turns=TURNS, debug=life.debug,
                scheduler=Starving() if life.starving else None, recovery=recovery, crash_after=life.crash_after,
            )  # fmt: skip
        except Crashed:
            self.happened["crashed"] += 1
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

    def _watch(self, event: tuple[str, int] | None) -> Callable[[str], None]:
        left = 0 if event is None else event[1]

        def noticed(what: str) -> None:
            nonlocal left
            left -= event is not None and what == event[0]
            if event is not None and left == 0:
                self.happened[f"crashed when {what}"] += 1
                raise Crashed(f"the {event[1]}. time of {what}")

        return noticed

    def _check(self) -> None:
        for outside in self.outsides:
            for number in range(len(outside.sinks)):
                outside.check(number)

    def _check_all(self) -> None:
        workers = {life.workers for life in self.plan.lives}
        for outside in self.outsides:
            outside.check_all()
            steered = outside.program.untimed or "by hand" in outside.program.kinds  # or main may never have said it
            if len(workers) == 1 and steered and not outside.unheard:
                outside.check_placement(*workers)

    def _note(self) -> None:
        for what in self.disk.torn:
            self.happened[f"crashed while {what} was written"] += 1
        self.disk.torn.clear()
        self.happened["after a snapshot" if self.disk.acknowledged else "before a snapshot"] += 1


def run_case(seed: int) -> None:
    """One random program through random crashes."""
    programs, plan = random_programs(seed), random_plan(seed)
    try:
        Case(programs, plan, seed).run()
    except Exception as error:
        told = "\n".join(map(str, programs))
        error.add_note(f"seed {seed}; replay: python -m tests.soak --kind crashes --seed {seed}\n{plan}\n{told}")
        raise


def random_programs(seed: int) -> list[Program]:
    """One program; sometimes two, side by side, each with snapshots of its own."""
    return [random_program(seed), *([random_program(seed + 1)] if seed % 12 == 0 else [])]
