"""What a program sees of changes: a request to scale and how far it has come; who is there, as of which time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from dataflow.members.following import CannotScale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Members:
    """Who takes part, as of a time of the first dataflow (None: from the beginning)."""

    workers: tuple[int, ...]
    time: int | None = None


@dataclass(frozen=True, eq=False)
class Places:
    """What a placement is given of an operator: where its shards are, the workers that may have some, and by shard the
    records and bytes that were last reported."""

    operator: str
    workers: Sequence[int]
    table: NDArray[np.integer]
    records: NDArray[np.integer]
    bytes: NDArray[np.integer]


Placement = Callable[[Places], Sequence[int]]
"""By shard, the worker where it shall be."""


@dataclass(eq=False)
class ScaleChange:
    """A request for another number of workers, as far as it has come. `await wait()` until it is done."""

    target: tuple[int, ...] | int  # how many workers there shall be; or those that shall leave
    state: str = "asked"  # then starting, moving, leaving; and done, or failed
    time: int | None = None  # from which on the new membership holds, once that is known
    error: str | None = None
    progress: float = 0.0  # of the state that moves, from 0 to 1
    seconds: float | None = None  # from asking until the workers that join had joined, or those that leave had left
    first_record: float | None = None  # seconds from asking until a worker that joins got its first record
    pause: float | None = None  # seconds for which all workers stood still, the longest time that they did
    _over: trio.Event = field(default_factory=trio.Event, repr=False)

    @property
    def done(self) -> bool:
        """Whether it is in effect, and state is where it should be; or whether it has failed."""
        return self.state in ("done", "failed")

    def moved(self, state: str, error: str | None = None) -> None:
        """For those who carry it out."""
        self.state, self.error = state, error
        if self.done:
            self._over.set()

    async def over(self) -> None:
        """Waits until it is done, or has failed."""
        await self._over.wait()

    async def wait(self) -> None:
        """Waits until it is done; CannotScale if it failed, and why. Not for a main that must go on feeding inputs."""
        await self._over.wait()
        if self.state == "failed":
            raise CannotScale(self.error or "the run has ended")


def even(places: Places) -> list[int]:
    """The placement unless another is asked for: as many shards on each worker, moving as few as that takes.

    >>> import numpy as np
    >>> even(Places("", (0, 1, 2), np.array([0, 1, 0, 1, 0, 1]), np.zeros(6), np.zeros(6)))
    [0, 1, 0, 1, 2, 2]
    >>> even(Places("", (0, 2), np.array([0, 1, 0, 1, 2, 2]), np.zeros(6), np.zeros(6)))
    [0, 0, 0, 2, 2, 2]
    """
    return spread([int(worker) for worker in places.table], places.workers)


def spread(table: Sequence[int], workers: Sequence[int]) -> list[int]:
    """Where each of some things shall be, by where it is: as many on each worker, moving as few as that takes.

    >>> spread([3, 3, 3, 0], (0, 3)), spread([3], (0, 3))
    ([3, 3, 0, 0], [3])
    """
    found = list(table)
    has = Counter(found)
    few, extra = divmod(len(found), len(workers))
    most_first = sorted(workers, key=lambda worker: (-has[worker], worker))
    room = {worker: few + (place < extra) for place, worker in enumerate(most_first)}
    moving = []
    for place, worker in enumerate(found):
        if room.get(worker, 0) > 0:
            room[worker] -= 1
        else:
            moving.append(place)
    free = [worker for worker in sorted(workers) for _ in range(room[worker])]
    for place, worker in zip(moving, free, strict=True):
        found[place] = worker
    return found
