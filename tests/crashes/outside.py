"""The world outside a program: what its sinks have made durable, and what they show. It survives crashes, and has
rules of its own: nothing is shown before a manifest names it, and nothing is shown twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import trio

from tests.crashes import meaning
from tests.crashes.description import Output, Program
from tests.crashes.disk import Disk, dawdle
from tests.crashes.meaning import Rows

Row = tuple[int, int, int]  # time, key, value


class WrongRows(AssertionError):
    """What is to be seen is not what the program means."""


@dataclass
class Shown:
    """One sink: rows by token, and which tokens are committed."""

    staged: dict[str, list[Row]] = field(default_factory=dict)
    committed: list[str] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)  # of the cut for which a token was prepared

    @property
    def rows(self) -> Rows:
        """What everybody can see."""
        return Counter(row for token in self.committed for row in self.staged[token])


class Outside:
    """All sinks of a program, on all workers, over all runs."""

    def __init__(self, program: Program, disk: Disk, chance: Random, failing: float = 0.0) -> None:
        self.program = program
        self.disk = disk
        self.sinks = [Shown() for _ in program.outputs]
        self.failing = failing
        self._chance = chance
        self._made = 0
        nodes = meaning.evaluate(program)
        self._expected = [meaning.expected(program, output, nodes) for output in program.outputs]

    async def prepare(self, sink: int, rows: list[Row]) -> str:
        """Makes rows durable; the token by which they can be shown."""
        self._made += 1
        token = f"<sink {sink}, token {self._made}>"
        await dawdle(self._chance)
        if self._chance.random() < self.failing:
            raise OSError("the outside does not answer")
        self.sinks[sink].staged[token] = list(rows)
        return token

    async def commit(self, sink: int, token: str) -> None:
        """Shows the rows of a token, if that has not been done."""
        await dawdle(self._chance)
        shown = self.sinks[sink]
        if token in shown.committed:
            return
        if token not in shown.staged:
            raise WrongRows(f"{token} is committed, and was never prepared")
        if not self.disk.names_durably(token.encode()):
            raise WrongRows(f"{token} is committed, and no manifest names it")
        shown.committed.append(token)
        more = shown.rows - self._expected[sink]
        if more:
            raise WrongRows(self._says(sink, f"{token} shows rows that it should not: {sorted(more.elements())[:6]}"))

    # What must be true

    def check_prefix(self) -> None:
        """At a crash: what is visible is the output before a time, or on its way from one such time to the next."""
        for number, shown in enumerate(self.sinks):
            rows, expected = shown.rows, self._expected[number]
            if rows - expected:
                raise WrongRows(self._says(number, f"not expected {sorted((rows - expected).elements())[:6]}"))

    def check_all(self) -> None:
        """At the end: everything is visible."""
        for number, shown in enumerate(self.sinks):
            rows, expected = shown.rows, self._expected[number]
            if rows != expected:
                missing, extra = sorted((expected - rows).elements())[:6], sorted((rows - expected).elements())[:6]
                raise WrongRows(self._says(number, f"of {expected.total()} missing {missing}, not expected {extra}"))

    def _says(self, number: int, what: str) -> str:
        output: Output = self.program.outputs[number]
        return f"sink {number} ({output.kind} of {output.ref}), (time, key, value): {what}"


async def give_way() -> None:
    """A checkpoint."""
    await trio.lowlevel.checkpoint()
