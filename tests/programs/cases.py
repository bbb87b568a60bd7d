"""All programs by name, and a random case of a random one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.programs import (
    barrier,
    breadth_first,
    capture_replay,
    components,
    dropping,
    hash_join,
    nested_loop,
    pagerank,
    reachability,
    root_loop,
    several,
    silent_loop,
    sources,
    unordered,
    word_count,
)
from tests.programs.running import Executed, Run, Simulated

PROGRAMS: dict[str, Callable[[Run, Random], None]] = {
    "barrier": barrier.check,
    "breadth first": breadth_first.check,
    "capture and replay": capture_replay.check,
    "components": components.check,
    "dropping": dropping.check,
    "hash join": hash_join.check,
    "nested loop": nested_loop.check,
    "pagerank": pagerank.check,
    "reachability": reachability.check,
    "root loop": root_loop.check,
    "several": several.check,
    "silent loop": silent_loop.check,
    "sources": sources.check,
    "unordered": unordered.check,
    "word count": word_count.check,
}


def check_program(name: str, run: Run, seed: int) -> None:
    """Checks one program on the input that the seed makes; a failure says what to call to see it again."""
    try:
        PROGRAMS[name](run, Random(f"{name} {seed}"))
    except BaseException as error:
        error.add_note(f"to see it again: tests.programs.cases.check_program({name!r}, {run!r}, {seed})")
        raise


def run_case(seed: int) -> None:
    """A random program on random input and a random number of workers, mostly simulated, against its oracle."""
    chance = Random(seed)
    name, workers, debug = chance.choice(list(PROGRAMS)), chance.randint(1, 4), chance.random() < 0.25
    runs: tuple[Run, ...] = (
        Simulated(workers, seed, debug),
        Executed(workers, debug),
        Executed(workers, debug, in_process=False),
    )
    (run,) = chance.choices(runs, weights=(88, 9, 3))
    check_program(name, run, seed)
