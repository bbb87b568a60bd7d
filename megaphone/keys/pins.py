"""Keys that live apart from their bin: the override table beside the bins. Pure.

`Pin(key, worker)`: as of the time at which it is sent, the state and the records of one key are at a worker, wherever
its bin is or goes; `Unpin(key)`: it is in its bin again. Of several updates for one key at one time the greatest worker
wins, and any worker wins over none. Where a table maps bins, this maps the few keys that are too hot for that. What a
key is differs between columns and rows: see `keyspace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.state.values import Key
from megaphone.errors import ControlError

Keys: TypeAlias = Sequence[Key] | NDArray[np.generic]
"""Keys as users give them: a list, a tuple or an array."""
Numbers: TypeAlias = NDArray[np.int64]

HOME = -1  # the place of a key's worker: in its bin


@dataclass(frozen=True, slots=True)
class Pin:
    """As of the time at which this is sent, `key` lives at `worker`, apart from its bin."""

    key: Key  # an integer in columns, any plain value in rows
    worker: int
    operator: str = field(default="", repr=False)  # whom it is for; all operators on the stream, if it does not say

    def renumbered(self, workers: int) -> Pin:
        """The same, where there are other workers now."""
        return replace(self, worker=self.worker % workers)


@dataclass(frozen=True, slots=True)
class Unpin:
    """As of the time at which this is sent, `key` lives in its bin."""

    key: Key
    operator: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Pins:
    """Many in one: `keys[i]` lives at `workers[i]`, or in its bin where that is HOME (-1). Arrays or lists."""

    keys: Keys
    workers: Sequence[int] | NDArray[np.integer]
    operator: str = field(default="", repr=False)

    def renumbered(self, workers: int) -> Pins:
        """The same, where there are other workers now."""
        return replace(self, workers=np.where(self.places == HOME, HOME, self.places % workers))

    @property
    def places(self) -> Numbers:
        """By key, its worker or HOME."""
        return np.asarray(self.workers, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        keys, workers = (of.tolist() if isinstance(of, np.ndarray) else of for of in (self.keys, self.workers))
        return f"Pins({list(zip(keys, workers, strict=False))})"


def check_pins(update: Pin | Unpin | Pins, peers: int) -> Pins:
    """The update as `Pins`; ControlError says what is wrong with its workers. What a key is, the operator knows."""
    if isinstance(update, Pins):
        keys, workers = update.keys, _numbers(update.workers)
    else:
        keys = [update.key]
        workers = _numbers([HOME if isinstance(update, Unpin) else update.worker])
        if isinstance(update, Pin) and workers.tolist() == [HOME]:
            raise ControlError(f"there is no worker {HOME}: send Unpin({update.key!r}) to have a key in its bin again")
    if workers.ndim != 1 or (workers.dtype.kind not in "iu" and workers.size):
        odd = next((value for value in np.ravel(workers).tolist() if type(value) is not int), workers.tolist())
        raise ControlError(f"{repr(odd)[:100]} is not the number of a worker")
    if len(keys) != len(workers):
        raise ControlError(f"pins of {len(keys)} keys to {len(workers)} workers: one worker for each key")
    outside = next((worker for worker in workers.tolist() if not HOME <= worker < peers), None)
    if outside is not None:
        raise ControlError(f"there is no worker {outside}: there are {peers}, from 0 to {peers - 1}")
    return Pins(keys, workers.astype(np.int64), update.operator)


def _numbers(workers: Sequence[object] | NDArray[np.generic]) -> NDArray[np.generic]:
    """An array of these, whatever they are."""
    try:
        return np.asarray(workers)
    except ValueError:  # lists of different lengths
        return np.array([repr(worker) for worker in workers])


@dataclass(frozen=True, slots=True, eq=False)
class KeyMoves:
    """Keys that move at a time: from where (a worker; whether apart there), and to where."""

    keys: NDArray[np.uint64] | NDArray[np.object_]
    origins: NDArray[np.int64]
    were_apart: NDArray[np.bool_]
    destinations: NDArray[np.int64]
    apart: NDArray[np.bool_]
