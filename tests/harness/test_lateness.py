"""Latencies by arithmetic, against each record's latency one by one."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from megaphone.harness import Histogram, LoadSchedule
from megaphone.harness.lateness import charge, charge_epochs


def random_case(seed: int) -> tuple[LoadSchedule, int, int, list[int]]:
    """A schedule, a worker of its, a first epoch, and when it and those after it were complete."""
    chance = random.Random(seed)
    rate = Fraction(chance.choice([1, 37, 1000, 5000, 123_456, 999_999]) * 1000 + chance.randrange(1000), 1000)
    epoch = chance.choice([0.001, 0.000333, 0.02])
    schedule = LoadSchedule(rate, 1, epoch, workers=chance.choice([1, 2, 3]))
    first, done = chance.randrange(50), []
    at = first * schedule.epoch_ns
    for number in range(first, first + chance.choice([1, 5, 600 if rate < 2000 else 40])):
        stall = chance.choice([0, 0, 1, 1000, 10**6, 10**8])
        at = max(at, (number + 1) * schedule.epoch_ns) + chance.randrange(stall + 1)
        done.append(at)
    return schedule, chance.randrange(schedule.workers), first, done


@pytest.mark.parametrize("seed", range(60))
def test_each_record_is_charged_from_when_it_was_due(seed: int) -> None:
    schedule, worker, first, done = random_case(seed)
    for bits in (4, 7):
        by_hand, measured = Histogram(bits), Histogram(bits)
        for epoch, at in enumerate(done, first):
            by_hand.record(at - int(n / Fraction(schedule.rate) * 10**9) for n in range(*schedule.share(epoch, worker)))
        charge(measured, schedule, worker, first, np.array(done))
        assert measured == by_hand


@pytest.mark.parametrize("seed", range(20))
def test_each_record_is_charged_from_the_end_of_its_epoch(seed: int) -> None:
    schedule, worker, first, done = random_case(seed)
    by_hand, measured = Histogram(), Histogram()
    for epoch, at in enumerate(done, first):
        by_hand.record(at - (epoch + 1) * schedule.epoch_ns for _ in range(*schedule.share(epoch, worker)))
    charge_epochs(measured, schedule, worker, first, np.array(done))
    assert measured == by_hand


def test_nothing_is_complete_before_it_was_due() -> None:
    with pytest.raises(ValueError, match="epoch 3 is said to have been complete before"):
        charge(Histogram(), LoadSchedule(1000_000, 1), 0, 3, np.array([3_500_000]))
