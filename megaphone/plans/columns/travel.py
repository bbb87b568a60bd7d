"""A bin of a join in columns as entries that travel one by one, and back.

Records travel once, in chunks of arrays. A composite is the numbers of its components among the records of its bin:
every component of a composite is in the ring of its stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dataflow.state.arrays import Ints, Words
from dataflow.state.values import Key, Value
from megaphone.plans.bins import Asked, Entries
from megaphone.plans.chains import Chain
from megaphone.plans.columns.courses import BinCourse, PlanChange, Side, Sides, TaskStage, condition
from megaphone.plans.columns.joiner import Joiner
from megaphone.plans.columns.rings import Delta
from megaphone.plans.columns.sources import Schema, SourceRing
from megaphone.plans.query import Query
from megaphone.plans.trees import Cut, Streams, decompose

_CHUNK: Final = 1 << 10  # records or composites of one entry
_SOURCE, _STATE = "source", "state"


def entries_of(joiner: Joiner, bin: int, course: BinCourse, low: int) -> Iterator[tuple[tuple[Key, ...], Value]]:
    """The rows of a bin that can still be part of a result: those that begin at `low` or later."""
    wanted = np.zeros(len(joiner.sources[0].counts), np.bool_)
    wanted[bin] = True
    sources: list[Ints] = []
    for slot, ring in enumerate(joiner.sources):
        sources.append(ring.numbers(wanted, low))
        yield from records_of(ring, slot, sources[-1])
    for streams, side in sorted(course.states, key=lambda state: (sorted(state[0]), state[1])):
        if (streams, side) not in joiner.rings:
            continue
        state = joiner.rings[streams, side]
        parts = state.fetch(state.numbers(wanted, low)).parts
        for column, slot in enumerate(joiner.slots(streams)):
            parts[:, column] = np.searchsorted(sources[slot], parts[:, column])
        for start in range(0, len(parts), _CHUNK):
            yield (_STATE, names(joiner.query, streams), side, start), [parts[start : start + _CHUNK]]


def records_of(ring: SourceRing, slot: int, numbers: Ints) -> Iterator[tuple[tuple[Key, ...], Value]]:
    """Some records of a stream."""
    if ring.schema is not None and len(numbers):
        yield ("schema", slot), ring.schema.encode()
    for start in range(0, len(numbers), _CHUNK):
        yield (_SOURCE, slot, start), ring.values_of(numbers[start : start + _CHUNK])


def install(joiner: Joiner, bin: int, entries: Entries, stamp: int) -> None:
    """Puts the rows of a bin into the rings; ValueError if they cannot be right."""
    for entry, value in entries.items():
        if entry[0] == "schema":
            joiner.sources[entry[1]].adopt(Schema.decode(value))
    chunks: dict[tuple[Key, ...], list[tuple[int, Value]]] = {}
    for entry, value in entries.items():
        if entry[0] in (_SOURCE, _STATE):
            chunks.setdefault(entry[:-1], []).append((entry[-1], value))
    firsts: list[int] = []
    for slot, ring in enumerate(joiner.sources):
        firsts.append(ring.end)
        if some := chunks.pop((_SOURCE, slot), []):
            hashes, times, values = _joined(some)
            if (hashes.view(np.uint64) >> np.uint64(joiner.shift) != bin).any():
                raise ValueError(f"a record that is not of bin {bin} arrives with it")
            _install_records(joiner, slot, hashes.view(np.uint64), times, values, stamp)
    for (_, streams, side), some in chunks.items():
        _install_composites(joiner, (frozenset(streams), side), _joined(some)[0], firsts, stamp)


def _joined(chunks: list[tuple[int, Value]]) -> list[Value]:
    """Chunks, in their order, as whole arrays."""
    in_order = [value for _, value in sorted(chunks, key=lambda chunk: chunk[0])]
    return [np.concatenate(arrays) for arrays in zip(*in_order, strict=True)]


def _install_records(joiner: Joiner, slot: int, hashes: Words, times: Ints, values: Words, stamp: int) -> None:
    ring = joiner.sources[slot]
    if ring.schema is None or values.shape != (len(hashes), len(ring.schema.names)):
        raise ValueError("records arrive without their columns")
    nothing = np.empty((len(hashes), 0), np.int64)
    ring.put(Delta(np.ascontiguousarray(hashes), times, times, nothing), stamp, values)


def _install_composites(joiner: Joiner, state: Side, parts: Ints, firsts: list[int], stamp: int) -> None:
    streams, side = state
    slots = joiner.slots(streams)
    numbers = np.ascontiguousarray(parts + np.array([firsts[slot] for slot in slots]))
    ends = np.array([joiner.sources[slot].end for slot in slots])
    if parts.shape[1:] != (len(slots),) or (parts < 0).any() or (numbers >= ends).any():
        raise ValueError(f"a composite of {' '.join(sorted(streams))} has a component that did not arrive")
    found = [joiner.sources[slot].keys_of(numbers[:, i]) for i, slot in enumerate(slots)]
    times, hashes = np.stack([time for _, time in found]), found[0][0]
    joiner.ring(streams, side).add(Delta(np.ascontiguousarray(hashes), times.min(0), times.max(0), numbers), stamp)


# Courses


def names(query: Query, streams: Streams) -> tuple[str, ...]:
    """The names of streams, in order."""
    return tuple(stream for stream in query.streams if stream in streams)


def encode_course(query: Query, course: BinCourse, queue: list[Asked]) -> Value:
    """A course, and the replans that wait, as plain data."""
    change = course.change
    told = None
    if change is not None:
        stages = [
            [
                names(query, stage.cut.streams),
                [[[names(query, c.streams), c.before] for c in chain.conditions] for chain in stage.chains],
                [names(query, streams) for streams in stage.incomplete],
            ]
            for stage in change.stages
        ]
        options = [change.share, change.background, change.paper]
        told = [str(change.tree), _sides(query, change.sides), change.method, change.time, *options, stages]
    return [str(course.tree), _sides(query, course.sides), told, [[*asked] for asked in queue]]


def _sides(query: Query, sides: Sides) -> Value:
    return sorted((names(query, streams), side) for streams, side in sides)


def decode_course(query: Query, data: Value) -> tuple[BinCourse, list[Asked]]:
    """From plain data."""
    text, sides, told, queue = data
    course = BinCourse(query.plan(text), _decoded(sides))
    if told is not None:
        new, new_sides, method, time, share, background, paper, stages = told
        tree = query.plan(new)
        cuts = decompose(course.tree, tree) if share else [Cut(tree.streams, course.tree, tree)]
        by_streams = {cut.streams: cut for cut in cuts}
        decoded = tuple(
            TaskStage(
                by_streams[frozenset(streams)],
                tuple(Chain(tuple(condition(query, frozenset(s), before) for s, before in chain)) for chain in chains),
                tuple(map(frozenset, incomplete)),
            )
            for streams, chains, incomplete in stages
        )
        change = PlanChange(tree, _decoded(new_sides), method, time, share, background, paper, decoded)
        course = BinCourse(course.tree, course.sides, change)
    return course, [Asked(*asked) for asked in queue]


def _decoded(sides: Value) -> Sides:
    return frozenset((frozenset(streams), side) for streams, side in sides)
