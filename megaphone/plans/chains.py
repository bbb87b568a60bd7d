"""Which results the old plan still owes (section 3.3, with the error of Figure 3.9 mended).

A *chain* is a list of conditions (slots, cut-off). A composite satisfies it if each of its components in those slots is
from before that cut-off; components that it does not have yet do not count. The old plan keeps what satisfies some
chain. At first there is a chain for each lowest node of the new plan, with the start of the migration as its cut-off:
the new plan makes exactly the results in which no lowest node is all old. When a state of the new plan has been
completed in the background, the chains that end in it go on with the node above it, as of that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from megaphone.plans.composites import Composite
from megaphone.plans.trees import Streams


@dataclass(frozen=True, slots=True)
class Condition:
    """Components of these streams are from before a time."""

    streams: Streams
    slots: tuple[int, ...]
    before: int

    def holds(self, composite: Composite) -> bool:
        """Whether a composite satisfies it, as far as it goes."""
        parts = composite[0]
        for slot in self.slots:
            part = parts[slot]
            if part is not None and part[0] >= self.before:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Chain:
    """Conditions of nodes, each above the one before it."""

    conditions: tuple[Condition, ...]

    @property
    def end(self) -> Streams:
        """The streams of the last node."""
        return self.conditions[-1].streams

    def holds(self, composite: Composite) -> bool:
        """Whether a composite satisfies all conditions."""
        return all(condition.holds(composite) for condition in self.conditions)

    def extended(self, condition: Condition) -> Chain:
        """The chain with one more condition."""
        return Chain((*self.conditions, condition))


def keeps(chains: Sequence[Chain], composite: Composite) -> bool:
    """Whether the old plan keeps a composite, be it part of a result or a whole one."""
    return any(chain.holds(composite) for chain in chains)


def ending_in(chains: Iterable[Chain], streams: Streams) -> list[Chain]:
    """The chains that end in a node."""
    return [chain for chain in chains if chain.end == streams]
