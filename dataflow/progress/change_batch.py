"""Signed counts, gathered before they are applied as a whole."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class ChangeBatch(Generic[K]):
    """A multiset of differences. What cancels is forgotten, so only what remains has to be broadcast.

    Costs: `update` O(1), `drain` O(entries).

    >>> batch = ChangeBatch([("a", +1), ("b", +1)])
    >>> batch.update("a", -1)
    >>> batch.drain(), bool(batch)
    ([('b', 1)], False)
    """

    __slots__ = ("counts",)

    def __init__(self, changes: Iterable[tuple[K, int]] = ()) -> None:
        self.counts: dict[K, int] = {}  # invariant: no zeros; see _check()
        for key, diff in changes:
            self.update(key, diff)

    def update(self, key: K, diff: int) -> None:
        """Adds `diff` to the count of `key`."""
        count = self.counts.get(key, 0) + diff
        if count:
            self.counts[key] = count
        else:
            self.counts.pop(key, None)

    def drain(self) -> list[tuple[K, int]]:
        """Everything that does not cancel, and an empty batch afterwards."""
        changes = list(self.counts.items())
        self.counts.clear()
        return changes

    def _check(self) -> None:
        assert 0 not in self.counts.values()

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"ChangeBatch({list(self.counts.items())!r})"
