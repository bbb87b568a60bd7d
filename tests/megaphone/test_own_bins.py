"""Bins by a function of the program's own, and numbers of bins that are no powers of two."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.errors import ConstructionError
from dataflow.testing import simulate
from megaphone.errors import ControlError

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "the", "early", "bird"]
TIMES = 12
BY_LETTER = {"bins": 26, "bin_of": lambda word: ord(word[0]) - ord("a")}
BY_RANGE = {"bins": 3, "bin_of": lambda word: bisect_right(["f", "m"], word)}
WAYS: dict[str, dict[str, Any]] = {"by first letter": BY_LETTER, "by range": BY_RANGE, "hashed to five": {"bins": 5}}


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


async def main(worker: dataflow.Worker, way: str, seed: int) -> Any:
    rows: list[Any] = []
    options, chance = WAYS[way], Random(seed)
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        words, stream = scope.input("words")
        totals = megaphone.state_machine(configuration, stream, fold=count, interval=0.0, **options)
        probe = totals.inspect(lambda time, row: rows.append((time, row))).probe()
    controller = megaphone.Controller(control, totals)
    for time in range(TIMES):
        words.send([(word, 1) for word in WORDS[worker.index :: worker.peers]])
        if worker.index == 0 and time % 3 == 1 and not controller.busy:
            controller.migrate([chance.randrange(worker.peers) for _ in range(options["bins"])], megaphone.fluid())
        if worker.index == 0 and time == 5:
            control.send([megaphone.Pin("the", 1)])
        controller.advance_to(time + 1)
        words.advance_to(time + 1)
        await probe.wait_passed(time)
    return rows, totals.handle.keys.bins_of(["the", "fox"]).tolist(), len(controller.configuration)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_no_result_changes(way: str, seed: int) -> None:
    results = simulate(main, way, seed, workers=3, seed=seed)
    totals: Counter[str] = Counter()
    expected = []
    for time in range(TIMES):
        for word in WORDS:
            totals[word] += 1
            expected.append((time, (word, totals[word])))
    assert sorted(row for rows, _, _ in results for row in rows) == sorted(expected)
    _, bins, many = results[0]
    assert many == WAYS[way]["bins"]
    if way == "by first letter":
        assert bins == [19, 5]


async def shapes(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        _, stream = scope.input("words")
        megaphone.state_machine(configuration, stream, fold=count, bins=5, name="five")
    for update in (megaphone.Split("0*"), megaphone.Merge("*"), megaphone.Move("01*", 0)):
        with pytest.raises(ControlError, match="5 bins are no power of two, and have numbers only"):
            control.send([update])
    with pytest.raises(ControlError, match="bin"):
        control.send([megaphone.Move(5, 0)])


def test_bins_without_prefixes_are_moved_by_number_only() -> None:
    simulate(shapes, workers=1, seed=0)


async def wrong(worker: dataflow.Worker, **options: Any) -> None:
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        words, stream = scope.input("words")
        probe = megaphone.state_machine(configuration, stream, fold=count, name="words", **options).probe()
    words.send([("Zebra", 1)])
    words.close()
    control.close()
    await probe.wait_passed(0)


def test_what_is_no_bin_is_refused() -> None:
    async def by_letter(worker: dataflow.Worker) -> None:
        await wrong(worker, **BY_LETTER)

    async def no_function(worker: dataflow.Worker) -> None:
        await wrong(worker, bins=26, bin_of="first letter")

    async def none(worker: dataflow.Worker) -> None:
        await wrong(worker, bins=0)

    async def columns(worker: dataflow.Worker) -> None:
        await wrong(worker, key="word", bin_of=len)

    with pytest.raises(ValueError, match="words: bin_of gives -7 for the key 'Zebra'; it gives a number from 0 to 25"):
        simulate(by_letter, workers=1, seed=0)
    with pytest.raises(ConstructionError, match="bin_of is a function from a key"):
        simulate(no_function, workers=1, seed=0)
    with pytest.raises(ValueError, match="the number of bins is from 1 to 2\\^20, not 0"):
        simulate(none, workers=1, seed=0)
    with pytest.raises(ConstructionError, match="bin_of= is for rows"):
        simulate(columns, workers=1, seed=0)
