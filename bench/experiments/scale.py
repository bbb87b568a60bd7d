"""Workers join and leave under load: 2 to 4 to 2, with a large state, and what that does to the latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dataflow
from bench.counting import CountLoad, Setup, build, load, strategy_of
from bench.registry import benchmark
from bench.run import Run
from dataflow.columns import Columns
from megaphone import harness
from megaphone.harness.joining import attend, has_joined
from megaphone.harness.scaling import Scaled, Scaler

MILLION = 1_000_000
WORKERS = 2


@dataclass
class ScaleSeen:
    """What one of the first workers saw."""

    recording: harness.Recording
    scaled: list[Scaled]


async def main(
    worker: dataflow.Worker, setup: Setup, load_: CountLoad, plan: list[tuple[float, int]], strategy: str
) -> ScaleSeen | None:
    """A count under open-loop load, fed by the first workers; others come and go."""
    counter = build(worker, setup)
    if has_joined(worker):
        counter.keys.close()
        counter.control.close()
        await attend(worker)
        return None
    first = await load(worker, counter)
    keys = counter.rng.integers(0, setup.domain, 1 << 22, dtype=np.uint64)  # sent over and over, a slice at a time
    ones = np.ones(1 << 16, np.int64)
    schedule = harness.LoadSchedule(load_.rate, load_.seconds, load_.epoch, WORKERS, first=first)
    episodes = harness.Episodes()
    scaler = Scaler(worker, plan if worker.index == 0 else [], strategy_of(strategy, load_.batch))

    def send(epoch: int, low: int, high: int) -> None:
        size = high - low
        at = low % (len(keys) - len(ones))
        counter.keys.send(Columns.trusted({"key": keys[at : at + size], "diff": ones[:size]}, size))
        episodes.follow(scaler.look(epoch * load_.epoch))

    assert counter.controller is not None
    recording = await harness.drive(
        worker, schedule, send, counter.probe, inputs=[counter.keys, counter.controller], episodes=episodes,
        coalesce=True,
    )  # fmt: skip
    return ScaleSeen(recording, scaler.scaled)


@benchmark("scale", "2 to 4 to 2 workers with 16 M keys at 1 M records/s (aim: at most 3 times the steady maximum)")
def scale(run: Run) -> None:
    domain, seconds = (MILLION, 12.0) if run.quick else (16 * MILLION, 30.0)
    setup, load_ = Setup(domain, bins=1 << 12), CountLoad(MILLION // (5 if run.quick else 1), seconds, batch=64)
    for strategy in run.each("strategy", ["batched"] if run.quick else ["fluid", "batched"]):
        plan = [(seconds * 0.25, 4), (seconds * 0.65, 2)]
        seen = [each for each in dataflow.execute(main, setup, load_, plan, strategy, workers=WORKERS) if each]
        outcome = harness.Outcome.of([each.recording for each in seen], warmup=seconds / 10, since="epoch end")
        run.report(f"{strategy}: sustained", float(outcome.sustained), "")
        scaled = [change for each in seen for change in each.scaled]
        for migration, change in zip(outcome.migrations, scaled, strict=False):
            name = f"{strategy}, {change.name}"
            steady = migration.before.greatest / 1e6
            run.report(f"{name}: steady maximum", steady, "ms")
            run.report(f"{name}: steady .99", migration.before.quantile(0.99) / 1e6, "ms")
            run.report(f"{name}: maximum latency", migration.during.greatest / 1e6, "ms", baseline=steady)
            run.report(f"{name}: .99", migration.during.quantile(0.99) / 1e6, "ms")
            run.report(f"{name}: duration", (migration.episode.seconds or 0.0) * 1000, "ms")
            run.report(f"{name}: pause of sources", change.pause * 1000, "ms")
            run.report(f"{name}: from asking to having joined or left", change.joined * 1000, "ms")
            if change.first_record is not None:
                run.report(f"{name}: from asking to the first record", change.first_record * 1000, "ms")
