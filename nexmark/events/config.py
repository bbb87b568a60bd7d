"""What can be chosen about the stream of events, checked when it is chosen."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

SECOND = 1_000_000_000  # nanoseconds, the unit of all times here
FIRST_ID = 1000  # of persons and of auctions alike
SCRAMBLE = 953  # the prime that reorders events within a group
LEAD = 10  # so many persons and auctions are referred to before they exist
HOT_BLOCK = 100  # one in so many persons and auctions becomes a hot one

_LARGEST = 2**32 - 100  # what a draw chooses from is to be below 2**32
_END_OF_TIME = 2**62  # times stay below, so that sums of a time and a window do not overflow


@dataclass(frozen=True)
class Config:
    """The options of the generator. Two equal ones give the same events, on any machine.

    Events come in rounds of `persons + auctions + bids`, in this order. A hot ratio of r makes all but one in r choices
    go to the hot seller, auction or bidder; 1 means that nothing is hot.

    >>> Config(rate=10_000).length_of_round
    50
    >>> Config(hot_bidder_ratio=0)
    Traceback (most recent call last):
    ...
    ValueError: hot_bidder_ratio is 0; it must be from 1 (nothing is hot) to 4294967196
    """

    seed: int = 0
    rate: float = 1_000_000  # events per second of event time
    base_time: int = 0  # the time of event 0, in nanoseconds
    group: int = 1  # events of a group of so many come out of order
    persons: int = 1
    auctions: int = 3
    bids: int = 46
    in_flight: int = 100  # in-flight auctions: how many are open at a time, about
    active_people: int = 1000  # the newest so many persons sell and bid
    hot_seller_ratio: int = 4
    hot_auction_ratio: int = 2
    hot_bidder_ratio: int = 4

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_number(field.name, getattr(self, field.name), whole=field.name != "rate")
        _check_range("seed", self.seed, 0, 2**64 - 1)
        _check_range("base_time", self.base_time, 0, _END_OF_TIME - 1, " nanoseconds")
        _check_range("group", self.group, 1, _LARGEST, hint="1 (events come in order)")
        if self.group % SCRAMBLE == 0:
            raise ValueError(
                f"group is {self.group}, a multiple of {SCRAMBLE}, with which some events would come twice and others "
                f"never; take {self.group + 1}"
            )
        self._check_proportions()
        for name in ("hot_seller_ratio", "hot_auction_ratio", "hot_bidder_ratio"):
            _check_range(name, getattr(self, name), 1, _LARGEST, hint="1 (nothing is hot)")
        _check_range("in_flight", self.in_flight, 0, _LARGEST)
        _check_range("active_people", self.active_people, 1, _LARGEST)
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"rate is {self.rate}; it must be a number of events per second above 0")
        if max(1, self.horizon_events) * self.delay >= _END_OF_TIME / 4:
            raise ValueError(
                f"at {self.rate} events per second, {self.in_flight} auctions in flight would stay open for decades; "
                "raise rate or lower in_flight"
            )

    def _check_proportions(self) -> None:
        for name, least in (("persons", 1), ("auctions", 1), ("bids", 0)):
            value = getattr(self, name)
            if not least <= value <= _LARGEST:
                raise ValueError(
                    f"{name} is {value}; a round has at least one person and one auction, for bids refer to them, and "
                    f"at most {_LARGEST} of each (to be given bids alone, ask the generator for bids alone)"
                )

    @property
    def length_of_round(self) -> int:
        """After so many events the kinds repeat."""
        return self.persons + self.auctions + self.bids

    @property
    def delay(self) -> float:
        """Nanoseconds from one event to the next."""
        return SECOND / self.rate

    @property
    def horizon_events(self) -> int:
        """An auction stays open for about so many events: as many as open `in_flight` others."""
        return self.in_flight * self.length_of_round // self.auctions

    @property
    def most_events(self) -> int:
        """So many events can be made before times no longer fit."""
        room = (_END_OF_TIME - self.base_time) / self.delay - 3 * self.horizon_events
        return max(0, min(int(room), _END_OF_TIME // SCRAMBLE) // self.group * self.group)

    def place(self, kind: str) -> tuple[int, int]:
        """Where in a round the events of a kind are: after how many others, and how many.

        >>> Config().place("bid")
        (4, 46)
        """
        match kind:
            case "person":
                return 0, self.persons
            case "auction":
                return self.persons, self.auctions
            case "bid":
                return self.persons + self.auctions, self.bids
        raise LookupError(f"there is no kind of event {kind!r}; there are person, auction and bid")

    def time_of(self, event: int) -> int:
        """The event time of an event id, in nanoseconds.

        >>> [Config(rate=7).time_of(n) for n in (1, 2, 49)]
        [142857142, 285714285, 7000000000]
        """
        return self.base_time + int(event * self.delay)


def _check_number(name: str, value: object, whole: bool) -> None:
    allowed = (int,) if whole else (int, float)
    if not isinstance(value, allowed) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be a {'whole number' if whole else 'number'}")


def _check_range(name: str, value: int, least: int, most: int, unit: str = "", hint: str = "") -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}; it must be from {hint or least} to {most}{unit}")
