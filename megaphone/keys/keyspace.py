"""What a single key is, and which of them are pinned: 64-bit words in columns, any plain value in rows. Pure.

A key space checks keys that somebody wants to pin, knows their bins, and keeps overrides: the keys that live apart from
their bins, each with its worker. Overrides are never changed once they are made, and never empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataflow.comm import codec
from dataflow.lowlevel import stable_hash
from dataflow.state.values import Key
from megaphone.errors import ControlError
from megaphone.keys.hashing import bin_of
from megaphone.keys.pins import HOME, Keys, Numbers, Pins

Workers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Objects: TypeAlias = NDArray[np.object_]
A = TypeVar("A", Words, Objects)  # keys, each once, as a key space compares them


class Overrides(ABC, Generic[A]):
    """Keys with their workers."""

    @abstractmethod
    def workers_of(self, keys: A) -> Workers:
        """The worker of each key, HOME where it lives in its bin."""

    @abstractmethod
    def as_dict(self) -> dict[Key, int]:
        """By key, the worker."""

    @abstractmethod
    def changed(self, keys: A, workers: Workers) -> Overrides[A] | None:
        """The overrides after `keys` (each once) were sent to `workers`; None if none is left."""


class KeySpace(ABC, Generic[A]):
    """What keys of an operator are."""

    pinnable = True

    @abstractmethod
    def check(self, keys: Keys) -> Keys:
        """Keys in the form in which they travel; ControlError names one that cannot be pinned."""

    @abstractmethod
    def bins_of(self, keys: Keys) -> Numbers:
        """The bin of each (checked) key."""

    @abstractmethod
    def settle(self, updates: Sequence[Pins]) -> tuple[A, Workers]:
        """What all updates for one time say together: each key once, with the greatest worker."""

    @abstractmethod
    def override(self, keys: A, workers: Workers) -> Overrides[A] | None:
        """The first overrides, after `keys` (each once) were sent to `workers`; None if all of these are HOME."""


class WordOverrides(Overrides[Words]):
    """Words, for compiled lookup.

    Costs: a lookup one probe, seldom two, in a table that is at most an eighth full; making it O(keys).
    """

    def __init__(self, keys: Words, workers: Workers) -> None:
        order = np.argsort(keys)
        self.keys: Words = keys[order]
        self.workers = workers[order].astype(np.int64)
        size = 16
        while size < 8 * len(keys):
            size *= 2
        self.slots: Words = np.zeros(size, np.uint64)
        self.owners = np.full(size, HOME, np.int32)
        from dataflow.columns.hashing import fill_slots  # which compiles: rows do without

        fill_slots(self.keys, self.workers, self.slots, self.owners)

    def workers_of(self, keys: Words) -> Workers:
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.workers[at], HOME)

    def as_dict(self) -> dict[Key, int]:
        return dict(zip(self.keys.view(np.int64).tolist(), self.workers.tolist(), strict=True))

    def changed(self, keys: Words, workers: Workers) -> WordOverrides | None:
        rest = ~np.isin(self.keys, keys)
        return _word_overrides(np.concatenate([self.keys[rest], keys]), np.concatenate([self.workers[rest], workers]))


def _word_overrides(keys: Words, workers: Workers) -> WordOverrides | None:
    stay = workers != HOME
    return WordOverrides(keys[stay], workers[stay]) if stay.any() else None


class WordKeys(KeySpace[Words]):
    """Keys of columns: integers of 64 bits, signed or not. With a `domain` they are dense, from 0 on. `word_of`: the
    hash of a key that is spelled out; integers are such hashes themselves then."""

    def __init__(
        self,
        name: str,
        bins_of: Callable[[Words], Numbers],
        domain: int | None = None,
        word_of: Callable[[Key], Words] | None = None,
    ) -> None:
        self._name = name
        self._bins_of = bins_of
        self._domain = domain
        self._word_of = word_of

    def check(self, keys: Keys) -> Words:
        if not isinstance(keys, np.ndarray) or keys.dtype.kind not in "iu":
            keys = np.array([self._word(key) for key in as_list(keys)], np.uint64)
        if keys.ndim != 1:
            raise ControlError(f"{self._name}: keys to pin are a list or an array of one dimension")
        words = keys if keys.dtype == np.uint64 else keys.astype(np.int64).view(np.uint64)
        if self._domain is not None and words.size and int(words.max()) >= self._domain:
            key = int(words.max().view(np.int64))
            raise ControlError(f"{self._name}: the key {key} cannot be pinned: keys are from 0 to {self._domain - 1}")
        return np.ascontiguousarray(words)

    def _word(self, key: Key) -> int:
        if self._word_of is None or isinstance(key, int | np.integer):
            return _word(key)
        try:
            return int(self._word_of(key)[0])
        except (TypeError, ValueError) as error:
            raise ControlError(f"{key!r} is not a key: {error}") from None

    def bins_of(self, keys: Keys) -> Numbers:
        return self._bins_of(self.check(keys))

    def settle(self, updates: Sequence[Pins]) -> tuple[Words, Workers]:
        given: Words = np.concatenate([np.asarray(update.keys, np.uint64) for update in updates])
        keys, place = np.unique(given, return_inverse=True)
        workers = np.full(len(keys), HOME, np.int64)
        np.maximum.at(workers, place.reshape(-1), np.concatenate([update.places for update in updates]))
        return keys, workers

    def override(self, keys: Words, workers: Workers) -> WordOverrides | None:
        return _word_overrides(keys, workers)


def _word(key: Key) -> int:
    if isinstance(key, bool | np.bool_) or not isinstance(key, int | np.integer):
        raise ControlError(f"{key!r} is not a key: single keys of columns are integers")
    if not -(1 << 63) <= key < 1 << 64:
        raise ControlError(f"{key} is not a key: it has more than 64 bits")
    return int(key) % (1 << 64)


class RowOverrides(Overrides[Objects]):
    """Any keys. A lookup is one in a dictionary, `workers`; making it O(keys)."""

    def __init__(self, workers: dict[Key, int]) -> None:
        self.workers = workers

    def workers_of(self, keys: Objects) -> Workers:
        return np.array([self.workers.get(key, HOME) for key in keys], np.int64)

    def as_dict(self) -> dict[Key, int]:
        return dict(self.workers)

    def changed(self, keys: Objects, workers: Workers) -> RowOverrides | None:
        merged = self.workers | dict(zip(keys, workers.tolist(), strict=True))
        stay = {key: worker for key, worker in merged.items() if worker != HOME}
        return RowOverrides(stay) if stay else None


class RowKeys(KeySpace[Objects]):
    """Keys of rows: plain values that can be found again in every process."""

    def __init__(self, name: str, shift: int, own: Callable[[Key], int] | None = None) -> None:
        self._name = name
        self.shift = shift
        self.own = own  # a function from keys to bins, in place of the hash

    def check(self, keys: Keys) -> tuple[Key, ...]:
        values = as_list(keys)
        for key in values:
            self._require(key)
        return tuple(values)

    def _require(self, key: Key) -> None:
        try:
            stable_hash(key)
            codec.encode(key)
        except TypeError as error:
            raise ControlError(f"{self._name}: {key!r} is not a key that can be pinned: {error}") from None
        if key != key:
            raise ControlError(f"{self._name}: {key!r} cannot be pinned: it is not equal to itself")

    def bins_of(self, keys: Keys) -> Numbers:
        return np.array([self.bin_of(key) for key in keys], np.int64)

    def bin_of(self, key: Key) -> int:
        """The bin of one key."""
        return bin_of(key, self.shift) if self.own is None else self.own(key)

    def settle(self, updates: Sequence[Pins]) -> tuple[Objects, Workers]:
        places: dict[Key, int] = {}
        for update in updates:
            for key, worker in zip(update.keys, update.places.tolist(), strict=True):
                places[key] = max(worker, places.get(key, HOME))
        return as_objects(places), np.array([*places.values()], np.int64)

    def override(self, keys: Objects, workers: Workers) -> RowOverrides | None:
        return RowOverrides({}).changed(keys, workers)


def as_list(keys: Keys) -> list[Key]:
    """Python's own values, of an array or of anything else."""
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def as_objects(keys: Collection[Key]) -> Objects:
    """An array of objects; tuples stay tuples."""
    array = np.empty(len(keys), object)
    for i, key in enumerate(keys):
        array[i] = key
    return array


class NoKeys(RowKeys):
    """Keys of rows whose state is one object per bin: none can be pinned."""

    pinnable = False

    def check(self, keys: Keys) -> tuple[Key, ...]:
        raise ControlError(
            f"{self._name}: no key can be pinned: the state of a bin is one object, of which we do not know what is "
            "whose. Say by_key=True if it is a dictionary by key; or use state_machine, or columns"
        )
