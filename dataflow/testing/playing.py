"""What comes out of a few operators: for tests of a function from streams to a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from dataflow.testing.simulating import simulate
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.stream import Stream
    from dataflow.run.worker import Worker

D = TypeVar("D")


def play(
    build: Callable[..., Stream[D]], *inputs: Sequence[Iterable[Record]], workers: int = 2, seed: int = 0
) -> list[tuple[Time, D]]:
    """(time, record) of what comes out of `build(stream, ...)`, sorted by what they look like.

    Each input is a list of epochs: the records at time 0, at time 1, and so on, dealt to the workers in turn. Nothing
    may come out at a time that is complete: that would be an error of an operator.

    >>> play(lambda words: words.count(key=str.lower), [["To", "be"], ["to"]], workers=3, seed=7)
    [(0, ('be', 1)), (0, ('to', 1)), (1, ('to', 1))]
    """
    epochs = max(map(len, inputs), default=0)
    found: list[tuple[Time, D]] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handles, streams = [], []
            for _ in inputs:
                handle, stream = scope.input()
                handles.append(handle)
                streams.append(stream)
            out = build(*streams)
            out.inspect(lambda time, record: found.append((time, record)))
            probe = out.probe()
        for time in range(epochs):
            for handle, given in zip(handles, inputs, strict=True):
                if time < len(given):
                    handle.send(list(given[time])[worker.index :: workers])
                handle.advance_to(time + 1)
            await probe.wait_passed(time - 2)

    simulate(main, workers=workers, seed=seed)
    return sorted(found, key=repr)
