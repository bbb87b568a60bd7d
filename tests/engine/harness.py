"""Ways to run a program, and what came out of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings

import dataflow
from dataflow.lowlevel import less_equal
from dataflow.testing import simulate

repeatable = settings(derandomize=True, deadline=None, database=None, max_examples=60)


@dataclass(frozen=True)
class Run:
    """A way to run a program in this process: really (`seed=None`), or under a seed of the simulated scheduler."""

    workers: int = 1
    seed: int | None = None
    debug: bool = False
    patience: float = 10  # seconds before it is taken to hang

    def __call__(self, main: Callable[..., Any], *args: Any) -> list[Any]:
        with failsafe(self.patience):
            if self.seed is None:
                return dataflow.execute(main, *args, workers=self.workers, in_process=True, debug=self.debug)
            return simulate(main, *args, workers=self.workers, seed=self.seed, debug=self.debug, turns=50_000)

    def __str__(self) -> str:
        way = "real" if self.seed is None else f"seed{self.seed}"
        return f"{self.workers}-{way}{'-debug' * self.debug}"


ALONE = [Run(1), Run(1, seed=0)]
TOGETHER = [Run(2), Run(3, debug=True), *(Run(2, seed=seed) for seed in range(3)), Run(3, seed=3, debug=True)]
RUNS = [*ALONE, *TOGETHER]


@contextmanager
def failsafe(seconds: float) -> Iterator[None]:
    """Turns a hang into a failure: an interrupt, which trio delivers cleanly."""
    fired = False

    def interrupt(*_: object) -> None:
        nonlocal fired
        fired = True
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except KeyboardInterrupt:
        if fired:
            pytest.fail(f"hung for {seconds} s")
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def bag(items: Iterable[Any]) -> list[Any]:
    """The items in an order of no importance, to compare what may come in any."""
    return sorted(items, key=repr)


def outcome(run: Run, build: Callable[..., Any], *inputs: Sequence[Sequence[Any]], wait: bool = True) -> list[Any]:
    """The bag of (time, record) that comes out of `build(*streams)`.

    Each input is a list of epochs, each a list of records, which are dealt to the workers in turn. Nothing may come
    out at a time that any worker's probe has seen pass.
    """
    seen: list[tuple[Any, Any]] = []
    gone: list[Any] = []

    def write(time: Any, batch: list[Any]) -> None:
        assert not any(less_equal(time, past) for past in gone), f"{time} came out after {gone} had passed"
        seen.extend((time, record) for record in batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handles, streams = zip(*(scope.input() for _ in inputs), strict=True)
            probe = build(*streams).sink(write).probe()
        for time in range(max(map(len, inputs))):
            for handle, epochs in zip(handles, inputs, strict=True):
                if time < len(epochs):
                    handle.send(epochs[time][worker.index :: worker.peers])
                handle.advance_to(time + 1)
            if wait:
                await probe.wait_passed(time)
                gone.append(time)

    run(main)
    return bag(seen)


def timed(*epochs: Iterable[Any]) -> list[Any]:
    """The expectation: the bag of (time, record), given the records of each epoch."""
    return bag((time, record) for time, records in enumerate(epochs) for record in records)


def notes(error: BaseException) -> str:
    """All that was added to an exception on its way."""
    return "\n".join(getattr(error, "__notes__", ()))
