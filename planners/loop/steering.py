"""What the loop asks of a controller: Protocols, which `megaphone.Controller` satisfies. Nothing here imports it.

So planners need no engine at run time, and a test, or another engine, can stand where the controller stands.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Key: TypeAlias = Hashable  # a user's own: a word of columns, or any plain value of rows
Strategy_contra = TypeVar("Strategy_contra", contravariant=True)  # how a migration is cut into steps: only passed on


class LoadReport(Protocol):
    """What one worker counted in one interval. Arrays are by bin, and those of keys by heavy key."""

    @property
    def interval(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def span(self) -> int:
        """The interval's length in units of the dataflow's time; 0 if that is not known."""
        ...

    @property
    def until(self) -> int | None:
        """The time that the interval ends with, if `span` is known."""
        ...

    @property
    def records(self) -> NDArray[np.int64]: ...
    @property
    def elsewhere(self) -> int:
        """Records that other parts of this report have."""
        ...

    @property
    def apart(self) -> int:
        """Records of keys that live apart, which are in no bin's."""
        ...

    @property
    def per_record(self) -> float:
        """Nanoseconds that a record took."""
        ...

    @property
    def keys(self) -> Collection[Key] | NDArray[np.integer]: ...
    @property
    def key_records(self) -> NDArray[np.int64]: ...


class LoadStatistics(Protocol):
    """The last that was heard of each bin, and the last report of each worker."""

    @property
    def records(self) -> NDArray[np.int64]: ...
    @property
    def nanoseconds(self) -> NDArray[np.int64]: ...
    @property
    def bytes(self) -> NDArray[np.int64]: ...
    @property
    def heavy(self) -> Mapping[int, LoadReport]: ...


class Steerable(Protocol[Strategy_contra]):
    """An operator that can be watched and migrated: what the loop needs of a controller."""

    @property
    def configuration(self) -> Sequence[int]:
        """By finest bin, its worker."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """By bin, how many finest ones it has: 1, where bins cannot be split."""
        ...

    @property
    def pinned(self) -> Mapping[Key, int]:
        """By key that lives apart from its bin, its worker."""
        ...

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have bins, in ascending order. Numbers are missing where workers have left."""
        ...

    @property
    def pins_keys(self) -> bool:
        """Whether single keys can live apart from their bins."""
        ...

    @property
    def statistics(self) -> LoadStatistics: ...
    @property
    def busy(self) -> bool:
        """Whether a migration is under way."""
        ...

    @property
    def settled(self) -> int | None:
        """The time of the last step that is complete."""
        ...

    def bins_of(self, keys: list[Key], /) -> ArrayLike: ...

    def passed(self, time: int, /) -> bool:
        """Whether everything at `time` is done, on all workers."""
        ...

    def migrate(
        self,
        to: list[int],
        strategy: Strategy_contra | None = ...,
        pins: Mapping[Key, int | None] | None = ...,
        splits: Sequence[str] = ...,
        merges: Sequence[str] = ...,
    ) -> None:
        """Moves finest bins to where `to` says, after bins were split and merged."""
        ...

    def reshape(self, splits: Sequence[str] = ..., merges: Sequence[str] = ...) -> None:
        """Splits and merges bins."""
        ...


class WorkersAskedFor(Protocol):
    """What `worker.scale` returns, as far as the loop looks at it."""

    @property
    def done(self) -> bool:
        """Whether they have come or gone, and state is where it should be; or whether that failed."""
        ...


def as_list(keys: Collection[Key] | NDArray[np.integer]) -> list[Key]:
    """Python's own values."""
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def as_objects(keys: Collection[Key]) -> NDArray[np.object_]:
    """An array of keys of any type; tuples stay tuples."""
    array = np.empty(len(keys), np.object_)
    for i, key in enumerate(keys):
        array[i] = key
    return array
