"""The graphs of a run as they are drawn: what changes only when a dataflow begins or ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from dataflow.page.layers import place
from dataflow.page.seeing import names_of
from dataflow.run.readings import DataflowReading, WorkerReading

Plain: TypeAlias = dict[str, object]
ShapeKey: TypeAlias = tuple[tuple[str, tuple[str, ...], tuple[tuple[int, int, int, int], ...]], ...]


def shape_key(workers: Sequence[WorkerReading]) -> ShapeKey:
    """What the shapes depend on: names and edges."""
    return tuple((part.name, tuple(each.name for each in part.operators), edges_of(part)) for part in _first(workers))


def shapes(key: ShapeKey) -> list[Plain]:
    """By dataflow, its operators with their places, and its edges: [source, its output, target, its input]. An edge
    from nowhere has the source -1."""
    found: list[Plain] = []
    for name, operators, edges in key:
        places = place(len(operators), [(source, target) for source, _, target, _ in edges if source >= 0])
        named = [{"name": operator, "x": x, "y": y} for operator, (x, y) in zip(operators, places, strict=True)]
        found.append({"name": name, "operators": named, "edges": [list(edge) for edge in edges]})
    return found


def edges_of(part: DataflowReading) -> tuple[tuple[int, int, int, int], ...]:
    """In the order of operators and their inputs."""
    return tuple(
        (edge.source, edge.source_port, each.number, edge.port) for each in part.operators for edge in each.edges
    )


def _first(workers: Sequence[WorkerReading]) -> list[DataflowReading]:
    """One part of each dataflow: all workers build the same."""
    return [
        next(part for worker in workers for part in worker.dataflows if part.name == name) for name in names_of(workers)
    ]
