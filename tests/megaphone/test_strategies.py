"""Strategies as values: every strategy ends where it should, and cuts as it says."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from megaphone import Move, all_at_once, batched, fluid, matched
from megaphone.migration.strategies import Strategy

STRATEGIES = [all_at_once(), fluid(), batched(1), batched(3), batched(1000), matched()]


def assignments(seed: int) -> tuple[list[int], list[int], int]:
    chance = random.Random(seed)
    workers, bins = chance.randint(1, 6), chance.randint(1, 60)
    current = [chance.randrange(workers) for _ in range(bins)]
    target = [w if chance.random() < 0.3 else chance.randrange(workers) for w in current]
    return current, target, workers


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize("seed", range(50))
def test_the_steps_lead_to_the_target_and_move_each_bin_once(strategy: Strategy, seed: int) -> None:
    current, target, _ = assignments(seed)
    place = list(current)
    for step in strategy.steps(current, target):
        assert step, "no empty steps"
        for move in step:
            assert place[move.bin] != move.worker, "nothing moves to where it is, or twice"
            place[move.bin] = move.worker
    assert place == target


@pytest.mark.parametrize("seed", range(300))
def test_matched_uses_each_worker_once_a_step_in_as_few_steps_as_possible(seed: int) -> None:
    current, target, _ = assignments(seed)
    steps = matched().steps(current, target)
    for step in steps:
        assert max(Counter(current[move.bin] for move in step).values()) == 1
        assert max(Counter(move.worker for move in step).values()) == 1
    moves = [(a, z) for a, z in zip(current, target, strict=True) if a != z]
    sent, received = Counter(a for a, _ in moves), Counter(z for _, z in moves)
    assert len(steps) == max([*sent.values(), *received.values()], default=0)  # the busiest worker sets the number


def test_sizes_and_gaps_are_checked() -> None:
    with pytest.raises(ValueError, match="at least one bin"):
        batched(0)
    with pytest.raises(ValueError, match="negative"):
        fluid(gap=-1)
    assert all_at_once().steps([0, 1], [0, 1]) == []
    assert fluid(gap=3).gap == 3
    assert matched().steps([0], [1]) == [[Move(0, 1)]]
