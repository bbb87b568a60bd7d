"""Moving a quarter of the state while records come, and what systems do instead that cannot: all in one run."""

from __future__ import annotations

import dataflow
from bench.counting import SIZE, CountLoad, Setup, measure, throughput
from bench.registry import benchmark
from bench.rivals import pausing
from bench.run import Run
from megaphone.harness import Outcome

MILLION = 1_000_000
MIB = 1 << 20
LIVE = ("first", "all-at-once", "batched", "within 20 ms")


@benchmark("count-rivals", "moving a quarter of the state, live and by pause and resume, and a replica in its place")
def rivals(run: Run) -> None:
    million = 8 if run.quick else 64
    setup = Setup(million * MILLION, 4096, dense=True)
    trips = 1 if run.quick else 2
    live = measure(setup, _load(LIVE, trips))
    _report(run, live, [name for name in LIVE if name != "first"])
    paused = _outcome(pausing.pausing, setup, _load(("pause and resume",), trips))
    _report(run, paused, ["pause and resume"])
    replicated = _outcome(pausing.replicating, setup, CountLoad(MILLION, 4.0))
    steady = measure(setup, CountLoad(MILLION, 4.0))
    for name, outcome in (("without a replica", steady), ("with a replica of a quarter", replicated)):
        run.report(f"{name}: .99", outcome.total.quantile(0.99) / 1e6, "ms")
        run.report(f"{name}: maximum latency", outcome.total.greatest / 1e6, "ms")
        run.report(f"{name}: memory of both workers", sum(m[1][-1] for m in outcome.memory.values()) / MIB, "MiB")
    seconds = 1.0 if run.quick else 3.0
    plain = throughput(setup, seconds)
    twice = pausing.throughput(setup, seconds, SIZE)
    run.report("throughput with a replica", twice / MILLION, "M records/s", baseline=plain / MILLION)


def _load(names: tuple[str, ...], trips: int) -> CountLoad:
    each = [name for name in names for _ in range(2 * trips)]
    plan = tuple((2.0 + 1.5 * place, name) for place, name in enumerate(each))
    return CountLoad(MILLION, plan[-1][0] + 3.0, migrations=plan, batch=64)


def _outcome(main: object, setup: Setup, load: CountLoad) -> Outcome:
    return Outcome.of(dataflow.execute(main, setup, load, workers=2), warmup=1.0, since="epoch end")  # type: ignore[arg-type]


def _report(run: Run, outcome: Outcome, names: list[str]) -> None:
    for name in names:
        mine = [m for m in outcome.migrations if m.episode.name == name and m.episode.seconds is not None]
        for place, migration in enumerate(mine):
            label = f"{name}, {'there' if place % 2 == 0 else 'back'}"
            run.report(f"{label}: duration", (migration.episode.seconds or 0.0) * 1000, "ms")
            run.report(f"{label}: maximum latency", migration.during.greatest / 1e6, "ms")
        if not mine:
            run.report(f"{name}: not complete", 0.0, "")
