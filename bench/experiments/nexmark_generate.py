"""How fast one core makes NEXMark's events, beside numpy drawing as many columns of random integers.

By the time that the thread had on a core, not by the clock on the wall: this work never waits, so what others do on the
machine matters less.
"""

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bench.registry import benchmark
from bench.run import Run
from bench.timing import best_of
from nexmark.events.config import Config
from nexmark.events.generator import COLUMNS, Events, Generator

START = 10_000_000  # far enough that all ranges have their full width
EPOCH, SLICE = 1_000, 1_000_000  # events at a time: in a millisecond of a live stream, and for throughput
IN_ORDER = Config()

Wanted = Mapping[str, Sequence[str]]


@benchmark("nexmark-generate", "NEXMark events made per second and core, by kind; the ratio is to numpy's own draws")
def nexmark_generate(run: Run) -> None:
    repeats = 7 if run.quick else 25
    kinds: list[tuple[str, Wanted]] = [("all kinds", COLUMNS)]
    kinds += [(f"{kind}s alone", {kind: names}) for kind, names in COLUMNS.items()]
    cases = [(name, IN_ORDER, columns) for name, columns in kinds]
    cases.append(("bids' auction and time", IN_ORDER, {"bid": ("auction", "date_time")}))
    cases.append(("all kinds, out of order by 10", Config(group=10), COLUMNS))
    for name, config, columns in run.each("columns", cases):
        generator = Generator(config, columns)
        for size in (EPOCH, SLICE):
            _report(run, f"{name}, slices of {size:,}", generator, size, repeats)
    for name, columns in run.each("payload", kinds):
        generator = Generator(IN_ORDER, columns, payload="full")
        rate = _rate(SLICE // 10, 3, _make(generator, None), _share(generator))
        run.report(f"{name}, full payload", rate, "events/s")


def _report(run: Run, name: str, generator: Generator, size: int, repeats: int) -> None:
    share = _share(generator)
    baseline = _rate(size, repeats, _numpy_draws(generator.events(range(START, START + size))), share)
    run.report(name, _rate(size, repeats, _make(generator, None), share), "events/s", baseline)
    reused = _rate(size, repeats, _make(generator, generator.buffers(size)), share)
    run.report(f"{name}, into buffers", reused, "events/s", baseline)


def _rate(size: int, repeats: int, make: Callable[[range], object], share: float) -> float:
    """Events made per second, in slices of so many events of the stream, of which a share is made.

    One slice after the other, so that small ones find the caches as a running program would.
    """
    events = max(size, SLICE // 10)

    def consecutive_slices() -> None:
        for start in range(START, START + events, size):
            make(range(start, start + size))

    return share * events / best_of(repeats, consecutive_slices, clock=time.thread_time)


def _share(generator: Generator) -> float:
    """The share of the stream's events that are of the kinds wanted: those of other kinds are not made, nor counted."""
    widths = [generator.config.place(kind)[1] for kind in generator.columns]
    return sum(widths) / generator.config.length_of_round


def _make(generator: Generator, out: Events | None) -> Callable[[range], object]:
    return lambda numbers: generator.events(numbers, out)


def _numpy_draws(events: Events) -> Callable[[range], object]:
    """The yardstick: as many columns of as many rows, uniform, without any of the meaning."""
    source = np.random.default_rng(0)
    lengths = [len(column) for table in events.values() for column in table.values()]
    return lambda numbers: [source.integers(0, 1 << 40, length) for length in lengths]
