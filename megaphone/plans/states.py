"""The state of one edge of a plan: composites by key, which expire by their earliest component."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dataflow.state.values import Key
from megaphone.plans.composites import Composite, earliest


class State:
    """Composites by key. Costs: adding and probing O(1) for each; purging O(composites)."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[Key, list[Composite]] = {}

    def add(self, key: Key, composites: Iterable[Composite]) -> None:
        """Adds composites of a key."""
        self.by_key.setdefault(key, []).extend(composites)

    def probe(self, key: Key) -> Iterator[Composite]:
        """The composites of a key."""
        return iter(self.by_key.get(key, ()))

    def purge(self, before: int) -> None:
        """Forgets composites with a component before a time."""
        for key in [*self.by_key]:
            left = [composite for composite in self.by_key[key] if earliest(composite) >= before]
            if left:
                self.by_key[key] = left
            else:
                del self.by_key[key]

    def __iter__(self) -> Iterator[tuple[Key, Composite]]:
        for key, composites in self.by_key.items():
            for composite in composites:
                yield key, composite

    def __len__(self) -> int:
        return sum(map(len, self.by_key.values()))
