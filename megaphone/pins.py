"""Keys that live apart from their bin: the override table beside the bins. Pure.

`Pin(key, worker)`: as of the time at which it is sent, the state and the records of one key are at a worker, wherever
its bin is or goes; `Unpin(key)`: it is in its bin again. Of several updates for one key at one time the greatest worker
wins, and any worker wins over none. Where a table maps bins, this maps the few keys that are too hot for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from megaphone.errors import ControlError

HOME = -1  # the place of a key's worker: in its bin
Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Pin:
    """As of the time at which this is sent, `key` lives at `worker`, apart from its bin."""

    key: int
    worker: int


@dataclass(frozen=True, slots=True)
class Unpin:
    """As of the time at which this is sent, `key` lives in its bin."""

    key: int


@dataclass(frozen=True, slots=True, eq=False)
class Pins:
    """Many in one: `keys[i]` lives at `workers[i]`, or in its bin where that is HOME (-1). Arrays."""

    keys: NDArray[Any]
    workers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"Pins({list(zip(self.keys.tolist(), self.workers.tolist(), strict=False))})"


def check_pins(update: Pin | Unpin | Pins, peers: int) -> Pins:
    """The update in its normal form: keys as words. ControlError says what is wrong with it."""
    if isinstance(update, Pins):
        keys, workers = np.asarray(update.keys), np.asarray(update.workers)
    else:
        keys = _one(update.key, "a key")
        workers = np.array([HOME]) if isinstance(update, Unpin) else _one(update.worker, "the number of a worker")
        if isinstance(update, Pin) and workers[0] == HOME:
            raise ControlError(f"there is no worker {HOME}: send Unpin({update.key}) to have a key in its bin again")
    for array, what in ((keys, "a key"), (workers, "the number of a worker")):
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            odd = next((v for v in np.ravel(array).tolist() if type(v) is not int), array)
            raise ControlError(f"{odd!r} is not {what}: single keys are integers, as in columns")
    if len(keys) != len(workers):
        raise ControlError(f"pins of {len(keys)} keys to {len(workers)} workers: one worker for each key")
    outside = workers[(workers < HOME) | (workers >= peers)]
    if outside.size:
        raise ControlError(f"there is no worker {int(outside[0])}: there are {peers}, from 0 to {peers - 1}")
    words = keys if keys.dtype == np.uint64 else keys.astype(np.int64).view(np.uint64)
    return Pins(np.ascontiguousarray(words), workers.astype(np.int64))


def _one(value: Any, what: str) -> NDArray[Any]:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ControlError(f"{value!r} is not {what}: single keys are integers, as in columns")
    if not -(1 << 63) <= value < 1 << 64:
        raise ControlError(f"{value} is not {what}: it has more than 64 bits")
    return np.array([value], np.int64 if value < 1 << 63 else np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class KeyMoves:
    """Keys that move at a time: from where (a worker; whether apart there), and to where."""

    keys: Keys
    origins: NDArray[np.int64]
    were_apart: NDArray[np.bool_]
    destinations: NDArray[np.int64]
    apart: NDArray[np.bool_]


class Overrides:
    """Keys with their workers, for compiled lookup. Never changed once it is made, and never empty.

    Costs: a lookup one probe or two in a table that is at most a quarter full; making it O(keys).
    """

    def __init__(self, keys: Keys, workers: NDArray[Any]) -> None:
        order = np.argsort(keys)
        self.keys: Keys = keys[order]
        self.workers = workers[order].astype(np.int64)
        size = 16
        while size < 4 * len(keys):
            size *= 2
        self.slots: Keys = np.zeros(size, np.uint64)
        self.owners = np.full(size, HOME, np.int32)
        from dataflow.columns.hashing import fill_slots  # which compiles: rows do without

        fill_slots(self.keys, self.workers, self.slots, self.owners)

    def workers_of(self, keys: Keys) -> NDArray[np.int64]:
        """The worker of each key, HOME where it lives in its bin."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.workers[at], HOME)

    def as_dict(self) -> dict[int, int]:
        """By key (as a signed integer), the worker."""
        return dict(zip(self.keys.view(np.int64).tolist(), self.workers.tolist(), strict=True))


def settle(updates: list[Pins]) -> tuple[Keys, NDArray[np.int64]]:
    """What all updates for one time say together: each key once, with the greatest worker."""
    keys, place = np.unique(np.concatenate([update.keys for update in updates]), return_inverse=True)
    workers = np.full(len(keys), HOME, np.int64)
    np.maximum.at(workers, place.reshape(-1), np.concatenate([update.workers for update in updates]))
    return keys, workers


def override(old: Overrides | None, keys: Keys, workers: NDArray[np.int64]) -> Overrides | None:
    """The table after `keys` (each once) were sent to `workers`; None if none is left in it."""
    if old is not None:
        rest = ~np.isin(old.keys, keys)
        keys, workers = np.concatenate([old.keys[rest], keys]), np.concatenate([old.workers[rest], workers])
    stay = workers != HOME
    return Overrides(keys[stay], workers[stay]) if stay.any() else None
