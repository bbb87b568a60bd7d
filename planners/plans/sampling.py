"""Statistics of a join from samples of its streams: a reservoir for each, and shares estimated from them. Pure.

A sampler sees what one worker sees of the streams in an interval; samples of several workers are merged. Costs: seeing
a batch costs a few steps for each record that is kept, not for each that comes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeAlias, TypeVar

from planners.errors import BadRequest
from planners.plans.statistics import JoinStatistics, Streams

Item = TypeVar("Item")
KeyFunction: TypeAlias = Callable[[Item], Hashable]
PairPredicate: TypeAlias = Callable[[Item, Item], bool]

ENOUGH = 30  # combinations in a sample that have the same key: with fewer, what is known of pairs says more
TRIES = 2_000  # pairs on which a predicate is tried


class Reservoir(Generic[Item]):
    """A uniform sample of all that was seen (Li's algorithm L: it knows how many records to skip)."""

    def __init__(self, size: int, chance: Random) -> None:
        self.items: list[Item] = []
        self.seen = 0
        self._size = size
        self._chance = chance
        self._weight = 1.0
        self._next = size  # the number of the next record that is kept, once it is full
        self._skip()

    def _skip(self) -> None:
        """Draws how many records pass before the next one is kept."""
        self._weight *= math.exp(math.log(1.0 - self._chance.random()) / self._size)
        below = math.log1p(-self._weight) if self._weight < 1.0 else -math.inf
        gap = math.log(1.0 - self._chance.random()) / below if below else math.inf
        self._next += 1 + math.floor(min(gap, 1e15))

    def see(self, records: Sequence[Item]) -> None:
        """More records."""
        self.keep([(place, records[number]) for place, number in self.picks(len(records))])

    def picks(self, count: int) -> list[tuple[int, int]]:
        """Which of so many more records are kept, and in which place: for those whose records are costly to make."""
        room = min(count, self._size - min(self.seen, self._size))
        picked = [(self.seen + number, number) for number in range(room)]
        while self._next - 1 < self.seen + count:
            picked.append((self._chance.randrange(self._size), self._next - 1 - self.seen))
            self._skip()
        self.seen += count
        return picked

    def keep(self, picked: Iterable[tuple[int, Item]]) -> None:
        """The records that were picked, by place."""
        for place, item in picked:
            if place < len(self.items):
                self.items[place] = item
            else:
                self.items.append(item)


@dataclass(frozen=True)
class JoinSample(Generic[Item]):
    """What a worker saw of each stream in an interval: a sample, how many there were, and in how long a time."""

    records: Mapping[str, tuple[Item, ...]]
    seen: Mapping[str, int]
    begin: float
    end: float  # after the last time

    @property
    def span(self) -> float:
        """How long it is."""
        return self.end - self.begin


@dataclass
class JoinSampler(Generic[Item]):
    """Samples the streams of a join, interval by interval."""

    streams: tuple[str, ...]
    size: int = 1_000  # records of each stream
    seed: int = 0
    _held: dict[str, Reservoir[Item]] = field(init=False)
    _chance: Random = field(init=False)
    _begin: float = field(default=math.inf, init=False)
    _end: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadRequest(f"a sample has a record at least, not {self.size!r}")
        self._chance = Random(self.seed)
        self._reset()

    def _reset(self) -> None:
        self._held = {name: Reservoir(self.size, self._chance) for name in self.streams}
        self._begin, self._end = math.inf, -math.inf

    def see(self, stream: str, time: float, records: Sequence[Item]) -> None:
        """What came in a stream at a time."""
        self._held[stream].see(records)
        self._begin, self._end = min(self._begin, time), max(self._end, time + 1)

    @property
    def span(self) -> float:
        """For how long the interval has been going on, by the times of records."""
        return max(0.0, self._end - self._begin)

    def take(self) -> JoinSample[Item]:
        """The sample of the interval, which ends; the next begins."""
        records = {name: tuple(held.items) for name, held in self._held.items()}
        sample = JoinSample(records, {n: held.seen for n, held in self._held.items()}, self._begin, self._end)
        self._reset()
        return sample


def merged(samples: Sequence[JoinSample[Item]], size: int = 1_000, seed: int = 0) -> JoinSample[Item]:
    """One sample of what several workers saw: of each as many records as its share of all."""
    chance = Random(seed)
    some = [sample for sample in samples if sample.span > 0]
    if not some:
        raise BadRequest("no sample has a record")
    records, seen = {}, {}
    for name in some[0].records:
        total = seen[name] = sum(sample.seen[name] for sample in some)
        wanted = min([size, *(total * len(s.records[name]) / s.seen[name] for s in some if s.seen[name])])
        records[name] = tuple(
            item
            for sample in some
            for item in chance.sample(
                sample.records[name], min(len(sample.records[name]), round(wanted * sample.seen[name] / max(1, total)))
            )
        )
    return JoinSample(records, seen, min(s.begin for s in some), max(s.end for s in some))


def estimate(
    sample: JoinSample[Item],
    window: float,
    key_of: KeyFunction[Item] | None = None,
    where: Mapping[tuple[str, str], PairPredicate[Item]] | None = None,
    seed: int = 0,
) -> JoinStatistics:
    """Statistics from a sample. Without a key, all records have the same.

    Shares get half a match more than was seen: never zero, since what was not seen in a sample may be there. For three
    streams and more, the product of their samples' counts by key, summed, estimates the share without bias; it is taken
    if it has enough combinations in it.
    """
    names = tuple(sample.records)
    if not sample.span > 0 or not all(sample.records.values()):
        empty = [name for name in names if not sample.records[name]]
        raise BadRequest(f"nothing was seen of {', '.join(empty) or 'any stream'}: there is nothing to estimate from")
    counts = {name: Counter(map(key_of, sample.records[name])) if key_of else None for name in names}
    same_key, together = {}, {}
    if key_of is not None:
        for streams, matches in _matches({name: count or Counter() for name, count in counts.items()}, names):
            of = math.prod(len(sample.records[name]) for name in streams)
            if len(streams) == 2:
                same_key[streams] = min(1.0, (matches + 0.5) / of)
            elif matches >= ENOUGH:
                together[streams] = matches / of
    holds = {
        frozenset(pair): _held_share(sample, pair, predicate, key_of, Random(seed))
        for pair, predicate in (where or {}).items()
    }
    rates = {name: sample.seen[name] / sample.span for name in names}
    sampled = {name: len(sample.records[name]) for name in names}
    return JoinStatistics(names, window, rates, same_key, holds, together, sampled)


def _matches(counts: Mapping[str, Counter[Hashable]], names: tuple[str, ...]) -> Iterator[tuple[Streams, int]]:
    """By two streams and more, how many combinations of sampled records have the same key."""

    def extend(first: int, streams: Streams, product: Mapping[Hashable, int]) -> Iterator[tuple[Streams, int]]:
        for i in range(first, len(names)):
            more = counts[names[i]]
            both = {key: count * more[key] for key, count in product.items() if key in more}
            grown = streams | {names[i]}
            yield grown, sum(both.values())
            if both:
                yield from extend(i + 1, grown, both)

    for i, name in enumerate(names):
        yield from extend(i + 1, frozenset((name,)), counts[name])


def _held_share(
    sample: JoinSample[Item],
    pair: tuple[str, str],
    predicate: PairPredicate[Item],
    key_of: KeyFunction[Item] | None,
    chance: Random,
) -> float:
    """The share of pairs with the same key whose predicate holds, from some of them."""
    by_key: dict[Hashable, list[Item]] = {}
    for item in sample.records[pair[1]]:
        by_key.setdefault(key_of(item) if key_of else None, []).append(item)
    ones = [one for one in sample.records[pair[0]] if (key_of(one) if key_of else None) in by_key]
    weights = [len(by_key[key_of(one) if key_of else None]) for one in ones]
    if sum(weights) <= TRIES:
        tried = [(one, other) for one in ones for other in by_key[key_of(one) if key_of else None]]
    else:
        picked = chance.choices(ones, weights, k=TRIES)
        tried = [(one, chance.choice(by_key[key_of(one) if key_of else None])) for one in picked]
    return (sum(bool(predicate(*both)) for both in tried) + 0.5) / (len(tried) + 1)
