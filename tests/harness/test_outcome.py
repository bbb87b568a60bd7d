"""Outcomes against the same run computed record by record, with sorted lists."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from dataflow.comm.codec import decode, encode
from megaphone.harness import Histogram, LoadSchedule, Outcome, Timeline
from megaphone.harness.episodes import Episode, Episodes, merged
from megaphone.harness.outcome import PHASES
from megaphone.harness.recording import Recording

S = 10**9


def made_up(seed: int) -> tuple[LoadSchedule, list[Recording], float]:
    """A short run of some workers, with stalls, up to three episodes, and perhaps given up."""
    chance = random.Random(seed)
    rate, epoch_s, workers = chance.choice([900, 4321, 20_000]), chance.choice([0.001, 0.005]), chance.choice([1, 2, 3])
    schedule = LoadSchedule(rate, 0.4, epoch_s, workers)
    episodes: list[list[Any]] = []
    at = 0
    for name in chance.sample(["all-at-once", "fluid", "batched"], chance.randrange(4)):
        begin = at + chance.randrange(120_000_000)
        at = begin + chance.randrange(80_000_000)
        episodes.append([name, begin, at])
    if episodes and chance.random() < 0.3:
        episodes[-1][2] = None
    gave_up = schedule.length_ns + 50_000_000 if chance.random() < 0.3 else None
    recordings: list[Recording] = []
    for worker in range(schedule.workers):
        through, ats, last, epoch = [], [], 0, 0
        until = schedule.epochs if gave_up is None else chance.randrange(schedule.epochs)
        while epoch < until:
            epoch = min(until, epoch + chance.choice([1, 1, 1, 7]))
            last = max(last, epoch * schedule.epoch_ns) + chance.choice([0, 10, 10**5, 3 * 10**6])
            through.append(epoch)
            ats.append(last)
        recordings.append(
            Recording(
                worker=worker,
                schedule=schedule.to_dict(),
                through=through,
                at=ats,
                sent=until,
                gave_up=gave_up,
                episodes=episodes if worker == 0 else [],
                memory_at=[0],
                memory=[1 << 20],
                stolen=0,
            )
        )
    for place, episode in enumerate(episodes):  # some begin at the very instant at which some epoch is complete
        after = episodes[place - 1][2] if place else 0
        instants = [at for at in recordings[-1]["at"] if after <= at <= (episode[2] or episode[1])]
        if instants and chance.random() < 0.5:
            episode[1] = instants[-1]
    return schedule, recordings, chance.choice([0, 0.05, 0.0123])


Wait = tuple[int, int, int, int]  # when its epoch began, when that was complete, when it was due itself, its epoch


def waits(schedule: LoadSchedule, recordings: list[Recording]) -> list[Wait]:
    """Every record of the run."""
    found = []
    for recording in recordings:
        for epoch in range(schedule.epochs):
            entries = zip(recording["through"], recording["at"], strict=True)
            done = next((at for through, at in entries if through > epoch), recording["gave_up"])
            assert done is not None
            for n in range(*schedule.share(epoch, recording["worker"])):
                due = int(n / Fraction(schedule.rate) * S)
                found.append((epoch * schedule.epoch_ns, done, due, epoch))
    return found


def histogram(records: list[Wait]) -> Histogram:
    made = Histogram()
    made.record([done - due for _, done, due, _ in records])
    return made


@pytest.mark.parametrize("seed", range(40))
def test_an_outcome_is_what_counting_every_record_gives(seed: int) -> None:
    schedule, recordings, warmup = made_up(seed)
    outcome = Outcome.of(decode(encode(recordings)), warmup=warmup, window=0.05)
    everything = waits(schedule, recordings)
    warm = [record for record in everything if record[0] >= warmup * S]
    assert outcome.total == histogram(warm)
    assert sum(len(window) for window in outcome.timeline.windows.values()) == schedule.records
    for window, measured in outcome.timeline.windows.items():
        assert measured == histogram([r for r in everything if window * 50_000_000 <= r[0] < (window + 1) * 50_000_000])

    episodes = recordings[0]["episodes"]
    assert len(outcome.migrations) == len(episodes)
    for place, ((name, begin, end), migration) in enumerate(zip(episodes, outcome.migrations, strict=True)):
        assert migration.episode == Episode(name, begin, end)
        since = max(warmup * S, episodes[place - 1][2] if place else 0)
        until = episodes[place + 1][1] if place + 1 < len(episodes) else float("inf")
        stop = float("inf") if end is None else end
        parts: dict[str, list[Wait]] = {phase: [] for phase in PHASES}
        for record in everything:
            if record[0] < since:
                continue
            if record[1] <= begin:
                parts["before"].append(record)
            elif record[0] < stop:
                parts["during"].append(record)
            elif record[1] <= until:
                parts["after"].append(record)
        for phase, records in parts.items():
            assert getattr(migration, phase) == histogram(records), phase


def test_a_document_has_true_labels() -> None:
    schedule = LoadSchedule(1000, 2, epoch=0.001)
    waits_ms = [1 + (epoch % 100) for epoch in range(2000)]  # 1 to 100 ms, each as often
    done: list[int] = []
    for epoch, wait in enumerate(waits_ms):
        done.append(max(done[-1] if done else 0, epoch * 10**6 + wait * 10**6))
    recording = Recording(
        worker=0,
        schedule=schedule.to_dict(),
        through=list(range(1, 2001)),
        at=done,
        sent=2000,
        gave_up=None,
        episodes=[],
        memory_at=[0],
        memory=[5],
        stolen=30_000_000,
    )
    exact = sorted(at - epoch * 10**6 for epoch, at in enumerate(done))
    outcome = Outcome.of([recording])
    document = outcome.document()
    assert outcome.statement.endswith(". The host withheld 30 ms of processor time") and document["stolen_s"] == 0.03
    for name, q in {".5": 0.5, ".9": 0.9, ".99": 0.99, ".9999": 0.9999, "max": 1}.items():
        rank = -(-Fraction(str(q)) * 2000 // 1)
        assert exact[int(rank) - 1] / 1e6 <= document["latency_ms"][name] <= exact[int(rank) - 1] / 1e6 * (1 + 1 / 128)
    assert list(document["latency_ms"]) == [".5", ".9", ".99", ".9999", "max"]
    columns = document["timeline"]["columns"]
    assert columns == ["time_s", ".25_ms", ".5_ms", ".75_ms", ".95_ms", ".99_ms", ".999_ms", "max_ms"]
    first = [at - epoch * 10**6 for epoch, at in enumerate(done[:250])]
    assert document["timeline"]["rows"][0][-1] == max(first) / 1e6
    assert document["records"] == 2000 and document["sustained"] is True


def test_latency_may_be_counted_from_the_end_of_the_epoch_and_says_so() -> None:
    schedule, recordings, _ = made_up(5)
    outcome = Outcome.of(recordings, window=0.05, since="epoch end")
    by_hand = Histogram()
    by_hand.record(done - begin - schedule.epoch_ns for begin, done, _, _ in waits(schedule, recordings))
    assert outcome.total == by_hand
    assert outcome.latencies()[0][0] == "latency from the epoch's end in ms"
    assert outcome.document()["latency_since"] == "epoch end"


def test_the_summary_is_a_table_for_people() -> None:
    _, recordings, _ = made_up(4)
    text = Outcome.of(recordings, window=0.05).summary()
    assert text.splitlines()[1].split() == ["latency", "in", "ms", "took", ".5", ".9", ".99", ".9999", "max", "records"]


def test_timelines_of_workers_merge() -> None:
    one, other = Timeline(S), Timeline(S)
    one.at(0).record([1, 2])
    other.at(0).record([3])
    other.at(2).record([4])
    one.merge(Timeline.from_dict(decode(encode(other.to_dict()))))
    assert one.rows([1]) == [(0.0, [3]), (2.0, [4])]
    with pytest.raises(ValueError, match="cannot be merged"):
        one.merge(Timeline(5))
    with pytest.raises(ValueError, match="a window must be positive"):
        Timeline(0)


def test_recordings_that_are_not_one_run_are_refused() -> None:
    _, recordings, _ = made_up(3)
    assert recordings[0]["schedule"]["workers"] > 1
    with pytest.raises(ValueError, match="there are none"):
        Outcome.of([])
    with pytest.raises(ValueError, match="one recording of each"):
        Outcome.of(recordings[:1])
    with pytest.raises(ValueError, match="different schedules"):
        Outcome.of([recordings[0], {**recordings[1], "schedule": LoadSchedule(5, 1).to_dict()}, *recordings[2:]])
    with pytest.raises(ValueError, match="leaves nothing"):
        Outcome.of(recordings, warmup=99)
    with pytest.raises(ValueError, match="no multiple of the epoch"):
        Outcome.of(recordings, window=0.0123)


def test_episodes_are_said_in_order_and_agreed_on() -> None:
    episodes = Episodes()
    with pytest.raises(ValueError, match="has not started"):
        episodes.begin("fluid")
    episodes.start(lambda: 1.0)
    with pytest.raises(ValueError, match="no episode is under way"):
        episodes.end()
    episodes.begin("fluid")
    with pytest.raises(ValueError, match="'fluid' has not ended"):
        episodes.begin("batched")
    with pytest.raises(ValueError, match="disagree on what happened"):
        merged([[Episode("fluid", 1, 2)], [Episode("batched", 1, 2)]])
    assert merged([[Episode("fluid", 1, None)], [Episode("fluid", 2, 5)]]) == [Episode("fluid", 1, None)]
