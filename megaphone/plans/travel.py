"""A plan at work as plain data, in entries that travel one by one, and back. Pure.

Records travel once, in the entries of their streams. A composite is the numbers of its components there: every
component of a composite is in the state of its stream. Identities are kept: a record that many composites have is one
object again where it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dataflow.state.values import Key, Value
from megaphone.plans.bins import Entries
from megaphone.plans.chains import Chain
from megaphone.plans.composites import Component, Composite, of_component
from megaphone.plans.migrating import HybMig, Options, ParallelTrack, PlanMigration, Running, Task
from megaphone.plans.query import Query
from megaphone.plans.states import State
from megaphone.plans.tree_step import States
from megaphone.plans.trees import Streams, joins

_CHUNK: Final = 256  # components or composites of one entry
_PLAN, _SOURCE, _STATE, _HELD = "plan", "source", "state", "held"
_OLD, _NEW = 0, 1


def entries_of(running: Running) -> Iterator[tuple[tuple[Key, ...], Value]]:
    """A running plan as entries."""
    query, migration = running.query, running.migration
    yield (_PLAN,), [str(running.tree), running.purge_at, None if migration is None else _described(migration)]
    numbers: dict[int, int] = {}  # by the identity of a component, its place among those of its stream and key
    for slot, stream in enumerate(query.streams):
        for key, composites in running.states[frozenset((stream,))].by_key.items():
            components = [part for composite in composites if (part := composite[0][slot]) is not None]
            numbers.update({id(component): number for number, component in enumerate(components)})
            for start in range(0, len(components), _CHUNK):
                yield (_SOURCE, slot, key, start), components[start : start + _CHUNK]
    yield from _composites(_OLD, query, running.states, numbers, sources=False)
    if migration is not None:
        yield from _composites(_NEW, query, migration.states, numbers, sources=True)
        for start in range(0, len(migration.held), _CHUNK):
            yield (_HELD, start), migration.held[start : start + _CHUNK]


def _composites(
    side: int, query: Query, states: States, numbers: dict[int, int], sources: bool
) -> Iterator[tuple[tuple[Key, ...], Value]]:
    for streams, state in states.items():
        if len(streams) == 1 and not sources:
            continue
        names = _names(query, streams)
        for key, composites in state.by_key.items():
            for start in range(0, len(composites), _CHUNK):
                some = composites[start : start + _CHUNK]
                yield (
                    (_STATE, side, names, key, start),
                    [[-1 if part is None else numbers[id(part)] for part in parts] for parts, _, _ in some],
                )


def _names(query: Query, streams: Streams) -> tuple[str, ...]:
    return tuple(stream for stream in query.streams if stream in streams)


def _described(migration: PlanMigration) -> Value:
    """A migration, without its states."""
    options = migration.options
    tasks = [_task(migration.query, task) for task in migration.tasks] if isinstance(migration, HybMig) else None
    return [str(migration.tree), migration.time, [options.share, options.background, options.paper], tasks]


def _task(query: Query, task: Task) -> Value:
    chains = [[[_names(query, c.streams), c.before] for c in chain.conditions] for chain in task.chains]
    return [_names(query, task.cut.streams), chains, [_names(query, node.streams) for node in task.incomplete]]


def from_entries(query: Query, entries: Entries, phase: int) -> Running:
    """The running plan of such entries; ValueError if they cannot be right."""
    text, purge_at, described = entries.pop((_PLAN,))
    running = Running(query, query.plan(text), phase)
    running.purge_at = purge_at
    if described is not None:
        running.migration = _migration(running, *described)
    by_place = sorted(entries, key=lambda entry: int(entry[-1]))  # chunks in their order
    sources: dict[tuple[int, Key], list[Component]] = {}
    for entry in by_place:
        if entry[0] == _SOURCE:
            sources.setdefault((entry[1], entry[2]), []).extend(entries[entry])
    for (slot, key), components in sources.items():
        composites = [of_component(slot, len(query.streams), component) for component in components]
        running.states[frozenset((query.streams[slot],))].add(key, composites)
    for entry in by_place:
        if entry[0] == _STATE:
            _, side, names, key, _ = entry
            _state(running, side, names).add(key, [*_components(sources, key, entries[entry])])
        elif entry[0] == _HELD and running.migration is not None:
            running.migration.held += entries[entry]
    return running


def _state(running: Running, side: int, names: Iterable[str]) -> State:
    states = running.states if side == _OLD or running.migration is None else running.migration.states
    if frozenset(names) not in states:
        raise ValueError(f"a state of {' '.join(names)}, which the plan {running.tree} does not have")
    return states[frozenset(names)]


def _components(
    sources: dict[tuple[int, Key], list[Component]], key: Key, rows: list[list[int]]
) -> Iterator[Composite]:
    for row in rows:
        parts = tuple(None if number < 0 else sources[slot, key][number] for slot, number in enumerate(row))
        times = [part[0] for part in parts if part is not None]
        yield parts, min(times), max(times)


def _migration(running: Running, text: str, time: int, options: list[bool], tasks: Value) -> PlanMigration:
    tree = running.query.plan(text)
    if tasks is None:
        return ParallelTrack(running.query, tree, time, Options(*options))
    migration = HybMig(running, tree, time, Options(*options))
    by_streams = {frozenset(names): (chains, incomplete) for names, chains, incomplete in tasks}
    for task in migration.tasks:
        chains, incomplete = by_streams[task.cut.streams]
        task.chains = [
            Chain(tuple(migration.condition(frozenset(names), before) for names, before in chain)) for chain in chains
        ]
        left = {frozenset(names) for names in incomplete}
        task.incomplete = [node for node in joins(task.cut.new) if node.streams in left]
    return migration
