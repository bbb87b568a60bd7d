"""What snapshots cost a stream that goes on: hashed keys counted on two processes, with and without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import dataflow
from bench.counting import CountLoad, Setup, measure, throughput
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import Outcome

MILLION = 1_000_000
MIB = 1 << 20
BINS = 4096


@contextmanager
def storage(every: float) -> Iterator[tuple[dataflow.Recovery, Path]]:
    """A folder of its own for snapshots, all of which are kept, so that they can be weighed."""
    with tempfile.TemporaryDirectory() as folder:
        yield dataflow.Recovery(folder, every=every, keep=1000), Path(folder)


def weigh(folder: Path) -> list[int]:
    """The bytes of state that each snapshot has written, in the order of snapshots."""
    written: dict[int, int] = {}
    for path in folder.rglob("part-*"):
        number = int(path.name.split("-")[1])
        written[number] = written.get(number, 0) + path.stat().st_size
    return [written[number] for number in sorted(written)]


@benchmark("snapshots", "counting with a snapshot every ten seconds against without: throughput, latency, bytes")
def snapshots(run: Run) -> None:
    domain, every, seconds, repeats = (2, 2.0, 6.0, 1) if run.quick else (16, 10.0, 21.0, 2)
    setup = Setup(domain * MILLION, BINS)
    _throughput(run, setup, every, seconds, repeats)
    _latency(run, setup, every, seconds, repeats, "every bin changes")
    _latency(run, Setup(domain * MILLION, BINS, drawn=BINS // 100), every, seconds, repeats, "1 % of bins change")


def _throughput(run: Run, setup: Setup, every: float, seconds: float, repeats: int) -> None:
    """As fast as it goes, with and without, in turns."""
    pairs = []
    for _ in run.each("throughput", range(repeats)):
        with storage(every) as (recovery, _):
            pairs.append((throughput(setup, seconds, recovery=recovery), throughput(setup, seconds)))
    with_, without = (median(column) / MILLION for column in zip(*pairs, strict=True))
    label = f"{setup.domain // MILLION} M hashed keys, a snapshot every {every:g} s (aim: 0.9 of that without)"
    run.report(label, with_, "M records/s", baseline=without)


def _latency(run: Run, setup: Setup, every: float, seconds: float, repeats: int, label: str) -> None:
    """At four million records a second, with and without, in turns; and what was written."""
    load = CountLoad(4 * MILLION if not run.quick else MILLION, seconds)
    with_, without, written = [], [], []
    for _ in run.each(f"latency, {label}", range(repeats)):
        with storage(every) as (recovery, folder):
            with_.append(measure(setup, load, recovery=recovery))
            written.append(weigh(folder))
        without.append(measure(setup, load))
    kind = f"{setup.domain // MILLION} M hashed keys, {load.rate // MILLION} M/s, {label}"
    for name, quantile in ((".5", 0.5), (".99", 0.99), ("max", 1.0)):
        aim = " (aim: 1.5 times that without)" if name == ".99" else ""
        run.report(f"{kind}, {name}{aim}", _ms(with_, quantile), "ms", baseline=_ms(without, quantile))
    _bytes(run, kind, setup, written[-1])
    for outcome in (*with_, *without):
        if not outcome.sustained:
            run.report(f"{kind}, was not sustained: lag", outcome.lag, "s")


def _bytes(run: Run, kind: str, setup: Setup, written: list[int]) -> None:
    """Bytes written against bytes changed. Every key is loaded before the second snapshot, so the largest one has the
    whole state in it."""
    whole = max(written, default=0)
    changed = whole * (min(1.0, setup.drawn / BINS) if setup.drawn else 1.0)
    run.report(f"{kind}, the whole state", whole / MIB, "MiB")
    run.report(f"{kind}, snapshots", len(written), "snapshots")
    if len(written) > 1:
        run.report(f"{kind}, written by the last (baseline: changed)", written[-1] / MIB, "MiB", changed / MIB)


def _ms(outcomes: list[Outcome], quantile: float) -> float:
    return median(outcome.total.quantile(quantile) for outcome in outcomes) / 1e6
