"""A recoverable program as data: nothing of the engine in it.

Every stream carries (key, value) records. Where a record comes from, and at which time, does not depend on the number
of workers: inputs have *slots*, and worker w of n feeds those with slot % n == w; sources have partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.fuzz.description import COLUMNS, ROWS, Bag, Node, Record, Ref

__all__ = ["COLUMNS", "ROWS", "Bag", "Control", "Feed", "Node", "Output", "Program", "Record", "Ref", "Send", "Update"]


@dataclass(frozen=True)
class Send:
    """Records that a slot sends when its input is at `when`, with the timestamp `at`, which is not earlier. A partition
    of a source sends everything at its own time: there both are the same."""

    slot: int
    when: int
    at: int
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Feed:
    """Where records come from: "input", fed by main, or "source", with a partition for each slot; "untimed" is a
    source that leaves times to the engine."""

    kind: str
    form: str
    slots: int
    sends: tuple[Send, ...]

    def of(self, slot: int) -> list[Send]:
        """What a slot sends, in the order of time."""
        return sorted((send for send in self.sends if send.slot == slot), key=lambda send: (send.when, send.at))


@dataclass(frozen=True)
class Update:
    """What is said on a control stream when it is at `when`, for the time `at`. Workers in it count modulo those that
    there are: ("move", bin, worker), ("moves", bins, workers), ("assign", workers), ("split", bin, into), ("merge",
    bin, worker), ("pin", key, worker), ("unpin", key). A bin that has bits and a star is a prefix."""

    when: int
    at: int
    what: tuple[object, ...]


@dataclass(frozen=True)
class Control:
    """A control stream: an input that main feeds, or the run's own (`scope.control()`), on which worker 0 says it."""

    bins: int
    updates: tuple[Update, ...]
    own: bool = True


@dataclass(frozen=True)
class Output:
    """A sink: "append" has every row, "keyed" the last of each key."""

    kind: str
    ref: Ref


@dataclass(frozen=True)
class Program:
    """One dataflow, and how its main behaves."""

    epochs: int
    feeds: tuple[Feed, ...]
    controls: tuple[Control, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    ahead: int = 0  # how many epochs main may be ahead of the slowest sink
    lazy: frozenset[int] = frozenset()  # epochs before which main sleeps
    saves: bool = False  # whether main saves something of its own

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    @property
    def untimed(self) -> bool:
        """Whether records have no times that anybody could know."""
        return any(feed.kind == "untimed" for feed in self.feeds)

    @property
    def kinds(self) -> set[str]:
        """What there is in it, by name: for mutants that concern only some programs."""
        found = {node.kind for node in self.nodes}
        found |= {"by hand" if feed.kind == "input" else feed.kind for feed in self.feeds}
        found |= {f"{output.kind} sink" for output in self.outputs}
        found |= {"later" for feed in self.feeds for send in feed.sends if send.at > send.when}
        found |= {"saves"} if self.saves else set()
        for node in self.nodes:
            if node.control is not None:
                found |= {"migratable", f"migratable {node.form}"}
                found |= {str(update.what[0]) for update in self.controls[node.control].updates}
        return found


def _lines(program: Program) -> Iterable[str]:
    how = f"ahead {program.ahead}, sleeps before {sorted(program.lazy)}{', saves' if program.saves else ''}"
    yield f"{program.epochs} epochs, {how}"
    for i, feed in enumerate(program.feeds):
        yield f"  feed {i}: {feed.kind} of {feed.form}, {feed.slots} slots"
        yield from (f"    slot {s.slot}, time {s.when}, at {s.at}: {list(s.records)}" for s in feed.sends)
    for i, control in enumerate(program.controls):
        yield f"  control {i}: {control.bins} bins, {'an input' if control.own else 'of the run'}"
        yield from (f"    time {u.when}, at {u.at}: {u.what}" for u in control.updates)
    for i, node in enumerate(program.nodes):
        migrates = "" if node.control is None else f", control {node.control}"
        yield f"  node {i}: {node.kind} of {node.form} {list(node.numbers)} from {list(node.inputs)}{migrates}"
    for output in program.outputs:
        yield f"  sink: {output.kind} of {output.ref}"
