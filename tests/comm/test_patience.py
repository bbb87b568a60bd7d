"""When a worker looks for messages before it sleeps: after short waits only, and hardly ever in vain."""

from __future__ import annotations

import random

import pytest

from dataflow.comm.patience import LONGEST, SHORT, Patience


def wait(patience: Patience, now: float, seconds: float) -> tuple[float, float]:
    """One wait of that length, as a transport would go through it: (when it ended, for how long somebody looked)."""
    if not patience.begin(now):
        patience.arrived(now + seconds)
        return now + seconds, 0.0
    until = patience.look()
    if now + seconds <= until:
        patience.arrived(now + seconds)
        return now + seconds, seconds
    patience.in_vain()
    patience.arrived(now + seconds)
    return now + seconds, until - now


def looks(patience: Patience, *waits: float) -> list[bool]:
    now, looked = 1.0, []
    for seconds in waits:
        now, spent = wait(patience, now, seconds)
        looked.append(spent > 0)
    return looked


def test_nobody_looks_before_a_few_short_waits() -> None:
    assert looks(Patience(few=3), *[SHORT / 3] * 5) == [False, False, False, True, True]


def test_a_long_wait_starts_the_count_anew() -> None:
    short = SHORT / 3
    assert looks(Patience(few=2), short, 2 * SHORT, short, short, short) == [False, False, False, False, True]


def test_each_time_in_vain_doubles_what_is_asked_for() -> None:
    asleep = (LONGEST + SHORT) / 2  # a short wait, but longer than anybody looks
    looked = looks(Patience(few=2), *[asleep] * 20)
    # 2 waits, and a look in vain; 4, and another; 8, and another. (A wait after a look in vain is not counted.)
    assert [i for i, look in enumerate(looked) if look] == [2, 7, 16]


def test_success_takes_the_doubling_back() -> None:
    patience = Patience(few=2)
    asleep, soon = (LONGEST + SHORT) / 2, LONGEST / 2
    assert looks(patience, soon, soon, asleep, *[soon] * 4) == [False, False, True, False, False, False, False]
    assert looks(patience, soon, asleep, soon, soon, soon) == [True, True, False, False, False]
    assert looks(patience, soon, soon) == [False, True]


def test_looking_for_long_counts_as_in_vain() -> None:
    # A process that loses its processor while it looks finds the message when it gets it back, much later.
    patience = Patience(few=1)
    assert looks(patience, SHORT / 3) == [False]
    assert patience.begin(5.0)
    patience.look()
    patience.arrived(5.0 + 10 * SHORT)
    assert looks(patience, *[SHORT / 3] * 3) == [False, False, True]


def test_an_arrival_that_nobody_waited_for_says_nothing() -> None:
    patience = Patience(few=1)
    for now in range(10):
        patience.arrived(now)
    assert not patience.begin(20.0)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_wasted_is_bounded(seed: int) -> None:
    chance = random.Random(seed)
    few = chance.choice([1, 4, 10])
    patience = Patience(few)
    now, vain = 0.0, 0
    lengths = [chance.choice([LONGEST / 2, (LONGEST + SHORT) / 2, 3 * SHORT]) for _ in range(1000)]
    for seconds in lengths:
        now, spent = wait(patience, now, seconds)
        vain += spent > 0 and seconds > LONGEST
    assert vain <= len(lengths) / (few + 1)
