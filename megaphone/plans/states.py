"""The state of one edge of a plan: composites by key, which expire by their earliest component."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dataflow.state.values import Key
from megaphone.plans.composites import Composite


class State:
    """Composites by key. Costs: adding and probing O(1) for each; purging O(composites); its length O(1)."""

    __slots__ = ("_count", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[Key, list[Composite]] = {}
        self._count = 0

    def add(self, key: Key, composites: Collection[Composite]) -> None:
        """Adds composites of a key."""
        if composites:
            self.by_key.setdefault(key, []).extend(composites)
            self._count += len(composites)

    def probe(self, key: Key) -> Iterator[Composite]:
        """The composites of a key."""
        return iter(self.by_key.get(key, ()))

    def purge(self, before: int) -> None:
        """Forgets composites with a component before a time."""
        for key in [*self.by_key]:
            held = self.by_key[key]
            left = [composite for composite in held if composite[1] >= before]
            self._count -= len(held) - len(left)
            if left:
                self.by_key[key] = left
            else:
                del self.by_key[key]

    def __iter__(self) -> Iterator[tuple[Key, Composite]]:
        for key, composites in self.by_key.items():
            for composite in composites:
                yield key, composite

    def __len__(self) -> int:
        return self._count
