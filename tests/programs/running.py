"""What the programs share: how they are run, how they are fed, and how results are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import trio

import dataflow
from dataflow.testing import simulate

Epochs = Sequence[Sequence[Any]]  # the records of epoch 0, of epoch 1, ...

CLOSED = "closed"  # the next epoch is sent when the last one is complete everywhere
OPEN = "open"  # everything is sent at once
STEPPED = "stepped"  # main steps its worker itself, now and then
UNEVEN = "uneven"  # some workers are far ahead of others
PACES = (CLOSED, OPEN, STEPPED, UNEVEN)


class Run(Protocol):
    """Runs a main on each worker and returns what each of them returned."""

    @property
    def workers(self) -> int: ...

    def __call__(self, main: Any, *args: Any, workers: int | None = None) -> list[Any]: ...


@dataclass(frozen=True)
class Simulated:
    """Under the seeded scheduler, with some workers late: mains that wait for nothing would all start in one turn."""

    workers: int
    seed: int
    debug: bool = False
    trace: list[Any] | None = field(default=None, repr=False)  # collects every turn

    def __call__(self, main: Any, *args: Any, workers: int | None = None) -> list[Any]:
        workers = workers or self.workers

        async def late(worker: dataflow.Worker) -> Any:
            for _ in range(Random(f"{self.seed} {worker.index}").choice((0, 0, 1, 5, 20))):
                await trio.lowlevel.checkpoint()
            return await main(worker, *args)

        return simulate(late, workers=workers, seed=self.seed, debug=self.debug, trace=self.trace)


@dataclass(frozen=True)
class Executed:
    """As users run programs: with all workers in this process, or in a process each."""

    workers: int
    debug: bool = False
    in_process: bool = True

    def __call__(self, main: Any, *args: Any, workers: int | None = None) -> list[Any]:
        workers = workers or self.workers
        return dataflow.execute(main, *args, workers=workers, debug=self.debug, in_process=self.in_process)


# ------------------------------------------------------------------------------------------------------------- feeding


def share(records: Sequence[Any], worker: dataflow.Worker) -> Sequence[Any]:
    """The part of the records that this worker sends."""
    return records[worker.index :: worker.peers]


async def feed(
    worker: dataflow.Worker,
    pace: str,
    probe: dataflow.Probe,
    *inputs: tuple[dataflow.InputHandle, Epochs],
) -> None:
    """Sends this worker's share of each epoch, in two batches, to every input; closes them at the end."""
    last = max(len(epochs) for _, epochs in inputs) - 1
    for epoch in range(last + 1):
        for half in (0, 1):
            for handle, epochs in inputs:
                handle.advance_to(epoch)
                records = share(epochs[epoch], worker) if epoch < len(epochs) else []
                handle.send(records[half::2])
            await _pause(worker, pace, epoch)
        for handle, _ in inputs:
            handle.advance_to(epoch + 1)
        if pace == CLOSED:
            await probe.wait_passed(epoch)
    for handle, _ in inputs:
        handle.close()


async def _pause(worker: dataflow.Worker, pace: str, epoch: int) -> None:
    if pace == STEPPED:
        await worker.step()
    elif pace == UNEVEN:
        for _ in range((worker.index + epoch) % worker.peers * 3):
            await trio.lowlevel.checkpoint()


# ------------------------------------------------------------------------------------------------------------- results


class Mismatch(AssertionError):
    """A program's results are not those of its oracle."""


def gathered(results: Iterable[Iterable[Any]]) -> Counter[Any]:
    """The multiset of what all workers returned."""
    return Counter(item for result in results for item in result)


def require_same(found: Counter[Any], expected: Counter[Any]) -> None:
    """Mismatch, with the difference, unless both are the same multiset."""
    if found != expected:
        missing, extra = expected - found, found - expected
        raise Mismatch(f"missing: {_some(missing)}; not expected: {_some(extra)}; {expected.total()} expected in all")


def require(condition: object, why: str) -> None:
    """Mismatch unless the condition holds (pytest explains plain asserts in test files only)."""
    if not condition:
        raise Mismatch(why)


def _some(items: Counter[Any]) -> str:
    shown = sorted(items.elements(), key=repr)[:8]
    return f"{shown}{' ...' if items.total() > len(shown) else ''}"


# ------------------------------------------------------------------------------------------------------- random inputs


def random_epochs(chance: Random, record: Any, epochs: int = 4, size: int = 12) -> list[list[Any]]:
    """Up to `epochs` epochs of up to `size` records each, made by `record(chance)`; some epochs are empty."""
    counts = [chance.choice((0, 1, chance.randint(2, size))) for _ in range(chance.randint(1, epochs))]
    return [[record(chance) for _ in range(count)] for count in counts]


def random_edge(nodes: int) -> Any:
    """A maker of edges between so many nodes."""
    return lambda chance: (chance.randrange(nodes), chance.randrange(nodes))
