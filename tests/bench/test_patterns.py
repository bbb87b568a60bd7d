"""Frequent patterns over a window, with a loop and migrations at random, against a miner that tries everything."""

from __future__ import annotations

from random import Random

import pytest

import dataflow
import megaphone
from bench import patterns as detector
from bench.patterns import mine
from dataflow.testing import simulate
from tests.oracles import patterns

BINS, WINDOW, THRESHOLD, LONGEST, EPOCHS = 8, 3, 3, 3, 7


def tweets(seed: int) -> list[list[list[int]]]:
    """Few words, some of which like each other: patterns come and go."""
    chance = Random(seed)
    friends = [chance.sample(range(8), 3) for _ in range(2)]
    return [
        [
            chance.choice(friends) + chance.choices(range(8), k=chance.randint(0, 2))
            if chance.random() < 0.6
            else chance.choices(range(8), k=chance.randint(0, 4))
            for _ in range(chance.randint(0, 5))
        ]
        for _ in range(EPOCHS)
    ]


async def main(worker: dataflow.Worker, epochs: list[list[list[int]]], moves: int | None) -> list[object]:
    found: list[object] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        handle, stream = scope.input("tweets")
        _, reports = mine(scope, configuration, stream, threshold=THRESHOLD, longest=LONGEST, bins=BINS)
        probe = reports.inspect(lambda time, row: found.append((time // 2, row))).probe()
    chance = Random(moves)
    for epoch in range(EPOCHS + WINDOW):
        come = epochs[epoch] if epoch < EPOCHS else []
        gone = epochs[epoch - WINDOW] if epoch >= WINDOW else []
        both = [(1, words) for words in come] + [(-1, words) for words in gone]
        handle.send(both[worker.index :: worker.peers])
        if moves is not None and worker.index == 0:
            for at in (2 * epoch, 2 * epoch + 1):  # in the middle of an epoch, too
                control.send([megaphone.Move(chance.randrange(BINS), chance.randrange(worker.peers))], at=at)
        for each in (handle, control):
            each.advance_to(2 * epoch + 2)
        await probe.wait_passed(2 * epoch + 1)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_patterns_are_those_of_a_sequential_miner(seed: int) -> None:
    epochs = tweets(seed)
    expected = patterns.reports(epochs, WINDOW, THRESHOLD, LONGEST)
    for workers, moves in ((1, None), (3, seed)):
        parts = simulate(main, epochs, moves, workers=workers, seed=seed)
        assert sorted(row for part in parts for row in part) == expected, f"{workers} workers"
    assert seed or len(expected) > 4


def test_a_detector_that_tells_nobody_below_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = detector._announced
    monkeypatch.setattr(detector, "_announced", lambda *given: (said for said in whole(*given) if not said[2]))
    epochs = tweets(0)
    parts = simulate(main, epochs, None, workers=1, seed=0)
    assert sorted(row for part in parts for row in part) != patterns.reports(epochs, WINDOW, THRESHOLD, LONGEST)
