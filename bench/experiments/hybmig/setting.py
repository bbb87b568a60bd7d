"""The setting of section 5: streams, plans and parameters, as the paper has them; and what arrives.

How the paper makes its selectivities is not said. Here there is one attribute with 20 values, and all records of a
result have the same: two streams match with 0.05. A record of the rare stream (A before the migration, the last one
from then on) has one of those values with 0.05 and otherwise matches nothing, which gives 0.0025. Records of a stream
come at equal distances. Warm-up: only its last window leaves anything in a state, so that only that is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from megaphone.plans.trees import Tree, parse

VALUES, IN_DOMAIN = 20, 0.05  # selectivities 1/20 = 0.05, and 0.05 of that = 0.0025
ELSEWHERE = VALUES  # the value of a record that matches nothing
BUSHY = {4: "(A B) (C D)", 5: "A ((B C) (D E))", 6: "A (B ((C D) (E F)))", 7: "A (B (C ((D E) (F G))))"}


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record: when it comes, in seconds from the start of the migration; its stream's number; its value."""

    time: float
    stream: int
    value: int


@dataclass(frozen=True)
class Setting:
    """Table 5.1, with its defaults."""

    minutes: float = 3  # the window w
    rate: float = 1.0  # of each stream: tau, in records per second
    streams: int = 6
    seed: int = 1
    lead: float = 30.0  # seconds before the migration that are shown

    def but(self, **changes: float) -> Setting:
        """The same with other parameters."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def window(self) -> float:
        """In seconds."""
        return 60.0 * self.minutes

    @property
    def names(self) -> str:
        """The streams' names."""
        return "ABCDEFG"[: self.streams]

    @property
    def until(self) -> float:
        """Measured until 1.2 windows after the start."""
        return 1.2 * self.window

    def arrivals(self) -> list[Arrival]:
        """Everything that comes, in order."""
        rng = np.random.default_rng(self.seed)
        found = [arrival for stream in range(self.streams) for arrival in self._stream(stream, rng)]
        return sorted(found, key=lambda arrival: arrival.time)

    def _stream(self, stream: int, rng: np.random.Generator) -> Iterator[Arrival]:
        begin = -self.window - self.lead + rng.random() / self.rate
        for time in np.arange(begin, self.until, 1 / self.rate):
            rare = 0 if time < 0 else self.streams - 1
            inside = stream != rare or rng.random() < IN_DOMAIN
            yield Arrival(float(time), stream, int(rng.integers(VALUES)) if inside else ELSEWHERE)

    @property
    def old(self) -> Tree:
        """Left-deep."""
        return self._left_deep(self.names)

    @property
    def right_deep(self) -> Tree:
        """The new plan of most figures."""
        text = self.names[-1]
        for name in reversed(self.names[:-1]):
            text = f"{name} ({text})"
        return parse(text, self.names)

    @property
    def bushy(self) -> Tree:
        """The bushy plan of Table 5.2."""
        return parse(BUSHY[self.streams], self.names)

    @property
    def sharing(self) -> Tree:
        """The old plan with its last two streams joined first (section 5.2)."""
        text = f"({_text(self.names[:-2])}) ({' '.join(self.names[-2:])})"
        return parse(text, self.names)

    def _left_deep(self, names: str) -> Tree:
        return parse(_text(names), self.names)


def _text(names: str) -> str:
    """Names, joined from the left.

    >>> _text("ABCD")
    '(((A) B) C) D'
    """
    text = names[0]
    for name in names[1:]:
        text = f"({text}) {name}"
    return text
