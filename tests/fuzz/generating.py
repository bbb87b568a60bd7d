"""A random program from a seed. Every node is evaluated as it is added, so that programs stay small."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz import direct, migrating
from tests.fuzz.description import COLUMNS, ROWS, Bag, Control, Feed, Flow, Node, Program, Record, Ref, Send

MOST = 250  # records of a stream, over all times

# By kind: the forms of its inputs, and by number how many variants there are.
ON_ROWS: dict[str, tuple[int, tuple[int, ...]]] = {
    "map": (1, (5,)), "filter": (1, (4,)), "flat_map": (1, ()), "exchange": (1, (5,)), "broadcast": (1, ()),
    "delay": (1, (4,)), "aggregate": (1, (5,)), "reduce": (1, ()), "distinct": (1, ()), "count": (1, ()),
    "join": (2, ()), "iterate": (1, (5,)), "running": (1, ()), "first": (1, ()),
}  # fmt: skip
ON_COLUMNS: dict[str, tuple[int, tuple[int, ...]]] = {
    "map": (1, (5,)), "with_columns": (1, (5,)), "filter": (1, (4,)), "flat_map": (1, ()), "exchange": (1, (3,)),
    "aggregate": (1, (5,)), "distinct": (1, ()), "count": (1, ()), "join": (2, ()),
    "machine": (1, (2,)), "ordered": (1, ()), "two_folds": (2, (2,)), "batches": (1, ()), "pairs": (2, (1,)),
}  # fmt: skip
MIGRATING_ROWS = ("totals", "versus", "row_machine")
MIGRATING_COLUMNS = ("machine", "ordered", "two_folds", "batches", "pairs")


def random_program(seed: int) -> Program:
    """The program of a seed."""
    chance = Random(f"program {seed}")
    peers = chance.choice((1, 2, 2, 3))
    epochs = chance.randint(1, 6)
    made: list[list[list[Bag]]] = []
    flows: list[Flow] = []
    for number in range(chance.choice((1, 1, 1, 2, 2, 3))):
        maker = _Maker(chance, peers, epochs, flows, made)
        maker.start(replays=number > 0 and chance.random() < 0.6)
        for _ in range(chance.randint(1, 7)):
            maker.grow()
        flow = maker.finish()
        flows.append(flow)
        made.append(maker.bags)
    lazy = frozenset(epoch for epoch in range(epochs) if chance.random() < 0.15)
    return Program(peers, epochs, tuple(flows), chance.choice((0, 0, 1, 3, 100)), lazy, compiled=seed % 41 == 0)


class _Maker:
    """Makes one dataflow, node by node."""

    def __init__(self, chance: Random, peers: int, epochs: int, flows: list[Flow], made: list[list[list[Bag]]]) -> None:
        self.chance, self.peers, self.epochs = chance, peers, epochs
        self._flows, self._made = flows, made
        self.nodes: list[Node] = []
        self.feeds: list[Feed] = []
        self.controls: list[Control] = []
        self.bags: list[list[Bag]] = []

    # Where records come from

    def start(self, replays: bool) -> None:
        """Inputs, and perhaps a replay of what an earlier dataflow captured."""
        if replays:
            source = self.chance.randrange(len(self._flows))
            number, port = self.chance.choice(self._flows[source].watched)
            encoded = int(self.chance.random() < 0.4)  # through a file of events
            self._add(Node("replay", self._flows[source].nodes[number].form, (), (source, number, port, encoded)))
        for _ in range(self.chance.choice((0, 1)) if replays else self.chance.choice((1, 2, 2, 3))):
            self._add_input()

    def _add_input(self) -> None:
        chance = self.chance
        kind = chance.choice(("input", "input", "input", "unordered", "source"))
        keys = [chance.choice((n, n, n, -n, n << 40)) for n in range(chance.randint(1, 9))]
        sends = []
        for worker in range(self.peers):
            for epoch in range(self.epochs):
                for _ in range(chance.choice((0, 0, 1, 1, 2))):
                    records = tuple(self._record(keys) for _ in range(chance.randint(1, 5)))
                    later = 0 if kind == "source" else chance.choice((0, 0, 0, 1, 4))
                    sends.append(Send(worker, epoch, epoch + later, records))
        self.feeds.append(Feed(kind, chance.choice((ROWS, COLUMNS)), tuple(sends)))
        self._add(Node("input", self.feeds[-1].form, (), (len(self.feeds) - 1,)))

    def _record(self, keys: list[int]) -> Record:
        return self.chance.choice(keys), self.chance.choice((self.chance.randrange(12), self.chance.randrange(3000)))

    # What is done with them

    def grow(self) -> None:
        """Adds an operator, or nothing if it would make too many records."""
        choices: list[Callable[[], None]] = [
            self._grow_plain, self._grow_plain, self._grow_plain, self._grow_migrating, self._grow_migrating,
            self._grow_concat, self._grow_partition, self._grow_feedback, self._grow_windows, self._grow_unique,
        ]  # fmt: skip
        self.chance.choice(choices)()

    def _grow_plain(self) -> None:
        form = self.chance.choice((ROWS, COLUMNS))
        table = ON_ROWS if form == ROWS else ON_COLUMNS
        kind = self.chance.choice(list(table))
        count, variants = table[kind]
        numbers = tuple(self.chance.randrange(n) for n in variants)
        self._apply(kind, form, [self._stream(form) for _ in range(count)], numbers)

    def _grow_migrating(self) -> None:
        form = self.chance.choice((ROWS, COLUMNS))
        kind = self.chance.choice(MIGRATING_ROWS if form == ROWS else MIGRATING_COLUMNS)
        count = 2 if kind in ("versus", "two_folds", "pairs") else 1
        by_key = int(self.chance.random() < 0.5)
        numbers = (self.chance.randrange(2),) if kind in ("machine", "two_folds") else (by_key,)
        if kind == "pairs":
            numbers = (0,)
        pinnable = kind not in ("totals", "versus") or form == COLUMNS or bool(by_key)
        streams = [self._stream(form) for _ in range(count)]
        self._apply(kind, form, streams, numbers, self._control(streams, form, pinnable))

    def _control(self, streams: list[Ref], form: str, pinnable: bool) -> int:
        """A control stream: a new one, or one that others heed already."""
        least = 1 if form == COLUMNS else 0
        shared = [i for i, control in enumerate(self.controls) if _fits(control, 1 << least, pinnable)]
        if shared and self.chance.random() < 0.3:
            return self.chance.choice(shared)
        keys = sorted({k for i, port in streams for rs in self.bags[i][port].values() for k, _ in rs})
        keys = keys if pinnable else []
        self.controls.append(migrating.random_control(self.chance, self.peers, self.epochs, keys, least))
        return len(self.controls) - 1

    def _grow_concat(self) -> None:
        form = self.chance.choice((ROWS, COLUMNS))
        self._apply("concat", form, [self._stream(form) for _ in range(self.chance.choice((2, 2, 3)))])

    def _grow_partition(self) -> None:
        parts = self.chance.choice((2, 2, 3))
        self._apply("partition", ROWS, [self._stream(ROWS)], (parts,))

    def _grow_feedback(self) -> None:
        self._apply("feedback", ROWS, [self._stream(ROWS)], (self.chance.choice((1, 1, 3)),))

    def _grow_windows(self) -> None:
        numbers = (self.chance.choice((1, 2, 3)), self.chance.choice((1, 1, 2, 3)))
        self._apply("windows", COLUMNS, [self._stream(COLUMNS)], numbers)

    def _grow_unique(self) -> None:
        """A join on whose right side a key occurs once; with and without a control stream."""
        first = self._apply("first", ROWS, [self._stream(ROWS)])
        if first is None:
            return
        streams = [self._stream(COLUMNS), self._converted(first, COLUMNS)]
        control = self._control(streams, COLUMNS, True) if self.chance.random() < 0.6 else None
        self._apply("pairs", COLUMNS, streams, (1,), control)

    # The parts

    def _stream(self, form: str) -> Ref:
        """A random stream, in the form that is asked for: mostly one of the newest."""
        refs = [(i, port) for i, bags in enumerate(self.bags) for port in range(len(bags))]
        return self._converted(refs[max(self.chance.randrange(len(refs)) for _ in range(2))], form)

    def _converted(self, ref: Ref, form: str) -> Ref:
        if self.nodes[ref[0]].form == form:
            return ref
        return self._add(Node(f"to_{form}", form, (ref,)))

    def _apply(
        self, kind: str, form: str, streams: list[Ref], numbers: tuple[int, ...] = (), control: int | None = None
    ) -> Ref | None:
        node = Node(kind, form, tuple(streams), numbers, control)
        if any(_size(bag) > MOST for bag in self._evaluate(node)):
            if control == len(self.controls) - 1 and all(node.control != control for node in self.nodes):
                self.controls.pop()
            return None
        return self._add(node)

    def _evaluate(self, node: Node) -> list[Bag]:
        flow = Flow((), tuple(self.feeds), (), ())
        return direct.evaluate_node(node, self.bags, flow, self._made, self.peers)

    def _add(self, node: Node) -> Ref:
        self.nodes.append(node)
        self.bags.append(self._evaluate(node))
        return len(self.nodes) - 1, 0

    def finish(self) -> Flow:
        """The dataflow, with every stream watched that nobody uses, and some others."""
        used = {ref for node in self.nodes for ref in node.inputs}
        refs = [(i, port) for i, bags in enumerate(self.bags) for port in range(len(bags))]
        watched = tuple(ref for ref in refs if ref not in used or self.chance.random() < 0.2)
        return Flow(tuple(self.nodes), tuple(self.feeds), tuple(self.controls), watched)


def _size(bag: Bag) -> int:
    return sum(map(len, bag.values()))


def _fits(control: Control, bins: int, pinnable: bool) -> bool:
    """Whether one more operator can heed a control stream."""
    pins = any("pin" in str(update.what[0]) for update in control.updates)
    return not control.controller and control.bins >= bins and (pinnable or not pins)
