"""A random recoverable program from a seed. Every node is evaluated as it is added, so that programs stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from tests.crashes import meaning, timed_meaning
from tests.crashes.description import (
    COLUMNS,
    ROWS,
    Bag,
    Control,
    Feed,
    Node,
    Output,
    Program,
    Record,
    Ref,
    Send,
    Update,
)

MOST = 60  # records of a stream, over all times
COLUMN_SHARE = 0.12  # of programs: those on columns take several times as long
UNTIMED_SHARE = 0.1
TIMED_SHARE = 0.3  # of programs on rows: with windows, joins in time or asynchronous calls

# By kind: how many inputs, and by number how many variants there are.
ON_ROWS: dict[str, tuple[int, tuple[int, ...]]] = {
    "map": (1, (5,)), "filter": (1, (4,)), "flat_map": (1, ()), "exchange": (1, (5,)), "delay": (1, (4,)),
    "aggregate": (1, (5,)), "reduce": (1, ()), "distinct": (1, ()), "count": (1, ()), "join": (2, ()),
    "iterate": (1, (5,)), "concat": (2, ()),
}  # fmt: skip
ON_COLUMNS: dict[str, tuple[int, tuple[int, ...]]] = {
    "map": (1, (5,)), "filter": (1, (4,)), "aggregate": (1, (5,)), "join": (2, ()), "concat": (2, ()),
}  # fmt: skip
KEEPING_ROWS = ("delay", "delay", "feedback", "native_totals", "native_running", "native_running")
KEEPING_COLUMNS = ("native_machine", "windows", "pairs", "batches")
MIGRATING_ROWS = ("totals", "totals", "totals", "versus", "versus", "row_running", "row_running", "window_join")
MIGRATING_COLUMNS = ("machine", "ordered", "two_folds", "batches", "pairs", "window_pairs")
TWO = frozenset({"versus", "two_folds", "pairs", "window_pairs"})
PLANS = ("(a b) c", "a (b c)", "(a c) b")
METHODS = ("moving-state", "parallel-track", "hybmig")


def random_program(seed: int) -> Program:
    """The program of a seed. In every other one bins are split and merged, too."""
    made = _program(seed)
    return made if seed % 2 else replace(made, controls=tuple(_shaped(Random(f"shapes {seed}"), made)))


def _shaped(chance: Random, program: Program) -> Iterator[Control]:
    """The control streams, with splits, merges and moves of prefixes among what is said."""
    for control in program.controls:
        updates = list(control.updates)
        bits = control.bins.bit_length() - 1
        for epoch in range(program.epochs):
            while chance.random() < 0.3:
                length = chance.randint(0, bits)
                prefix = "".join(chance.choice("01") for _ in range(length)) + "*"
                what: tuple[object, ...] = ("move", prefix, chance.randrange(3))
                if chance.random() < 0.4:
                    what = ("merge", prefix, chance.choice((None, chance.randrange(3))))
                elif chance.random() < 0.5:
                    what = ("split", prefix, 1 << chance.randint(0, bits - length))
                updates.append(Update(epoch, epoch + chance.choice((0, 0, 1, 4)), what))
        yield replace(control, updates=tuple(updates))


def _program(seed: int) -> Program:
    chance = Random(f"recoverable {seed}")
    form = COLUMNS if chance.random() < COLUMN_SHARE else ROWS
    maker = _Maker(chance, form)
    if form == ROWS and chance.random() < UNTIMED_SHARE:
        return maker.untimed()
    for _ in range(chance.choice((1, 1, 2)) if form == ROWS else chance.choice((1, 2))):
        maker.add_input()
    for _ in range(chance.choice((1, 2, 2, 3)) if form == ROWS else chance.choice((1, 1, 2))):
        maker.grow()
    if form == ROWS and chance.random() < TIMED_SHARE:
        maker.grow_timed()
    return maker.finish()


class _Maker:
    """Makes a program, node by node."""

    def __init__(self, chance: Random, form: str) -> None:
        self.chance, self.form = chance, form
        self.epochs = chance.randint(2, 6) if chance.random() < 0.95 else chance.randint(12, 30)  # or many snapshots
        self.nodes: list[Node] = []
        self.feeds: list[Feed] = []
        self.controls: list[Control] = []
        self.bags: list[list[Bag]] = []

    # Where records come from

    def add_input(self, kind: str = "") -> None:
        """An input or a source."""
        chance = self.chance
        kind = kind or chance.choice(("input", "source"))
        slots = chance.choice((1, 2, 3))
        keys = [chance.choice((n, n, n, -n, n << 40)) for n in range(chance.randint(1, 6))]
        sends = []
        for slot in range(slots):
            for epoch in range(self.epochs):
                if self.epochs > 6 and chance.random() < 0.7:
                    continue
                for _ in range(chance.choice((0, 0, 1, 1, 2) if kind == "input" else (0, 1))):
                    later = 0 if kind != "input" else chance.choice((0, 0, 0, 1, 4))
                    records = tuple(self._record(keys) for _ in range(chance.randint(1, 3)))
                    sends.append(Send(slot, epoch, epoch + later, records))
        self.feeds.append(Feed(kind, self.form, slots, tuple(sends)))
        self._add(Node("input", self.form, (), (len(self.feeds) - 1,)))

    def untimed(self) -> Program:
        """A program whose results do not depend on times: an untimed source, and how often each key has come so far."""
        chance = self.chance
        self.add_input("untimed")
        for _ in range(chance.choice((0, 1, 1))):
            kind = chance.choice(("map", "filter", "flat_map", "exchange"))
            variants = ON_ROWS[kind][1]
            self._apply(kind, [self._stream()], tuple(chance.randrange(n) for n in variants))
        streams = [(len(self.nodes) - 1, 0)]
        control = self._control(streams, True) if chance.random() < 0.7 else None
        self._apply("native_tally" if control is None else "tally", streams, (), control)
        controls = tuple(replace(control, own=False) for control in self.controls)  # main has nothing to say
        outputs = (Output(chance.choice(("append", "keyed")), (len(self.nodes) - 1, 0)),)
        return Program(0, tuple(self.feeds), controls, tuple(self.nodes), outputs)

    def _record(self, keys: list[int]) -> Record:
        return self.chance.choice(keys), self.chance.choice((self.chance.randrange(12), self.chance.randrange(3000)))

    # What is done with them

    def grow(self) -> None:
        """Adds an operator, or nothing if it would make too many records."""
        choices: list[Callable[[], None]] = [self._grow_plain, self._grow_keeping, self._grow_keeping]
        choices += [self._grow_migrating] * 3
        if self.form == ROWS:
            choices.append(self._grow_partition)
        self.chance.choice(choices)()

    def _grow_plain(self) -> None:
        table = ON_ROWS if self.form == ROWS else ON_COLUMNS
        kind = self.chance.choice([*table, "iterate"] if self.form == ROWS else [*table])  # loops are often too large
        count, variants = table[kind]
        numbers = tuple(self.chance.randrange(n) for n in variants)
        self._apply(kind, [self._stream() for _ in range(count)], numbers)

    def _grow_keeping(self) -> None:
        kind = self.chance.choice(KEEPING_ROWS if self.form == ROWS else KEEPING_COLUMNS)
        if kind == "windows":
            numbers = (self.chance.choice((1, 2, 3)), self.chance.choice((1, 1, 2, 3)))
            inputs = [(i, 0) for i, node in enumerate(self.nodes) if node.kind == "input"]  # they say when it happened
            self._apply(kind, [self.chance.choice(inputs)], numbers)
        else:
            variants = {"delay": 4, "native_machine": 2, "feedback": 3, "pairs": 1, "batches": 1}.get(kind, 1)
            number = self.chance.randrange(variants) + (1 if kind == "feedback" else 0)
            self._apply(kind, [self._stream() for _ in range(2 if kind in TWO else 1)], (number,))

    def _grow_migrating(self) -> None:
        kind = self.chance.choice(MIGRATING_ROWS if self.form == ROWS else MIGRATING_COLUMNS)
        if kind == "window_join":
            streams = [self._stream() for _ in range(3)]
            self._apply(kind, streams, (self.chance.randint(1, 4),), self._new_control([], PLANS))
            return
        by_key = self.chance.randrange(2)
        number = {"pairs": 0, "window_pairs": self.chance.randint(1, 4)}.get(kind, by_key)
        pinnable = kind not in ("totals", "versus") or bool(by_key)
        streams = [self._stream() for _ in range(2 if kind in TWO else 1)]
        self._apply(kind, streams, (number,), self._control(streams, pinnable))

    def grow_timed(self) -> None:
        """Adds a window, a join in time or an asynchronous call, native or migratable; nothing if it is too large."""
        chance = self.chance
        kind = chance.choice([*timed_meaning.TIMED])
        count, variants = timed_meaning.TIMED[kind]
        streams = [self._stream() for _ in range(count)]
        migrates = kind != "asked" and chance.random() < 0.6
        numbers = tuple(chance.randrange(n) for n in variants)
        self._apply(kind, streams, numbers, self._control(streams, True) if migrates else None)

    def _control(self, streams: list[Ref], pinnable: bool) -> int:
        """A control stream: a new one, or one that others heed already."""
        chance = self.chance
        shared = [i for i, control in enumerate(self.controls) if pinnable or not _pins(control)]
        shared = [i for i in shared if all(update.what[0] != "replan" for update in self.controls[i].updates)]
        if shared and chance.random() < 0.3:
            return chance.choice(shared)
        keys = sorted({k for i, port in streams for rs in self.bags[i][port].values() for k, _ in rs})
        return self._new_control(keys if pinnable else [])

    def _new_control(self, keys: list[int], plans: tuple[str, ...] = ()) -> int:
        """A control stream with updates: keys that may be pinned, plans that there may be."""
        chance = self.chance
        bins = 1 << chance.randint(1 if self.form == COLUMNS else 0, 3)
        updates = []
        for epoch in range(self.epochs):
            for _ in range(chance.choice((0, 0, 1, 2))):
                at = epoch + chance.choice((0, 0, 1, 3))
                updates.append(Update(epoch, at, _said(chance, bins, keys)))
        if plans:  # one, to another plan than the first: a second may be refused by those who have not heard of it
            epoch, at = chance.randrange(self.epochs), chance.choice((0, 1, 2))
            updates.append(Update(epoch, epoch + at, ("replan", chance.choice(plans[1:]), chance.choice(METHODS))))
        self.controls.append(Control(bins, tuple(updates), own=chance.random() < 0.6))
        return len(self.controls) - 1

    def _grow_partition(self) -> None:
        self._apply("partition", [self._stream()], (self.chance.choice((2, 3)),))

    # The parts

    def _stream(self) -> Ref:
        """A random stream: mostly one of the newest."""
        refs = [(i, port) for i, bags in enumerate(self.bags) for port in range(len(bags))]
        return refs[max(self.chance.randrange(len(refs)) for _ in range(2))]

    def _apply(
        self, kind: str, streams: list[Ref], numbers: tuple[int, ...] = (), control: int | None = None
    ) -> Ref | None:
        node = Node(kind, self.form, tuple(streams), numbers, control)
        bags = self._evaluate(node)
        if any(sum(map(len, bag.values())) > MOST for bag in bags):
            if control == len(self.controls) - 1 and all(other.control != control for other in self.nodes):
                self.controls.pop()
            return None
        return self._add(node)

    def _evaluate(self, node: Node) -> list[Bag]:
        so_far = Program(self.epochs, tuple(self.feeds), (), (), ())
        return meaning.evaluate_node(so_far, node, self.bags)

    def _add(self, node: Node) -> Ref:
        self.bags.append(self._evaluate(node))
        self.nodes.append(node)
        return len(self.nodes) - 1, 0

    def finish(self) -> Program:
        """The program, with a sink behind every stream that nobody uses, and behind some others."""
        used = {ref for node in self.nodes for ref in node.inputs}
        outputs = []
        for ref in [(i, port) for i, bags in enumerate(self.bags) for port in range(len(bags))]:
            if ref not in used or self.chance.random() < 0.1:
                outputs.append(self._output(ref))
        share = 0.3 if self.epochs <= 6 else 0.9
        lazy = frozenset(epoch for epoch in range(self.epochs) if self.chance.random() < share)
        ahead, saves = self.chance.choice((0, 1, 1, 3, 100)), self.chance.random() < 0.5
        return Program(
            self.epochs, tuple(self.feeds), tuple(self.controls), tuple(self.nodes), tuple(outputs), ahead, lazy, saves
        )

    def _output(self, ref: Ref) -> Output:
        """A sink: keyed ones only where a key has one row at a time."""
        if self.chance.random() < 0.4:
            kept = self._apply("aggregate", [ref], (2,))
            if kept is not None:
                return Output("keyed", kept)
        return Output("append", ref)


def _pins(control: Control) -> bool:
    return any("pin" in str(update.what[0]) for update in control.updates)


def _said(chance: Random, bins: int, keys: list[int]) -> tuple[object, ...]:
    what = chance.choice(("move", "moves", "assign", "pin", "pin", "unpin") if keys else ("move", "moves", "assign"))
    if what == "move":
        return what, chance.randrange(bins), chance.randrange(3)
    if what == "moves":
        some = sorted(chance.sample(range(bins), chance.randint(1, bins)))
        return what, tuple(some), tuple(chance.randrange(3) for _ in some)
    if what == "assign":
        return what, tuple(chance.randrange(3) for _ in range(bins))
    key = chance.choice(keys)
    return (what, key, chance.randrange(3)) if what == "pin" else (what, key)
