"""The smallest program found that still fails: parts are left out one by one while the failure stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from tests.fuzz.description import Control, Feed, Flow, Node, Program, Ref, replayed

T = TypeVar("T")
PATIENCE = 300  # programs that are tried


def shrink(program: Program, way: Callable[[Program], None], failure: BaseException) -> Program:
    """Leaves out whatever can be left out with the same failure left (of wrong rows, any)."""
    tries = 0
    smaller = True
    while smaller and tries < PATIENCE:
        smaller = False
        for candidate in _candidates(program):
            tries += 1
            if tries > PATIENCE:
                break
            if candidate != program and _fails(candidate, way, failure):
                program, smaller = candidate, True
                break
    return program


def _fails(program: Program, way: Callable[[Program], None], failure: BaseException) -> bool:
    try:
        way(program)
    except AssertionError as error:
        return type(error) is type(failure)
    except Exception as error:
        return type(error) is type(failure) and str(error)[:40] == str(failure)[:40]
    return False


def _candidates(program: Program) -> Iterator[Program]:
    """Programs with a little less in them, the boldest cuts first."""
    if len(program.flows) > 1:
        for i in reversed(range(len(program.flows))):
            if not replayed(program, i):
                yield replace(program, flows=_without_flow(program.flows, i))
    for i, flow in enumerate(program.flows):
        for smaller in _smaller_flows(flow, replayed(program, i)):
            yield replace(program, flows=(*program.flows[:i], smaller, *program.flows[i + 1 :]))
    if program.lazy:
        yield replace(program, lazy=frozenset())


def _without_flow(flows: tuple[Flow, ...], gone: int) -> tuple[Flow, ...]:
    def renumbered(node: Node) -> Node:
        if node.kind != "replay" or node.numbers[0] < gone:
            return node
        return replace(node, numbers=(node.numbers[0] - 1, *node.numbers[1:]))

    kept = [*flows[:gone], *flows[gone + 1 :]]
    return tuple(replace(flow, nodes=tuple(renumbered(node) for node in flow.nodes)) for flow in kept)


def _smaller_flows(flow: Flow, captured: set[Ref]) -> Iterator[Flow]:
    used = {ref[0] for node in flow.nodes for ref in node.inputs} | {ref[0] for ref in captured}
    if flow.nodes[-1].kind != "input" and len(flow.nodes) - 1 not in used:
        last = len(flow.nodes) - 1
        watched = {ref for ref in flow.watched if ref[0] != last} | set(flow.nodes[last].inputs)
        yield replace(flow, nodes=flow.nodes[:-1], watched=tuple(sorted(watched)))
    for ref in flow.watched:
        if ref not in captured and len(flow.watched) > 1:
            yield replace(flow, watched=tuple(r for r in flow.watched if r != ref))
    for i, node in enumerate(flow.nodes):
        for ref in node.inputs:
            if len(node.inputs) == 1 and flow.nodes[ref[0]].form == node.form and i not in {c for c, _ in captured}:
                yield _bypassed(flow, i, ref)
    for i, feed in enumerate(flow.feeds):
        for sends in _fewer(feed.sends):
            smaller: Feed = replace(feed, sends=sends)
            yield replace(flow, feeds=(*flow.feeds[:i], smaller, *flow.feeds[i + 1 :]))
    for i, control in enumerate(flow.controls):
        for updates in _fewer(control.updates):
            quieter: Control = replace(control, updates=updates)
            yield replace(flow, controls=(*flow.controls[:i], quieter, *flow.controls[i + 1 :]))


def _bypassed(flow: Flow, number: int, instead: Ref) -> Flow:
    """Whoever reads a node reads what it reads."""

    def read(ref: Ref) -> Ref:
        return instead if ref[0] == number else ref

    nodes = tuple(replace(node, inputs=tuple(map(read, node.inputs))) for node in flow.nodes)
    return replace(flow, nodes=nodes, watched=tuple(dict.fromkeys(map(read, flow.watched))))


def _fewer(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without the one half, without the other, without each."""
    if len(items) > 2:
        yield items[: len(items) // 2]
        yield items[len(items) // 2 :]
    for i in range(len(items)):
        yield items[:i] + items[i + 1 :]
