"""Where operators are in the picture of a graph: in layers, from left to right, with few crossings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_SWEEPS = 4
_ROOM = 2000  # invisible places


def place(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """By operator, its layer and its place in it, around 0. O(edges) for each of a few sweeps.

    >>> place(3, [(0, 1), (1, 2)])
    [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]
    >>> place(3, [(0, 1), (0, 2)])
    [(0.0, 0.0), (1.0, -0.5), (1.0, 0.5)]
    """
    forward = _without_loops(count, edges)
    layer = _layers(count, forward)
    forward = _with_room(layer, forward)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    _order(rows, len(layer), forward)
    places = [(0.0, 0.0)] * len(layer)
    for number, row in enumerate(rows):
        for at, node in enumerate(row):
            places[node] = (float(number), at - (len(row) - 1) / 2)
    return places[:count]


def _without_loops(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges, without those that close a loop: found from the first operators on, depth first."""
    following: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        if a != b:
            following[a].append(b)
    state = [0] * count  # 1: on the way that is followed, 2: done
    kept: list[tuple[int, int]] = []
    for start in range(count):
        if state[start]:
            continue
        state[start] = 1
        stack = [(start, iter(following[start]))]
        while stack:
            here, rest = stack[-1]
            there = next(rest, None)
            if there is None:
                state[here] = 2
                stack.pop()
            elif state[there] != 1:
                kept.append((here, there))
                if not state[there]:
                    state[there] = 1
                    stack.append((there, iter(following[there])))
    return kept


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """By operator, the length of the longest way to it."""
    following: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for a, b in edges:
        following[a].append(b)
        missing[b] += 1
    layer = [0] * count
    ready = [node for node in range(count) if not missing[node]]
    while ready:
        here = ready.pop()
        for there in following[here]:
            layer[there] = max(layer[there], layer[here] + 1)
            missing[there] -= 1
            if not missing[there]:
                ready.append(there)
    return layer


def _with_room(layer: list[int], edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Edges, cut where they pass other layers: something invisible is put there, so that there is room for them. It is
    added to `layer`. Long graphs get none."""
    if sum(layer[b] - layer[a] - 1 for a, b in edges) > _ROOM:
        return list(edges)
    found = []
    for a, b in edges:
        here = a
        for between in range(layer[a] + 1, layer[b]):
            layer.append(between)
            found.append((here, len(layer) - 1))
            here = len(layer) - 1
        found.append((here, b))
    return found


def _order(rows: list[list[int]], count: int, edges: Sequence[tuple[int, int]]) -> None:
    """Puts each operator near the mean place of its neighbours: those before it, and then those after it."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    at = [0.0] * count
    for row in rows:
        _number(row, at)
    for sweep in range(_SWEEPS):
        near, order = (before, rows) if sweep % 2 == 0 else (after, rows[::-1])
        for row in order:
            row.sort(key=lambda node: _mean([at[each] for each in near[node]], at[node]))
            _number(row, at)


def _number(row: Sequence[int], at: list[float]) -> None:
    for place, node in enumerate(row):
        at[node] = place - (len(row) - 1) / 2


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
