"""The schedule of an open-loop load: when each record is due, whatever the system does.

Record n of the whole run is due n / rate seconds after the start. An epoch is so many nanoseconds of that schedule; it
is sent when it ends, with the records that were due within it. All arithmetic is in integers, so nothing drifts: after
any number of epochs exactly as many records are due as the rate says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TypedDict, overload

import numpy as np
import numpy.typing as npt

SECOND = 1_000_000_000  # nanoseconds

Ints = npt.NDArray[np.int64]


class PlainSchedule(TypedDict):
    """A schedule as plain data: what it was made of."""

    rate: float
    duration: float
    epoch: float
    workers: int
    first: int
    ticks: int


@dataclass(frozen=True)
class LoadSchedule:
    """A fixed rate for a fixed time, in epochs, for some workers. Every question costs O(1), or O(1) for each epoch.

    `rate` is in records per second of all workers together (exact to a thousandth); `duration` and `epoch` are in
    seconds. Epoch e has the dataflow's times from `first + e * ticks` to before `first + (e + 1) * ticks`.

    >>> schedule = LoadSchedule(rate=2500, duration=1, workers=2)
    >>> schedule.epochs, schedule.records
    (1000, 2500)
    >>> [schedule.count(epoch) for epoch in range(4)]
    [3, 2, 3, 2]
    >>> [schedule.share(0, worker) for worker in range(2)], [schedule.share(1, worker) for worker in range(2)]
    ([(0, 2), (2, 3)], [(4, 5), (3, 4)])
    """

    rate: float | Fraction
    duration: float
    epoch: float = 0.001
    workers: int = 1
    first: int = 0
    ticks: int = 1
    epoch_ns: int = field(init=False, repr=False, compare=False)
    epochs: int = field(init=False, repr=False, compare=False)  # how many; the last may reach beyond the duration
    # invariant: _records / _epochs is the rate in records per epoch, in lowest terms
    _records: int = field(init=False, repr=False, compare=False)
    _epochs: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("rate", "duration", "epoch"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        for name, least in (("workers", 1), ("ticks", 1), ("first", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
        rate = Fraction(self.rate).limit_denominator(1000)
        epoch_ns = round(self.epoch * SECOND)
        if epoch_ns < 1 or not rate:
            raise ValueError(f"an epoch of {self.epoch} s or a rate of {self.rate} records/s is too small to schedule")
        per_epoch = rate * epoch_ns / SECOND
        object.__setattr__(self, "_records", per_epoch.numerator)
        object.__setattr__(self, "_epochs", per_epoch.denominator)
        object.__setattr__(self, "epoch_ns", epoch_ns)
        duration_ns = Fraction(self.duration).limit_denominator(SECOND) * SECOND
        object.__setattr__(self, "epochs", ceil(duration_ns / epoch_ns))
        if per_epoch.numerator * epoch_ns >= 1 << 62:
            raise ValueError(f"{self.rate} records/s in epochs of {self.epoch} s: too many records an epoch")

    # When

    @property
    def length_ns(self) -> int:
        """When the last epoch ends, in nanoseconds since the start."""
        return self.epochs * self.epoch_ns

    def due(self, elapsed: float) -> int:
        """How many epochs are due `elapsed` seconds after the start: those that have ended, and no more than there
        are.

        >>> schedule = LoadSchedule(rate=1000, duration=0.01)
        >>> [schedule.due(seconds) for seconds in (-1.0, 0.0, 0.000999, 0.001, 5.0)]
        [0, 0, 0, 1, 10]
        """
        return max(0, min(self.epochs, round(elapsed * SECOND) // self.epoch_ns))

    def due_at(self, epoch: int) -> float:
        """Seconds after the start at which an epoch is to be sent: when it ends."""
        return (epoch + 1) * self.epoch_ns / SECOND

    # In the dataflow's time

    def time(self, epoch: int) -> int:
        """The dataflow's time at which an epoch's records are sent."""
        return self.first + epoch * self.ticks

    def last_time(self, epoch: int) -> int:
        """The last of the dataflow's times that belong to an epoch: once it has passed, the epoch is complete."""
        return self.time(epoch + 1) - 1

    def completed(self, frontier: int) -> int:
        """How many epochs are complete when the dataflow's frontier is there."""
        return max(0, (frontier - self.first) // self.ticks)

    # Which records

    @property
    def records(self) -> int:
        """Of all epochs and workers."""
        return self.first_record(self.epochs)

    def first_record(self, epoch: int) -> int:
        """The number of the first record that is due in this epoch or after it."""
        return -(-epoch * self._records // self._epochs)

    def count(self, epoch: int) -> int:
        """How many records an epoch has, over all workers."""
        return self.first_record(epoch + 1) - self.first_record(epoch)

    def share(self, epoch: int, worker: int) -> tuple[int, int]:
        """A worker's records in an epoch: from this number to before that one.

        Each has a contiguous part. Who gets one more than the others goes round, from where the last epoch stopped: at
        no time has any worker had two records more than another.
        """
        begin, end = self.first_record(epoch), self.first_record(epoch + 1)
        base, extra = divmod(end - begin, self.workers)
        position = (worker - begin) % self.workers
        low = begin + position * base + min(position, extra)
        return low, low + base + (position < extra)

    def shares(self, epochs: Ints, worker: int) -> tuple[Ints, Ints]:
        """`share` of many epochs at once."""
        begin, end = -(-epochs * self._records // self._epochs), -(-(epochs + 1) * self._records // self._epochs)
        base, extra = np.divmod(end - begin, self.workers)
        position = (worker - begin) % self.workers
        low = begin + position * base + np.minimum(position, extra)
        return low, low + base + (position < extra)

    @overload
    def offset(self, record: int, epoch: int) -> int: ...

    @overload
    def offset(self, record: Ints, epoch: Ints | int) -> Ints: ...

    def offset(self, record: Ints | int, epoch: Ints | int) -> Ints | int:
        """Nanoseconds from the start of an epoch to when one of its records is due, rounded down. Also for arrays."""
        return (record * self._epochs - epoch * self._records) * self.epoch_ns // self._records

    def due_ns(self, record: int) -> int:
        """When a record is due, in nanoseconds since the start, rounded down.

        >>> [LoadSchedule(rate=7, duration=10).due_ns(n) for n in (1, 2, 3, 49, 50)]
        [142857142, 285714285, 428571428, 7000000000, 7142857142]
        """
        return record * self._epochs * self.epoch_ns // self._records

    @overload
    def due_by(self, offset: int, epoch: int) -> int: ...

    @overload
    def due_by(self, offset: Ints, epoch: Ints | int) -> Ints: ...

    def due_by(self, offset: Ints | int, epoch: Ints | int) -> Ints | int:
        """The first record that is due later than `offset` nanoseconds into an epoch. The inverse of `offset`.

        For offsets within the epoch, and -1; also for arrays.
        """
        return (epoch * self._records + ((offset + 1) * self._records - 1) // self.epoch_ns) // self._epochs + 1

    # As plain data

    def to_dict(self) -> PlainSchedule:
        """What the schedule was made of, as plain data."""
        rate = Fraction(self.rate).limit_denominator(1000)
        return {
            "rate": float(rate) if rate.denominator > 1 else int(rate),
            "duration": float(self.duration),
            "epoch": float(self.epoch),
            "workers": self.workers,
            "first": self.first,
            "ticks": self.ticks,
        }

    @classmethod
    def from_dict(cls, plain: PlainSchedule) -> LoadSchedule:
        """The schedule that `to_dict` described."""
        return cls(**plain)
