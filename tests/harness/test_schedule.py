"""Schedules: nothing drifts, everything is dealt exactly once, and nobody gets more than their share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from megaphone.harness import LoadSchedule
from tests.engine.harness import repeatable

RATES = st.one_of(st.integers(1, 20_000), st.integers(1, 20_000_000).map(lambda n: Fraction(n, 1000)))
SCHEDULES = st.builds(
    LoadSchedule,
    rate=RATES,
    duration=st.sampled_from([0.05, 0.2]),
    epoch=st.sampled_from([0.001, 0.0007, 0.01, 0.000001 * 333]),
    workers=st.integers(1, 5),
)


def by_hand(schedule: LoadSchedule) -> list[list[int]]:
    """The records of each epoch, one by one, from the definition: record n is due n / rate after the start."""
    epoch = Fraction(schedule.epoch_ns, 10**9)
    epochs: list[list[int]] = [[] for _ in range(schedule.epochs)]
    record = 0
    while (number := (record / Fraction(schedule.rate)) // epoch) < schedule.epochs:
        epochs[int(number)].append(record)
        record += 1
    return epochs


@repeatable
@given(SCHEDULES)
def test_every_record_is_in_its_epoch_and_with_one_worker(schedule: LoadSchedule) -> None:
    had = [0] * schedule.workers
    for epoch, records in enumerate(by_hand(schedule)):
        assert schedule.count(epoch) == len(records)
        shares = [schedule.share(epoch, worker) for worker in range(schedule.workers)]
        assert sorted(n for low, high in shares for n in range(low, high)) == records
        for worker, (low, high) in enumerate(shares):
            had[worker] += high - low
        assert max(had) - min(had) <= 1
    assert sum(had) == schedule.records


@repeatable
@given(SCHEDULES)
def test_arrays_say_what_single_questions_say(schedule: LoadSchedule) -> None:
    epochs = np.arange(schedule.epochs)
    for worker in range(schedule.workers):
        low, high = schedule.shares(epochs, worker)
        assert list(zip(low, high, strict=True)) == [schedule.share(int(epoch), worker) for epoch in epochs]


@repeatable
@given(SCHEDULES, st.integers(0, 40))
def test_offsets_and_their_inverse(schedule: LoadSchedule, epoch: int) -> None:
    records = range(schedule.first_record(epoch), schedule.first_record(epoch + 1))
    offsets = [schedule.offset(record, epoch) for record in records]
    assert offsets == [schedule.due_ns(record) - epoch * schedule.epoch_ns for record in records]
    exact = [Fraction(record) / Fraction(schedule.rate) * 10**9 for record in records]
    assert [schedule.due_ns(record) for record in records] == [int(nanoseconds) for nanoseconds in exact]
    for offset in {-1, 0, schedule.epoch_ns // 2, schedule.epoch_ns - 1, *offsets, *(o - 1 for o in offsets)}:
        later = sum(o > offset for o in offsets)
        assert schedule.due_by(offset, epoch) == schedule.first_record(epoch + 1) - later


def test_a_year_later_not_a_record_is_missing() -> None:
    schedule = LoadSchedule(rate=Fraction(1_234_567_891, 1000), duration=365 * 86_400)
    assert schedule.records == -(-1_234_567_891 * 365 * 86_400 // 1000)
    assert schedule.epochs == 365 * 86_400 * 1000


def test_due_counts_epochs_that_have_ended_whatever_floats_do() -> None:
    schedule = LoadSchedule(rate=1, duration=10)
    start = 123_456.7
    for epoch in range(schedule.epochs):
        assert schedule.due((start + schedule.due_at(epoch)) - start) == epoch + 1


def test_epochs_in_the_dataflow_s_own_time() -> None:
    schedule = LoadSchedule(rate=10, duration=1, epoch=0.1, first=7, ticks=100)
    assert [schedule.time(epoch) for epoch in range(3)] == [7, 107, 207]
    assert schedule.last_time(1) == 206
    assert [schedule.completed(frontier) for frontier in (0, 7, 106, 107, 1007)] == [0, 0, 0, 1, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0}, "rate must be a positive number, not 0"),
        ({"rate": float("nan")}, "rate must be a positive number"),
        ({"rate": 1e-9}, "too small to schedule"),
        ({"rate": 1e18, "epoch": 10}, "too many records"),
        ({"duration": -1}, "duration must be"),
        ({"epoch": 1e-12}, "too small to schedule"),
        ({"workers": 0}, "workers must be an integer of at least 1"),
        ({"ticks": 0.5}, "ticks must be an integer"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LoadSchedule(**{"rate": 1000, "duration": 1, **options})  # type: ignore[arg-type]


def test_there_and_back_as_plain_data() -> None:
    schedule = LoadSchedule(rate=Fraction(12_345, 1000), duration=3, epoch=0.25, workers=3, first=1, ticks=250)
    again = LoadSchedule.from_dict(schedule.to_dict())
    assert again.records == schedule.records and again.to_dict() == schedule.to_dict()
