"""Word counts through crashes at any turn, into a sink of any kind: what tests and the soak run."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import dataflow
from dataflow import sources
from dataflow.state import native
from tests.connectors.lives import Crashed, Lives, Paced
from tests.connectors.places import LOCAL, Shown

WORDS = [f"w{n % 7} w{n % 3}" for n in range(120)]


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


def crash_until_done(shown: Shown, seed: int, lives: int = 6) -> list[int]:
    """Running counts of words, with crashes; where each life began."""
    chance = random.Random(seed)
    folder = shown.folder / "texts"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("\n".join(WORDS[number::3]), encoding="utf-8")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            lines = scope.source(Paced(sources.lines(folder, batch=5), seed))
            words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
            native.state_machine(words, fold=count, name="totals").sink(shown.sink(), name="out")

    all_lives = Lives(every=chance.choice([1e-9, 0.1, 0.5]))
    for life in range(lives + 1):
        turns = chance.randrange(30, 450) if life < lives else None
        try:
            all_lives.live(main, chance.choice([1, 2, 3]), seed * 10 + life, turns)
            return all_lives.began
        except Crashed:
            continue
    raise AssertionError("it never came to its end")


def right_rows(shown: Shown) -> list[Any]:
    totals = Counter(word for line in WORDS for word in line.split())
    if shown.keyed:
        return sorted(totals.items())
    return sorted((word, n) for word, total in totals.items() for n in range(1, total + 1))


def run_case(seed: int) -> None:
    """A case of the soak: a sink, and crashes, all from a seed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        shown = random.Random(seed).choice(LOCAL)(Path(folder))
        crash_until_done(shown, seed)
        assert shown.rows() == right_rows(shown), f"seed {seed}, {type(shown).__name__}"
        assert shown.staged() == 0, f"seed {seed}, {type(shown).__name__}"
