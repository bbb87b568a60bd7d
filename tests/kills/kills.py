"""Rounds of kill -9: of a worker, of all, of the supervisor, at random moments of a real run, which then goes on.

A round is one kill. A case is one program that is killed several times, and started again when its supervisor was;
then it is left alone until it ends, and what it wrote is compared with what a few lines of Python say.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from tests.kills import killed_query
from tests.launch.arena import Arena, Program, wait_until
from tests.nexmark.runs import WINDOWS, answer

PROGRAMS = ("sqlite", "files", "q3", "q4", "q5", "q6", "q7", "q8")
LINES = 100  # that a run prints, at least
WITHIN = 60.0  # seconds, on a machine that may be busy


def run_case(seed: int) -> None:
    """One program, killed several times, in a folder of its own."""
    chance = Random(f"kills {seed}")
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder))
        try:
            Case(arena, PROGRAMS[seed % len(PROGRAMS)], chance).run()
            settled(arena)
        except BaseException as error:
            error.add_note(f"killed with seed {seed}; replay: python -m tests.soak --kind kills --seed {seed}")
            raise
        finally:
            arena.clear()


class Case:
    """One program and its life."""

    def __init__(self, arena: Arena, name: str, chance: Random) -> None:
        self.arena, self.name, self.chance = arena, name, chance
        self.target = arena.folder / ("out.db" if name == "sqlite" else "out")
        self.state = arena.folder / "state"
        if name in ("sqlite", "files"):
            self.words = write_words(arena.folder / "text", chance)
        self.said: list[str] = []
        self.killed = 0

    def run(self) -> None:
        """Kills it some times, lets it end, and compares."""
        program, victims = self._start(), self._victims()
        for victim in victims:
            self._wait(program, self.chance.randrange(LINES // len(victims)))
            if program.process.poll() is not None:
                break  # it has ended before we were ready
            self.killed += 1
            if self._kill(program, victim):
                program.end(WITHIN)
                self.said.append(f"{victim} killed: {program.err[-2000:]}")
                settled(self.arena)
                program = self._start()
        self._end(program)
        if self.name in ("sqlite", "files"):
            self._end(self._start())  # there is nothing left to do

    def _end(self, program: Program) -> None:
        ended = program.end(WITHIN)
        assert ended.status == 0, f"{self.name}: status {ended.status}\n{ended.err[-4000:]}\n{self.said}"
        self._compare()

    def _victims(self) -> list[str]:
        """Who is killed: forty rounds of all programs together. Most are quick to come back; a start takes seconds."""
        whole = ["all", "supervisor"]
        if self.name in ("sqlite", "files"):
            victims = ["worker"] * 5 + [*whole, self.chance.choice(whole)]
        else:
            victims = ["worker"] * 3 + [self.chance.choice(whole)]
        return self.chance.sample(victims, len(victims))

    def _start(self) -> Program:
        workers = self.chance.choice((2, 2, 3))
        if self.name in ("sqlite", "files"):
            program, arguments = "word_count", [str(self.arena.folder / "text"), str(self.target)]
        else:
            program, arguments = "killed_query", [self.name, "400", str(self.target)]
        command = [sys.executable, "-m", f"tests.kills.{program}", str(workers), str(self.state), *arguments]
        return self.arena.start(command)

    def _wait(self, program: Program, lines: int) -> None:
        """Waits until it has printed so many more lines, or has ended."""
        before = program.out.count("line")
        done = lambda: program.out.count("line") >= before + lines or program.process.poll() is not None  # noqa: E731
        wait_until(done, f"{lines} lines of {self.name}", WITHIN)

    def _kill(self, program: Program, victim: str) -> bool:
        """Kills; whether the whole program is gone."""
        workers = program.children()
        if victim == "worker" and len(workers) > 1:
            victims = [self.chance.choice(workers)]
        elif victim == "supervisor" or not workers:
            victims = [program.pid]
        else:
            victims = list(self.arena.processes())
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return program.pid in victims

    # What it wrote

    def _compare(self) -> None:
        found, expected = self._found(), self._expected()
        missing, extra = expected - found, found - expected
        assert found == expected, f"{self.name}: missing {[*missing][:5]}, not expected {[*extra][:5]}\n{self.said}"

    def _found(self) -> Counter[tuple[Any, ...]]:
        if self.name == "sqlite":
            with sqlite3.connect(self.target) as connection:
                return Counter(connection.execute("select word, total from totals").fetchall())
        rows = [json.loads(line) for path in shown(self.target) for line in path.read_text().splitlines()]
        return Counter(tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows)

    def _expected(self) -> Counter[tuple[Any, ...]]:
        if self.name == "sqlite":
            return Counter(self.words.items())
        if self.name == "files":
            return Counter((word, total) for word, count in self.words.items() for total in range(1, count + 1))
        plan = replace(killed_query.query_plan(self.name, 400), keep=True)
        return answer(plan, WINDOWS.get(self.name, {}))


def settled(arena: Arena) -> None:
    """Nothing is left of it: no process, and with them no socket; no temporary file."""
    wait_until(lambda: not arena.processes(), lambda: f"the end of {arena.processes()}")
    assert not list(arena.temporary.iterdir()), "temporary files are left"


def shown(folder: Path) -> list[Path]:
    """The files that everybody can see: what is staged is not."""
    found = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    return [path for path in found if not any(part[0] in "._" for part in path.relative_to(folder).parts)]


def write_words(folder: Path, chance: Random) -> Counter[str]:
    """Some text files; how often each word is in them."""
    folder.mkdir()
    counts: Counter[str] = Counter()
    for number in range(3):
        lines = []
        for _ in range(LINES // 3):
            line = [f"w{chance.randrange(30)}" for _ in range(chance.randint(0, 6))]
            counts.update(line)
            lines.append(" ".join(line) + "\n")
        (folder / f"{number}.txt").write_text("".join(lines))
    return counts
