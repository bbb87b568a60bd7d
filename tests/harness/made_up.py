"""Recordings of a run that never was: steady latency, and a stall during each migration."""

from __future__ import annotations

import random

from megaphone.harness import LoadSchedule
from megaphone.harness.recording import Recording

STALLS = {"all-at-once": 600_000_000, "fluid": 8_000_000, "batched": 40_000_000}  # ns


def recordings(
    seconds: float = 24, workers: int = 2, rate: int = 100_000, strategies: tuple[str, ...] = tuple(STALLS)
) -> list[Recording]:
    """What the workers would have recorded, with migrations at even distances."""
    schedule = LoadSchedule(rate, seconds, workers=workers)
    between = round(schedule.length_ns / (len(strategies) + 1))
    lengths = {"all-at-once": 0.6, "fluid": 2.4, "batched": 1.1}
    episodes = [
        (name, i * between, i * between + round(lengths[name] * 1e9)) for i, name in enumerate(strategies, 1)
    ]
    return [_recording(schedule, worker, episodes) for worker in range(workers)]


def _recording(schedule: LoadSchedule, worker: int, episodes: list[tuple[str, int, int]]) -> Recording:
    chance = random.Random(worker)
    through, at = [], []
    last = 0
    for epoch in range(schedule.epochs):
        sent = (epoch + 1) * schedule.epoch_ns
        wait = chance.lognormvariate(13.8, 0.35)
        for name, begin, end in episodes:
            if begin <= sent <= end:
                wait += max(0, begin + STALLS[name] - sent) if name == "all-at-once" else chance.random() * STALLS[name]
        last = max(last, sent + round(wait))
        through.append(epoch + 1)
        at.append(last)
    ticks = range(0, schedule.length_ns, 250_000_000)
    memory = [(900 + 40 * worker + chance.randrange(10)) << 20 for _ in ticks]
    for i, tick in enumerate(ticks):
        if any(begin <= tick <= end + 250_000_000 for name, begin, end in episodes if name == "all-at-once"):
            memory[i] += 700 << 20
    return Recording(
        worker=worker,
        schedule=schedule.to_dict(),
        through=through,
        at=at,
        sent=schedule.epochs,
        gave_up=None,
        episodes=[list(episode) for episode in episodes] if worker == 0 else [],
        memory_at=list(ticks),
        memory=memory,
        stolen=0,
    )
