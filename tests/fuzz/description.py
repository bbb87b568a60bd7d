"""A random program as data: small, typed, printable, and nothing of the engine in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Record = tuple[int, int]  # (key, value): every stream of every program carries these
Bag = dict[int, list[Record]]  # by time
Ref = tuple[int, int]  # a stream of a dataflow: (number of a node, number of its output)

ROWS, COLUMNS = "rows", "columns"
PRIME = 10_007  # values are below it


@dataclass(frozen=True)
class Send:
    """Records that a worker sends at its epoch `when`, with the timestamp `at`, which is not earlier."""

    worker: int
    when: int
    at: int
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Feed:
    """An input: "input", "unordered" or "source"; in rows or in columns."""

    kind: str
    form: str
    sends: tuple[Send, ...]


@dataclass(frozen=True)
class Update:
    """What a worker says on a control stream at its epoch `when`, for the time `at`: ("move", bin, worker), ("moves",
    bins, workers), ("assign", workers), ("pin", key, worker) or ("unpin", key); a controller's is ("migrate", workers,
    strategy, pins)."""

    worker: int
    when: int
    at: int
    what: tuple[object, ...]


@dataclass(frozen=True)
class Control:
    """A control stream. With `controller`, only worker 0 issues migrations, through a Controller."""

    bins: int
    updates: tuple[Update, ...]
    controller: bool = False
    lead: int = 0


@dataclass(frozen=True)
class Node:
    """An operator: `numbers` choose among its variants; `control` is the number of a control stream, if it migrates."""

    kind: str
    form: str
    inputs: tuple[Ref, ...] = ()
    numbers: tuple[int, ...] = ()
    control: int | None = None


@dataclass(frozen=True)
class Flow:
    """A dataflow. Nodes only refer to nodes before them."""

    nodes: tuple[Node, ...]
    feeds: tuple[Feed, ...]
    controls: tuple[Control, ...]
    watched: tuple[Ref, ...]

    @property
    def replays(self) -> bool:
        """Whether it can only be built when the dataflows before it have ended."""
        return any(node.kind == "replay" for node in self.nodes)


@dataclass(frozen=True)
class Program:
    """Dataflows that run side by side, and after them those that replay what was captured."""

    peers: int
    epochs: int
    flows: tuple[Flow, ...]
    ahead: int = 0  # how many epochs main may be ahead of the slowest stream
    lazy: frozenset[int] = field(default_factory=frozenset)  # epochs after which no input is advanced
    compiled: bool = False

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def stages(program: Program) -> list[list[int]]:
    """The numbers of dataflows that are built at once, one stage after the other."""
    first = [i for i, flow in enumerate(program.flows) if not flow.replays]
    return [first, *([i] for i, flow in enumerate(program.flows) if flow.replays)]


def replayed(program: Program, number: int) -> set[Ref]:
    """The streams of a dataflow that later ones replay."""
    replays = [node.numbers for flow in program.flows for node in flow.nodes if node.kind == "replay"]
    return {(node, port) for source, node, port, _ in replays if source == number}


def _lines(program: Program) -> Iterable[str]:
    how = f"ahead {program.ahead}, lazy {sorted(program.lazy)}, {'compiled' if program.compiled else 'not compiled'}"
    yield f"{program.peers} workers, {program.epochs} epochs, {how}"
    for number, flow in enumerate(program.flows):
        yield f"dataflow {number}: watched {list(flow.watched)}"
        for i, feed in enumerate(flow.feeds):
            yield f"  feed {i}: {feed.kind} of {feed.form}"
            yield from (f"    worker {s.worker}, epoch {s.when}, at {s.at}: {list(s.records)}" for s in feed.sends)
        for i, control in enumerate(flow.controls):
            by = f"a controller, lead {control.lead}" if control.controller else "updates"
            yield f"  control {i}: {control.bins} bins, {by}"
            yield from (f"    worker {u.worker}, epoch {u.when}, at {u.at}: {u.what}" for u in control.updates)
        for i, node in enumerate(flow.nodes):
            migrates = "" if node.control is None else f", control {node.control}"
            yield f"  node {i}: {node.kind} of {node.form} {list(node.numbers)} from {list(node.inputs)}{migrates}"
