"""Who reads which partition of a source, where workers join and leave. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dataflow.members.plain import fields
from dataflow.members.requests import spread
from dataflow.time.order import Time


@dataclass(slots=True)
class Standing:
    """Where a partition stands: what its reader knows, and whoever reads it next must know."""

    over: bool = False  # whether it has been read to its end
    time: Time | None = None  # no batch before this will come; None where the engine gives the times
    behind: object = None  # the position before all that is in the history; None: the beginning
    history: list[tuple[Time, object]] = field(default_factory=list)  # positions that a cut may still ask for

    def plain(self) -> list[object]:
        """For the wire."""
        return [self.over, self.time, self.behind, [list(entry) for entry in self.history]]

    @classmethod
    def read(cls, plain: object) -> Standing:
        """What `plain` gave."""
        over, time, behind, history = fields(plain, 4)
        return cls(over, time, behind, [(at, position) for at, position in history])


def dealt_anew(
    readers: Mapping[str, int], over: Collection[str], members: Sequence[int], leader: int
) -> dict[str, int]:
    """By partition, who reads it from now on: they are dealt out evenly, moving as few as that takes. Those that are at
    their end only have a position: it stays where it is, or goes to the leader if its reader leaves.

    >>> dealt_anew({"a": 0, "b": 0, "c": 1, "d": 1}, {"d"}, (0, 2), 0)
    {'a': 0, 'b': 0, 'c': 2, 'd': 0}
    """
    rest = [partition for partition in readers if partition not in over]
    anew = dict(zip(rest, spread([readers[partition] for partition in rest], members), strict=True))
    return {p: anew.get(p, reader if reader in members else leader) for p, reader in readers.items()}
