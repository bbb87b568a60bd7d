"""Real processes that come and go under load, and are killed now and then: workers with SIGKILL, while others join or
leave. In the end each record is there once, and nothing is left: no process, no socket, no file.

`python -m tests.soak --kind scaled` makes fifty changes in a case.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from dataflow.asking.client import NoSuchRun, ask_run
from dataflow.asking.messages import Question, Refused
from dataflow.comm.codec import require_list
from tests.kills.kills import settled, shown
from tests.kills.scaled_count import KEYS, PARTITIONS
from tests.launch.arena import Arena, Program, wait_until

WITHIN = 60.0  # seconds, on a machine that may be busy
CHANGES, EVERY = 50, 8  # changes in a case, and of how many one sees a kill


def run_case(seed: int, changes: int = CHANGES, every: int = EVERY) -> Counter[str]:
    """A run that is scaled so often, in a folder of its own. What became of the requests."""
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder))
        try:
            with _runtime(arena):
                case = Case(arena, Random(f"scaled {seed}"))
                case.run(changes, every)
            settled(arena)
            assert not [path for path in arena.runtime.rglob("*") if path.is_socket()], "a socket is left"
        except BaseException as error:
            error.add_note(f"scaled with seed {seed}; replay: python -m tests.soak --kind scaled --seed {seed}")
            raise
        finally:
            arena.clear()
    return case.became


@contextmanager
def _runtime(arena: Arena) -> Iterator[None]:
    """Questions go to the runs of an arena."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(arena.runtime)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


class Case:
    """One run, whose workers come and go."""

    def __init__(self, arena: Arena, chance: Random) -> None:
        self.arena, self.chance = arena, chance
        self.target, self.stop = arena.folder / "out", arena.folder / "stop"
        self.became = Counter[str]()

    def run(self, changes: int, every: int) -> None:
        """Scales it so often, killing a worker now and then; lets it end, and looks at what it wrote."""
        arguments = [str(self.arena.folder / "state"), str(self.target), str(self.stop)]
        program = self.arena.start([sys.executable, "-m", "tests.kills.scaled_count", *arguments])
        workers = self._members(program)
        for number in range(changes):
            wanted = self.chance.choice([count for count in range(1, 5) if count != len(workers)])
            if number % every == every // 2:
                self._change_and_kill(program, wanted)
            else:
                self._insist(program, wanted)
            workers = self._members(program)
            assert number % every == every // 2 or len(workers) == wanted, f"{workers} where {wanted} are wanted"
        self.stop.touch()
        ended = program.end(WITHIN)
        assert ended.status == 0, f"status {ended.status}\n{ended.err[-4000:]}"
        require_once(self.target)

    def _insist(self, program: Program, wanted: int) -> None:
        """Asks for workers; again, if the run was still about to go back because of a kill before."""
        for _ in range(3):
            why = self._change(wanted)
            if why is None:
                return
            assert "ask again" in why or "begins again" in why, f"{why}\n{program.err[-4000:]}"
            self._members(program)
        raise AssertionError(f"it goes back again and again\n{program.err[-4000:]}")

    def _change(self, wanted: int) -> str | None:
        """Asks for workers; why there are not so many."""
        try:
            ask_run("scaled", Question("scale", {"workers": wanted, "timeout": WITHIN}), WITHIN)
        except (Refused, NoSuchRun) as error:
            self.became["failed"] += 1
            return str(error)
        self.became["done"] += 1
        return None

    def _change_and_kill(self, program: Program, wanted: int) -> None:
        """Kills a worker while others join or leave. The request may be forgotten; the run goes on."""
        asking = threading.Thread(target=self._change, args=(wanted,))
        asking.start()
        asking.join(self.chance.random() * 0.5)
        victim = self.chance.choice(program.children())
        os.kill(victim, signal.SIGKILL)
        self.became["killed"] += 1
        asking.join()

    def _members(self, program: Program) -> list[int]:
        """Who takes part, when the run answers."""
        found: list[int] = []

        def asked() -> bool:
            try:
                members, _, leaving = require_list(ask_run("scaled", Question("members"), WITHIN), 3)
            except (Refused, NoSuchRun):
                return False  # it begins, or goes back
            found[:] = require_list(members)  # type: ignore[arg-type]
            return not leaving

        self._await(asked, program)
        return found

    def _await(self, happened: Callable[[], bool], program: Program) -> None:
        wait_until(lambda: happened() or program.process.poll() is not None, lambda: program.err[-2000:], WITHIN)
        assert program.process.poll() is None, f"it has ended\n{program.err[-4000:]}"


def require_once(target: Path) -> None:
    """By partition, the numbers from 0 on, each once; by key, its records counted from 1 on, each once."""
    rows = [json.loads(line) for path in shown(target) for line in path.read_text().splitlines()]
    found, totals = defaultdict[str, list[int]](list), defaultdict[int, list[int]](list)
    for row in rows:
        found[row["partition"]].append(row["number"])
        totals[row["number"] % KEYS].append(row["total"])
    assert set(found) == set(PARTITIONS)
    for partition, numbers in found.items():
        assert sorted(numbers) == list(range(len(numbers))), f"of {partition} some are missing, or twice"
    for key, counted in totals.items():
        assert sorted(counted) == list(range(1, len(counted) + 1)), f"records of key {key} were counted wrongly"
