"""The world outside a program: what its sinks have made durable, and what they show. It survives crashes, and has
rules of its own: nothing is shown before a manifest names it, nothing is shown twice, and what is shown is always the
output before some snapshot's time, or on its way there from the one before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from dataflow.operators.sinks import SinkUnavailable
from tests.crashes import meaning
from tests.crashes.description import Program
from tests.crashes.disk import Disk, dawdle
from tests.crashes.meaning import Placement, Rows, before

Row = tuple[int, int, int]  # time, key, value


class WrongRows(AssertionError):
    """What is to be seen is not what the program means."""


@dataclass
class Shown:
    """One sink: rows by token, in the order in which they were written; and what is committed, as of which time."""

    staged: dict[str, list[Row]] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        """What everybody can see."""
        return Counter(row for token in self.committed for row in self.staged[token])

    @property
    def by_key(self) -> dict[int, tuple[int, int]]:
        """What everybody can see where a row replaces the one of the same key that was written before."""
        return {k: (time, v) for token in self.committed for time, k, v in self.staged[token]}


class Outside:
    """All sinks of a program, on all workers, over all runs."""

    def __init__(self, program: Program, disk: Disk, chance: Random, failing: float = 0.0, flow: str = "flow") -> None:
        self.program = program
        self.flow = flow  # the name of the dataflow
        self.disk = disk
        self.sinks = [Shown() for _ in program.outputs]
        self.failing = failing
        self.acknowledged: dict[tuple[str, str], int] = {}  # by source and partition, up to where it may forget
        self.unheard = 0  # updates that came too late for the run's own control stream
        self.placed: dict[int, list[Placement]] = {}  # by worker, where operators that migrate had their state at last
        self._chance = chance
        self._made = 0
        self._shown: set[tuple[int, int]] = set()  # (sink, number of a manifest of which something is shown)
        nodes = meaning.evaluate(program)
        self.expected = [meaning.expected(program, output, nodes) for output in program.outputs]

    def answer(self) -> None:
        """Sometimes it does not."""
        if self._chance.random() < self.failing:
            raise SinkUnavailable("the outside does not answer")

    async def prepare(self, sink: int, time: int, rows: list[Row]) -> str:
        """Makes rows durable, those before a time; the token by which they can be shown."""
        self._made += 1
        token = f"<{self.flow}: sink {sink}, token {self._made}, before {time}>"
        await dawdle(self._chance)
        self.disk.noticed("preparing")
        self.answer()
        if self.program.untimed:  # in the order of the engine's times, which nobody else knows
            rows = [(0, k, v) for _, k, v in rows]
        self.sinks[sink].staged[token] = list(rows)
        return token

    @staticmethod
    def prepared_before(token: str) -> int:
        """The time before which everything is in a token, or in one before it."""
        return int(token.strip(">").rpartition(" ")[2])

    async def commit(self, sink: int, token: str) -> None:
        """Shows the rows of a token, if that has not been done: the output before a time."""
        await dawdle(self._chance)
        self.disk.noticed("committing")
        self.answer()
        shown = self.sinks[sink]
        if token in shown.committed:
            return
        if token not in shown.staged:
            raise WrongRows(f"{token} is committed, and was never prepared")
        manifests = self.disk.tokens[self.flow].items()
        number = min((number for number, tokens in manifests if token in tokens), default=None)
        if number is None:
            raise WrongRows(f"{token} is committed, and no manifest names it")
        self._require_whole(sink, number)
        shown.committed[token] = self.prepared_before(token)
        self.check(sink)
        self.disk.noticed("committed")
        self.answer()  # or perhaps it was

    def _require_whole(self, sink: int, number: int) -> None:
        """What is shown of a snapshot is shown whole before something of the next one is."""
        committed, self._shown = self.sinks[sink].committed, {*self._shown, (sink, number)}
        for earlier in {other for which, other in self._shown if which == sink and other < number}:
            named = self.disk.tokens[self.flow][earlier]
            left = {t for t in named if t.startswith(f"<{self.flow}: sink {sink},") and t not in committed}
            if left:
                raise WrongRows(self._says(sink, f"{left} of snapshot {earlier} is not shown, and {number} is"))

    # What must be true

    def check(self, number: int) -> None:
        """At every instant: what is visible is the output before a time, or on its way from one such time to the
        next; each row once."""
        shown, expected = self.sinks[number], self.expected[number]
        rows, keyed = shown.rows, self.program.outputs[number].kind == "keyed"
        if self.program.untimed:  # workers show their parts one after the other, but a key's rows are all in one
            extra = rows - expected
            if keyed and not meaning.is_prefix(rows):
                raise WrongRows(self._says(number, f"this is no prefix: {sorted(rows.elements())}"))
        else:
            extra = rows - before(expected, self.disk.latest.get(self.flow, 0))
        if extra:
            raise WrongRows(self._says(number, f"too early or too often: {sorted(extra.elements())[:6]}"))
        if keyed and shown.by_key != meaning.last(rows):
            raise WrongRows(self._says(number, "an older row has replaced a newer one"))

    def check_all(self) -> None:
        """At the end: everything is visible."""
        for number, shown in enumerate(self.sinks):
            self.check(number)
            rows, expected = shown.rows, self.expected[number]
            if rows != expected:
                missing, extra = sorted((expected - rows).elements())[:6], sorted((rows - expected).elements())[:6]
                raise WrongRows(self._says(number, f"of {expected.total()} missing {missing}, not expected {extra}"))

    def check_placement(self, workers: int) -> None:
        """At the end, if there were always so many workers: all updates have had their effect, also those that were
        said before a crash for a time after it."""
        controls = [self.program.controls[node.control] for node in self.program.nodes if node.control is not None]
        wanted = [meaning.placement(control, workers) for control in controls]
        for worker, placed in self.placed.items():
            if placed != wanted:
                raise WrongRows(f"worker {worker} has {placed}, and the control streams say {wanted}")

    def _says(self, number: int, what: str) -> str:
        output, committed = self.program.outputs[number], self.sinks[number].committed
        when = f"{committed}; snapshots {self.disk.acknowledged}"
        return f"sink {number} ({output.kind} of {output.ref}), (time, key, value): {what}; {when}"
